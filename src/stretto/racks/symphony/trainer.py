"""Actor-critic for racks: paired episodes in compiled code, a few jitted updates per iteration.

The reward is minus the job-seconds between two decisions, which add up to minus the sum of job completion times. The
paper prints minus the sum of 1/T over running actions; that form is here as ``inverse``, and ``makespan`` counts plain
seconds. Everything that chance decides follows from the seed and the number of the iteration, so weights, the
optimiser's state and one scale are all that a training needs to go on where it stopped.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stretto.core.csr import Floats
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.episodes import Episodes, against_siblings, costs_to_come, play_episodes
from stretto.racks.symphony.loss import REWARDS, A2c, Lesson, compiled, optimiser
from stretto.racks.symphony.network import Params, init_params
from stretto.racks.symphony.settings import NetSettings, NetShape, shape_of
from stretto.racks.symphony.world import Judge, World, observe

__all__ = ["REWARDS", "A2c", "Iteration", "Judge", "SymphonyTrainer", "World", "observe"]


@dataclass
class Iteration:
    """News of one iteration; ``cost`` is what an episode cost in all, in the unit of the reward."""

    number: int
    seconds: float
    cost: float
    entropy: float
    loss: float


class SymphonyTrainer:
    """One training; the same seed and world give the same weights."""

    def __init__(self, world: World, net: NetSettings, a2c: A2c, *, seed: int, params: Params | None = None) -> None:
        self.world, self.net, self.a2c, self.seed = world, net, a2c, seed
        self.shape: NetShape = shape_of(world.model, len(world.counters.resource), world.streams)
        self.params = params if params is not None else init_params(self.shape, net, seed)
        self.iteration = 0
        self.seconds = 0.0
        self.state: Any = optimiser(a2c).init(self.params)
        self.scale = 0.0  # of costs to come; the first iteration says what one is
        self._batch = world.batch(a2c.num_envs, seed=seed, is_believing=net.is_believing)
        self._sample, self._update = compiled(self.shape, net, a2c)

    def step(self) -> Iteration:
        """Play an episode in every environment and learn from them."""
        begun = time.perf_counter()
        episodes = self._play()
        lesson = self._lesson(episodes)
        bonus = self.a2c.entropy * self._fade()
        for _ in range(self.a2c.epochs):
            self.params, self.state, (loss, entropy, _) = self._update(self.params, self.state, lesson, bonus)
        self.iteration += 1
        cost = float((episodes.cost * episodes.is_live).sum(axis=0).mean())
        row = Iteration(self.iteration, 0.0, cost, float(entropy), float(loss))
        self.seconds += time.perf_counter() - begun
        row.seconds = self.seconds
        return row

    def _fade(self) -> float:
        if self.a2c.anneal is None:
            return 1.0
        return 1.0 - 0.9 * min(1.0, self.iteration / self.a2c.anneal)

    def _play(self) -> Episodes:
        a2c = self.a2c
        rng = np.random.default_rng([self.seed, self.iteration])
        drawn = rng.integers(len(self.world.streams.kernel), size=a2c.num_envs // a2c.num_rollouts)
        self._batch.start(np.repeat(drawn, a2c.num_rollouts), seed=int(rng.integers(2**31)))
        key = jax.random.fold_in(jax.random.PRNGKey(self.seed), self.iteration)
        core = jnp.zeros((a2c.num_envs, self.net.core), jnp.float32)

        def act(rows: Any, mask: Any, step: int) -> tuple[Any, Any, Any]:
            nonlocal core
            action, log_prob, value, core = self._sample(self.params, rows, mask, core, key, step)
            return action, log_prob, value

        return play_episodes(self.world, self._batch, self.shape.row_length(self.net), act, self._reward)

    def _lesson(self, episodes: Episodes) -> Lesson:
        """Return episodes with advantages: what came, less what the critic and the siblings lead one to expect."""
        cost = costs_to_come(episodes, self.a2c.horizon_s)
        live = episodes.is_live
        if self.scale == 0.0:
            self.scale = float(np.std(cost[live])) + 1e-9
        target = -cost / self.scale
        surprise = np.where(live, target - episodes.value, 0.0)
        advantage = against_siblings(surprise, episodes, self.a2c.num_rollouts)
        spread = float(np.std(advantage[live])) + 1e-6
        return Lesson(
            episodes.rows,
            episodes.mask,
            episodes.action,
            live,
            episodes.log_prob.astype(np.float32),
            np.where(live, (advantage - advantage[live].mean()) / spread, 0.0).astype(np.float32),
            target.astype(np.float32),
        )

    def _reward(self, batch: RackBatch) -> Floats:
        if self.a2c.reward == "flow":
            return -batch.cost[:, 1]
        if self.a2c.reward == "makespan":
            return -batch.cost[:, 0]
        running = (batch.state.task >= 0) & (batch.state.left_s > 0)
        inverse: Floats = -(running / np.maximum(batch.state.left_s, 1e-3)).sum(axis=1)
        return inverse
