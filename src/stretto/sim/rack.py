"""Racks under contention: many environments in compiled code, their counters, and the belief kept beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.domain.csr import Floats
from stretto.domain.machine_work import RackModel
from stretto.errors import InvalidInput
from stretto.kernels import rack_belief as belief_kernel
from stretto.kernels.rack_belief import Belief
from stretto.kernels.rack_counters import Counters, Readings
from stretto.kernels.rack_episode import start_many, step_many
from stretto.kernels.rack_state import RackState, Streams
from stretto.kernels.rng import seeded

Mask = NDArray[np.bool_]
_DRAWS = 4096  # instances drawn ahead; then they repeat
#: Counters of each kind of resource: so many that count traffic, and whether one counts occupancy (after Table 1).
_COUNTED = {
    "memory": (4, True),  # reads, writes, local and remote accesses
    "root-complex": (4, False),  # PCIe reads and writes, DRAM reads and writes from IO
    "socket-link": (1, False),
    "core": (2, False),  # instructions issued, cycles
    "nic": (1, False),
}


@dataclass(frozen=True)
class CounterSpec:
    """How counters are read.

    Attributes
    ----------
    noise, floor
        Standard deviation of a sample, relative and as a share of full scale.
    num_samples
        Samples in a window.
    miss
        How often a counter's group has no turn in a window.
    theta
        Outstanding requests from which the occupancy counters count; a fact of the hardware that nobody documents.
    """

    noise: float = 1.0
    floor: float = 0.02
    num_samples: int = 4
    miss: float = 0.25
    theta: float = 4.0

    def __post_init__(self) -> None:
        if self.num_samples < 2:
            raise InvalidInput(f"{self.num_samples} samples have no spread; take 2 or more", field="num_samples")
        if not (min(self.noise, self.floor) >= 0 and 0 <= self.miss < 1 and self.theta > 1):
            raise InvalidInput("noise and floor are not negative, miss is in [0, 1), theta above 1", field="counters")


@dataclass(frozen=True)
class BeliefParams:
    """What a belief network has to know of its world; these can be learned (``training/symphony_belief.py``).

    Attributes
    ----------
    theta
        Believed threshold of the occupancy counters.
    noise, prior_nu, floor
        Expected spread of samples, and how many degrees of freedom that expectation is worth.
    memory_s
        How long foreign load lasts.
    jump
        Mean squared surprise of a machine's readings from which its loads are taken to have changed.
    spread
        Factor on the stated uncertainty of utilisation, so that intervals hold what they promise.
    level
        Mean and standard deviation of foreign load before any reading, by the kind of part where it enters.
    """

    theta: float = 4.0
    noise: float = 1.0
    prior_nu: float = 12.0
    memory_s: float = 10.0
    floor: float = 0.02
    jump: float = 1.6
    spread: float = 1.05
    level: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"pcie-switch": (0.3, 0.45), "memory": (0.1, 0.15), "core": (0.15, 0.25)}
    )

    def array(self) -> Floats:
        """Return the numbers in the order of ``kernels/rack_belief.py``."""
        return np.array([self.theta, self.noise, self.prior_nu, self.memory_s, self.floor, self.jump, self.spread])

    def prior(self, model: RackModel) -> tuple[Floats, Floats]:
        """Return mean and spread of each source's level before any reading."""
        rows = [self.level.get(kind, (0.15, 0.3)) for kind in model.source_kind]
        return np.array([mean for mean, _ in rows]), np.array([sd for _, sd in rows])


def counters_of(model: RackModel, spec: CounterSpec | None = None) -> Counters:
    """Return the counters of a rack: none on PCIe switches and accelerators, which is why beliefs are needed."""
    spec = spec or CounterSpec()
    resource: list[int] = []
    exponent: list[float] = []
    ptr = [0]
    for m in range(len(model.rack.machines)):
        for r in range(model.arrays.res_ptr[m], model.arrays.res_ptr[m + 1]):
            num, has_occupancy = _COUNTED.get(model.resource_kind[r], (0, False))
            resource += [r] * (num + has_occupancy)
            exponent += [1.0] * num + [spec.theta - 1.0] * has_occupancy
        ptr.append(len(resource))
    return Counters(
        np.array(ptr, np.int32),
        np.array(resource, np.int32),
        np.array(exponent),
        spec.noise,
        spec.floor,
        spec.num_samples,
        spec.miss,
    )


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
        cost=floats(2),
    )


def new_readings(counters: Counters, num_envs: int) -> Readings:
    """Return room for readings."""
    shape = (num_envs, len(counters.resource))
    return Readings(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))


def new_belief(model: RackModel, num_envs: int, params: BeliefParams | None = None) -> Belief:
    """Return room for beliefs, and their prior."""
    num_sources, num_res = model.arrays.source_demand.shape
    return Belief(
        np.zeros((num_envs, num_sources)),
        np.zeros((num_envs, num_sources, num_sources)),
        np.zeros((num_envs, num_res)),
        np.zeros((num_envs, num_res)),
        np.zeros((num_envs, num_res)),
        *(params or BeliefParams()).prior(model),
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
        self.readings = new_readings(self.counters, num_envs)
        self.belief = new_belief(model, num_envs, params)
        self.mask: Mask = np.zeros((num_envs, model.num_actions), np.bool_)
        self.cost = np.zeros((num_envs, 2))
        self.is_over: Mask = np.zeros(num_envs, np.bool_)
        self.ends_s = np.full((num_envs, streams.arrival_s.shape[1]), np.nan)
        # Drawn ahead and for each by itself, so that what one environment does leaves the others alone.
        draws = [np.random.default_rng([seed, b]).integers(len(streams.kernel), size=_DRAWS) for b in range(num_envs)]
        self._draws, self._place = np.stack(draws), np.zeros(num_envs, np.int64)
        self._states = np.stack([seeded(seed, stream + 1) for stream in range(num_envs)])

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

    def start(self, instances: NDArray[np.int64] | None = None) -> None:
        """Begin all environments, at given instances or at random ones."""
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


assert len(BeliefParams().array()) == belief_kernel.NUM_PARAMS
