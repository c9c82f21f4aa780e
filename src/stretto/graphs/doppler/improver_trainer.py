"""Training of the Placeto-style improver: every step is worth the improvement that follows it."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.graphs.doppler.improver import ImprovePlayer, improve_loss
from stretto.graphs.doppler.rollout import Episodes, Player
from stretto.graphs.doppler.trainer import Judge
from stretto.graphs.doppler.variants import StepwiseTrainer


class ImproveTrainer(StepwiseTrainer):
    """Trains a policy that visits the tasks of a random placement and moves them."""

    make_player: type[Player] = ImprovePlayer
    loss = staticmethod(improve_loss)

    def reinforce(self, judge: Judge | None = None) -> Episodes:
        if judge is not None:
            raise InvalidInput(
                "an improver needs the time of every placement on its way: use the simulator", field="engine"
            )
        return super().reinforce()

    def _advantage(self, found: Episodes, num: int) -> Floats:
        """Return the improvement from each step on, less its mean in the batch, [num, n]."""
        seconds = found.record.makespan_s[:num]
        # With the rewards of all later steps, the sum of their improvements is what is gained from here to the end.
        gain = seconds[:, :-1] - seconds[:, -1:]
        gain = gain - gain.mean(axis=0)
        scale = float(gain.std()) if self.learning.normalise else float(seconds[:, -1].mean())
        return np.asarray(gain / max(scale, 1e-9 * float(seconds.mean()), 1e-30))
