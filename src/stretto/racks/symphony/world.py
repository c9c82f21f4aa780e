"""Where a policy for racks learns, what it sees there, and how it is judged on streams that it did not see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.racks.kernels.counters import Counters
from stretto.racks.kernels.features import fill_rows
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel
from stretto.racks.simulator import BeliefParams, RackBatch, counters_of
from stretto.racks.symphony.network import Params, forward
from stretto.racks.symphony.settings import NetSettings, NetShape

MASKED = -1e9
#: More decisions than an episode can need, per task.
_PATIENCE = 50


@dataclass(frozen=True)
class World:
    """A rack, its streams, its counters, and what a belief assumes of them."""

    model: RackModel
    streams: Streams
    counters: Counters
    belief: BeliefParams = field(default_factory=BeliefParams)

    @staticmethod
    def of(model: RackModel, streams: Streams, belief: BeliefParams | None = None) -> World:
        return World(model, streams, counters_of(model), belief or BeliefParams())

    def batch(self, num_envs: int, *, seed: int, is_believing: bool) -> RackBatch:
        """Return so many racks of this world, not yet begun."""
        return RackBatch(
            self.model,
            self.streams,
            num_envs,
            seed=seed,
            counters=self.counters,
            params=self.belief,
            is_believing=is_believing,
        )

    @property
    def most_decisions(self) -> int:
        return _PATIENCE * int(self.streams.kernel.shape[1])


def observe(batch: RackBatch, out: NDArray[np.float32]) -> None:
    """Fill a row per environment."""
    fill_rows(batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, batch.is_believing, out)


class Judge:
    """Plays held-out streams without chance and returns the completion time of every job."""

    def __init__(self, world: World, shape: NetShape, net: NetSettings, *, seed: int = 12345) -> None:
        self.world, self.net = world, net
        self._seed = seed
        self._shape = shape
        self._greedy = _compiled_greedy(shape, net)

    def flow_s(self, params: Params) -> Floats:
        """Return completion minus arrival of each job; a row per stream."""
        streams = self.world.streams
        num = len(streams.kernel)
        batch = self.world.batch(num, seed=self._seed, is_believing=self.net.is_believing)
        batch.start(np.arange(num))
        rows = np.zeros((num, self._shape.row_length(self.net)), np.float32)
        core = jnp.zeros((num, self.net.core), jnp.float32)
        is_done = np.zeros(num, np.bool_)
        flow = np.full((num, streams.arrival_s.shape[1]), np.nan)
        for _ in range(self.world.most_decisions):
            observe(batch, rows)
            action, core = self._greedy(params, rows, batch.mask, core)
            batch.step(np.asarray(action))
            for b in np.flatnonzero(batch.is_over & ~is_done):
                flow[b] = batch.ends_s[b] - streams.arrival_s[b]
            is_done |= batch.is_over
            if is_done.all():
                break
        return flow


@lru_cache(maxsize=8)
def _compiled_greedy(shape: NetShape, net: NetSettings) -> Callable[..., Any]:
    compiled: Callable[..., Any] = jax.jit(partial(_greedy, shape, net))
    return compiled


def _greedy(shape: NetShape, net: NetSettings, params: Params, rows: Any, mask: Any, core: Any) -> tuple[Any, Any]:
    logits, _, core = forward(params, shape, net, rows, core)
    return jnp.argmax(jnp.where(mask, logits, MASKED), -1), core
