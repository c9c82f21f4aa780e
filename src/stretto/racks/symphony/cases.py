"""What Symphony learns on: a rack with its streams and counters, by name; training streams and held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stretto.core.graph import TaskGraph
from stretto.core.machine import Rack
from stretto.core.machine_presets import preset
from stretto.errors import UnknownName
from stretto.racks.kernels.counters import Counters
from stretto.racks.kernels.features import fill_rows
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import KernelSpec, RackModel, rack_model
from stretto.racks.simulator import BeliefParams, RackBatch, counters_of
from stretto.racks.workloads.generated import generated
from stretto.racks.workloads.graphs import PAPER_MIX, SHUFFLE_MIX
from stretto.racks.workloads.kernels import PAPER_KERNELS, SHUFFLES
from stretto.racks.workloads.streams import ForeignLoad, StreamSpec, streams_of

#: Streams with this seed are never trained on.
HELD_OUT_SEED = 7
_FIRST_SEED = 1000
#: Counters have been read for this long when the first job of a stream arrives: racks are older than streams.
LEAD_S = 10.0
#: More decisions than an episode can need, per task.
_MOST_DECISIONS_PER_TASK = 50
#: Worlds of a case that are kept: drawing streams takes longer than playing them once.
_MAX_WORLDS = 8
#: By ``calibrated_spread`` on training streams of seeds 0 and 1. Two switches below one root complex take each other's
#: load: their errors go together, which the messages do not know.
_SPREAD = {"m1": 0.8, "m2": 0.71, "small-rack": 0.86, "hgx8": 1.23, "paper-rack": 0.85, "two-nics": 0.51}


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
        return _MOST_DECISIONS_PER_TASK * int(self.streams.kernel.shape[1])


def observe(batch: RackBatch, out: NDArray[np.float32]) -> None:
    """Fill a row per environment."""
    fill_rows(batch.model.arrays, batch.streams, batch.state, batch.belief, batch.readings, batch.is_believing, out)


@dataclass(frozen=True)
class Case:
    """A world by name."""

    name: str
    rack: Rack
    kernels: tuple[KernelSpec, ...]
    kinds: tuple[str, ...]
    mix: tuple[TaskGraph, ...]
    stream: StreamSpec
    belief: BeliefParams
    _worlds: dict[tuple[int | None, int], World] = field(default_factory=dict, init=False, compare=False, repr=False)

    def world(self, *, seed: int | None, num_instances: int) -> World:
        """Return the world with training streams of a seed, or with the held-out ones for None; some are kept."""
        key = seed, num_instances
        if key not in self._worlds:
            if len(self._worlds) >= _MAX_WORLDS:
                del self._worlds[next(iter(self._worlds))]
            self._worlds[key] = self._new_world(seed, num_instances)
        return self._worlds[key]

    def _new_world(self, seed: int | None, num_instances: int) -> World:
        model = rack_model(self.rack, self.kernels, kinds=self.kinds)
        drawn = HELD_OUT_SEED if seed is None else _FIRST_SEED + seed
        streams = streams_of(model, self.mix, self.stream, num_instances=num_instances, seed=drawn)
        return World.of(model, streams._replace(arrival_s=streams.arrival_s + LEAD_S), self.belief)


def _two_nics() -> Case:
    levels = {"pcie-switch": (1.0, 2.5), "memory": (0.05, 0.3)}
    return Case(
        "two-nics",
        preset("two-nics"),
        SHUFFLES,
        ("nic",),
        SHUFFLE_MIX,
        StreamSpec(num_jobs=40, utilization=0.2, foreign=ForeignLoad(0.5, levels, 20.0)),
        BeliefParams(share=0.5, period_s=20.0, level=levels, spread=_SPREAD["two-nics"]),
    )


def rack_case(name: str, num_jobs: int) -> Case:
    """Return the paper's programs on a rack of ``machine_presets``."""
    return case_of(preset(name), num_jobs, BeliefParams(spread=_SPREAD.get(name, 1.0)))


def case_of(rack: Rack, num_jobs: int | None = None, belief: BeliefParams | None = None) -> Case:
    """Return the paper's programs on a rack, four jobs per machine by default."""
    return Case(
        rack.name,
        rack,
        PAPER_KERNELS,
        ("cpu", "gpu", "fpga"),
        PAPER_MIX,
        StreamSpec(num_jobs=num_jobs or 4 * len(rack.machines), utilization=0.6),
        belief or BeliefParams(),
    )


def generated_world(number: int, *, seed: int, num_instances: int, num_machines: int | None = None) -> World:
    """Return the rack that ``workloads/generated.py`` draws by a number, with streams of a seed."""
    made = generated(number, num_machines=num_machines)
    model = rack_model(made.rack, made.kernels)
    streams = streams_of(model, made.mix, made.stream, num_instances=num_instances, seed=seed)
    foreign = made.stream.foreign
    known = {"share": foreign.share, "period_s": foreign.period_s, "scale_sd": made.stream.scale_sd}
    belief = BeliefParams(level=foreign.level, **known)
    return World.of(model, streams._replace(arrival_s=streams.arrival_s + LEAD_S), belief)


CASES: dict[str, Callable[[], Case]] = {
    "two-nics": _two_nics,
    "small-rack": lambda: rack_case("small-rack", 10),
    "paper-rack": lambda: rack_case("paper-rack", 20),
}


@cache
def case(name: str) -> Case:
    """Return a case by name."""
    if name not in CASES:
        raise UnknownName("case of Symphony", name, CASES)
    return CASES[name]()
