"""Trainers of the ablations that play or learn differently: joint, stepwise encoding, and improvement."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from research.doppler.batch import WholeBatch
from research.doppler.improver import ImprovePlayer, improve_loss
from research.doppler.joint import JointPlayer, joint_loss
from research.doppler.settings import AblationSettings
from research.doppler.stepwise import StepwisePlayer, stepwise_loss

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.doppler.rollout import PlayedEpisodes, Player
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.trainer import DopplerTrainer, Judge, Learning


class JointTrainer(DopplerTrainer):
    """Trains one policy over (ready task, device) pairs."""

    make_player: type[Player] = JointPlayer
    loss = staticmethod(joint_loss)

    def _batch(self, found: PlayedEpisodes, advantage: Floats, imitate: Floats) -> WholeBatch:
        return WholeBatch(record=found.record, **self._common(found, advantage, imitate))


class StepwiseTrainer(JointTrainer):
    """Trains both policies with encodings of the placement so far; a whole episode enters each update."""

    make_player: type[Player] = StepwisePlayer
    loss = staticmethod(stepwise_loss)

    def __init__(
        self,
        problem: Problem,
        settings: DopplerSettings | None = None,
        learning: Learning | None = None,
        *,
        params: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(problem, settings, learning, params=params, **more)
        # Zeros: a fresh policy does what one that encodes the graph once would do.
        fresh = np.zeros((1 + problem.num_devices, self.settings.hidden), np.float32)
        self.params["enc_placed"] = jnp.asarray((params or {}).get("enc_placed", fresh))
        self.optimiser_state = self._optimiser.init(ravel_pytree(self.params)[0])

    @property
    def net(self) -> Any:
        """The parameters: the player encodes."""
        return self.params

    def _steps(self) -> Ints:
        n, most = self.problem.num_tasks, self.learning.max_steps
        if n > most:
            raise InvalidInput(f"{n} tasks are more steps than an update looks at ({most})", field="max_steps")
        return super()._steps()


class ImproveTrainer(StepwiseTrainer):
    """Trains a policy that visits the tasks of a random placement and moves them.

    Every step is worth the improvement that follows it.
    """

    make_player: type[Player] = ImprovePlayer
    loss = staticmethod(improve_loss)

    def reinforce(self, judge: Judge | None = None) -> PlayedEpisodes:
        if judge is not None:
            raise InvalidInput(
                "an improver needs the time of every placement on its way: use the simulator", field="engine"
            )
        return super().reinforce()

    def _advantage(self, found: PlayedEpisodes, num: int) -> Floats:
        """Return the improvement from each step on, less its mean in the batch, [num, n]."""
        seconds = found.record.makespan_s[:num]
        # The rewards of all later steps add up to what is gained from here to the end.
        gain = seconds[:, :-1] - seconds[:, -1:]
        gain = gain - gain.mean(axis=0)
        scale = float(gain.std()) if self.learning.normalise else float(seconds[:, -1].mean())
        return np.asarray(gain / max(scale, 1e-9 * float(seconds.mean()), 1e-30))


def trainer_for(settings: DopplerSettings) -> type[DopplerTrainer]:
    """Return the class that trains a network with these settings."""
    if not isinstance(settings, AblationSettings) or (settings.policy == "dual" and not settings.encode_every):
        return DopplerTrainer
    if settings.policy == "joint":
        return JointTrainer
    return ImproveTrainer if settings.policy == "improve" else StepwiseTrainer
