"""Racks under contention: many environments in compiled code, their counters, and the belief kept beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.kernels.belief import Belief
from stretto.racks.kernels.counters import Counters, Readings
from stretto.racks.kernels.episode import start_many, step_many
from stretto.racks.kernels.foreign import NUM_STATES
from stretto.racks.kernels.state import RackState, Streams
from stretto.racks.machine_work import RackModel
from stretto.racks.params import BeliefParams, CounterSpec, counters_of

__all__ = ["BeliefParams", "CounterSpec", "RackBatch", "counters_of", "new_belief", "new_readings", "new_state"]

Mask = NDArray[np.bool_]
_DRAWS = 4096  # instances drawn ahead; then they repeat


def new_state(model: RackModel, streams: Streams, num_envs: int) -> RackState:
    """Return room for so many racks."""
    a = model.arrays
    (num_kernels, num_procs), num_res = a.duration_s.shape, a.demand.shape[2]
    num_sources, num_machines = len(a.source_demand), len(a.proc_ptr) - 1
    n, num_jobs = streams.kernel.shape[1], streams.arrival_s.shape[1]

    def floats(*shape: int) -> Floats:
        return np.zeros((num_envs, *shape))

    def ints(*shape: int) -> NDArray[np.int64]:
        return np.zeros((num_envs, *shape), np.int64)

    def flags(*shape: int) -> Mask:
        return np.zeros((num_envs, *shape), np.bool_)

    rows = num_procs + num_sources
    return RackState(
        now_s=floats(),
        instance=ints(),
        task=ints(num_procs),
        left_s=floats(num_procs),
        speed=floats(num_procs),
        demand=floats(rows, num_res),
        is_on=flags(rows),
        load=floats(num_res),
        config=ints(num_procs),
        is_stale=flags(num_machines),
        flow_place=ints(num_sources),
        status=ints(n),
        missing=ints(n),
        head=ints(num_kernels),
        num_ready=ints(num_kernels),
        num_left=ints(num_kernels),
        proc=ints(n),
        start_s=floats(n),
        end_s=floats(n),
        job_left=ints(num_jobs),
        job_end_s=floats(num_jobs),
        num=ints(3),
        window_s=floats(),
        load_sum=floats(num_res),
        work_sum=floats(num_procs),
        cost=floats(2),
    )


def new_readings(counters: Counters, num_procs: int, num_envs: int) -> Readings:
    """Return room for readings."""
    shape = (num_envs, len(counters.resource))
    return Readings(
        mean=np.zeros(shape),
        sd=np.zeros(shape),
        num=np.zeros(shape, np.int64),
        age_s=np.zeros(shape),
        total=np.zeros(shape),
        num_windows=np.zeros(shape, np.int64),
        progress=np.zeros((num_envs, num_procs)),
    )


def new_belief(model: RackModel, num_envs: int, params: BeliefParams | None = None) -> Belief:
    """Return room for beliefs, and their prior."""
    num_sources, num_res = model.arrays.source_demand.shape
    params = params or BeliefParams()
    return Belief(
        np.tile(params.prior(model), (num_envs, 1, 1)),
        np.zeros((num_envs, num_res)),
        np.zeros((num_envs, num_res)),
        np.zeros((num_envs, num_res)),
        params.levels(model).reshape(num_sources, NUM_STATES),
        params.prior(model),
        np.zeros((num_envs, len(model.processors), 2)),
        np.full((num_envs, len(model.processors)), -1, np.int64),
    )


class RackBatch:
    """Many racks, each at a decision; ``step`` decides in all of them and goes on to the next decisions.

    Parameters
    ----------
    is_believing
        Whether to keep beliefs; without them ``belief`` stays at its prior.
    """

    def __init__(
        self,
        model: RackModel,
        streams: Streams,
        num_envs: int,
        *,
        seed: int,
        counters: Counters | None = None,
        params: BeliefParams | None = None,
        is_believing: bool = True,
    ) -> None:
        if streams.kernel.shape[0] == 0 or num_envs < 1:
            raise InvalidInput("a batch needs a stream and an environment", field="num_envs")
        self.model, self.streams, self.num_envs = model, streams, num_envs
        self.counters = counters if counters is not None else counters_of(model)
        self.params = (params or BeliefParams()).array()
        self.is_believing = is_believing
        self.state = new_state(model, streams, num_envs)
        self.readings = new_readings(self.counters, len(model.processors), num_envs)
        self.belief = new_belief(model, num_envs, params)
        self.mask: Mask = np.zeros((num_envs, model.num_actions), np.bool_)
        self.cost = np.zeros((num_envs, 2))
        self.is_over: Mask = np.zeros(num_envs, np.bool_)
        self.ends_s = np.full((num_envs, streams.arrival_s.shape[1]), np.nan)
        # Drawn ahead and for each by itself, so that what one environment does leaves the others alone.
        draws = [np.random.default_rng([seed, b]).integers(len(streams.kernel), size=_DRAWS) for b in range(num_envs)]
        self._draws, self._place = np.stack(draws), np.zeros(num_envs, np.int64)
        self._states = self._seeded(seed)

    @property
    def _parts(self) -> tuple[Any, ...]:
        return (
            self.model.arrays,
            self.streams,
            self.counters,
            self.state,
            self.readings,
            self.belief,
            self.params,
            self._states,
        )

    def _seeded(self, seed: int) -> NDArray[np.uint64]:
        """Return the states of the counters' random generators."""
        return np.stack([seeded(seed, stream + 1) for stream in range(self.num_envs)])

    def start(self, instances: NDArray[np.int64] | None = None, *, seed: int | None = None) -> None:
        """Begin all environments, at given instances or at random ones; a seed makes the counters' noise begin anew."""
        if seed is not None:
            self._states = self._seeded(seed)
        firsts = self._next() if instances is None else np.asarray(instances, np.int64)
        start_many(*self._parts, firsts, self.mask, self.is_believing)

    def step(self, actions: NDArray[np.int64]) -> None:
        """Act; what is over begins anew at a random instance."""
        step_many(
            *self._parts,
            np.asarray(actions, np.int64),
            self._next(),
            self.mask,
            self.cost,
            self.is_over,
            self.ends_s,
            self.is_believing,
        )
        self._place += self.is_over

    def _next(self) -> NDArray[np.int64]:
        """Return the instance that each environment begins when its present one is over."""
        return self._draws[np.arange(self.num_envs), self._place % _DRAWS]
