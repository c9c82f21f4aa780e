"""Trainings of Doppler's ablations that play or learn otherwise: a joint policy, and encoding within the episode."""

from __future__ import annotations

from typing import Any

from stretto.core.csr import Floats, Ints
from stretto.errors import InvalidInput
from stretto.graphs.doppler.joint import JointPlayer, joint_loss
from stretto.graphs.doppler.loss import WholeBatch
from stretto.graphs.doppler.rollout import Episodes, Player
from stretto.graphs.doppler.stepwise import StepwisePlayer, stepwise_loss
from stretto.graphs.doppler.trainer import DopplerTrainer


class JointTrainer(DopplerTrainer):
    """Trains one policy over (ready task, device) pairs."""

    make_player: type[Player] = JointPlayer
    loss = staticmethod(joint_loss)

    def _batch(self, found: Episodes, advantage: Floats, imitate: Floats) -> WholeBatch:
        return WholeBatch(record=found.record, **self._common(found, advantage, imitate))


class StepwiseTrainer(JointTrainer):
    """Trains both policies with encodings of the placement so far; a whole episode enters each update."""

    make_player: type[Player] = StepwisePlayer
    loss = staticmethod(stepwise_loss)

    @property
    def net(self) -> Any:
        """The parameters: the player encodes."""
        return self.params

    def _steps(self) -> Ints:
        n, most = self.problem.num_tasks, self.learning.max_steps
        if n > most:
            raise InvalidInput(f"{n} tasks are more steps than an update looks at ({most})", field="max_steps")
        return super()._steps()
