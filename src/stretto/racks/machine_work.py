"""Kernels that a rack runs, and rack and kernels together as arrays for compiled code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.machine import SHARED, Machine, Rack
from stretto.core.magnitudes import SECONDS, TRAFFIC
from stretto.errors import InvalidInput

#: Processor kinds as numbers, in the order of ``machine.PROCESSORS``.
CPU, GPU, FPGA, NIC = range(4)
#: Entries of the table of demands, half a gigabyte.
MAX_DEMANDS = 64_000_000
_KIND = {"cpu": CPU, "gpu": GPU, "fpga": FPGA, "nic": NIC}


@dataclass(frozen=True)
class KernelSpec:
    """What a kernel takes on each kind of processor, alone on its machine.

    Attributes
    ----------
    duration_s
        Seconds by processor kind or model; a model goes before its kind, and what is not named cannot run it.
    bytes_per_s
        Traffic with memory while it runs at full speed, by kind or model.
    remote_share
        The part of that traffic that goes to the other socket's memory, where there is one.
    issue
        Issue slots of its core that it takes at full speed, on a CPU.
    """

    name: str
    duration_s: Mapping[str, float]
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    remote_share: float = 0.0
    issue: float = 0.6

    def __post_init__(self) -> None:
        if not self.duration_s:
            raise InvalidInput("no processor can run it", field=self.name)
        for kind, seconds in self.duration_s.items():
            if not (seconds > 0 and math.isfinite(seconds)):
                raise InvalidInput(f"duration {seconds} on {kind} must be positive", field=self.name)
            SECONDS.check(seconds, f"duration on {kind}", field=self.name)
        for kind, rate in self.bytes_per_s.items():
            if not (rate >= 0 and math.isfinite(rate)):
                raise InvalidInput(f"traffic {rate} on {kind} must not be negative", field=self.name)
            TRAFFIC.check(rate, f"traffic on {kind}", field=self.name)
        if not (0 <= self.remote_share <= 1 and 0 <= self.issue <= 1):
            raise InvalidInput("remote_share and issue are shares between 0 and 1", field=self.name)


class RackArrays(NamedTuple):
    """Rack and kernels for compiled code: M machines, P processors, R resources, F sources of foreign load, K kernels.

    Demands are shares of a resource's capacity at full speed. What belongs to one machine lies together.
    """

    proc_ptr: Ints  # [M+1]
    res_ptr: Ints  # [M+1]
    source_ptr: Ints  # [M+1]
    proc_machine: Ints  # [P]
    proc_kind: Ints  # [P]
    duration_s: Floats  # [K, P], infinite where it cannot run
    demand: Floats  # [K, P, R]
    source_demand: Floats  # [F, R] of a source at level 1
    reconfigure_s: Floats  # [P], zero for what needs none
    fpgas: Ints  # [Q] processors that must be configured


@dataclass(frozen=True, eq=False)
class RackModel:
    """A rack, its kernels, and their arrays with names."""

    rack: Rack
    kernels: tuple[KernelSpec, ...]
    arrays: RackArrays
    processors: tuple[str, ...]  # [P]
    resources: tuple[str, ...]  # [R]
    resource_kind: tuple[str, ...]  # [R]
    sources: tuple[str, ...]  # [F]
    source_kind: tuple[str, ...]  # [F] of the part where a foreign load enters

    @property
    def num_actions(self) -> int:
        """Execute kernel k on p, reconfigure FPGA q for k, wait; in this order."""
        return len(self.kernels) * (len(self.processors) + len(self.arrays.fpgas)) + 1


class _Layout:
    """Collects the rows of all machines."""

    def __init__(self) -> None:
        self.processors: list[tuple[Machine, int]] = []
        self.resources: list[tuple[Machine, int]] = []
        self.sources: list[tuple[Machine, int]] = []
        self.ptrs: dict[str, list[int]] = {"proc": [0], "res": [0], "source": [0]}

    def add(self, machine: Machine, kinds: Sequence[str]) -> None:
        self.processors += [(machine, place) for place in machine.of_kind(*kinds)]
        self.resources += [(machine, place) for place in machine.of_kind(*SHARED, "nic")]
        origins = machine.of_kind("memory", "pcie-switch") + (machine.of_kind("core") if "cpu" in kinds else ())
        self.sources += [(machine, place) for place in origins]
        for name, rows in (("proc", self.processors), ("res", self.resources), ("source", self.sources)):
            self.ptrs[name].append(len(rows))


def rack_model(
    rack: Rack,
    kernels: Sequence[KernelSpec],
    *,
    kinds: Sequence[str] = ("cpu", "gpu", "fpga"),
    reconfigure_s: float = 2.0,
) -> RackModel:
    """Lay a rack and its kernels out as arrays.

    Parameters
    ----------
    kinds
        Processor kinds that the scheduler commands; foreign load may come through the others all the same.
    reconfigure_s
        What it takes to give an FPGA another kernel.
    """
    layout = _Layout()
    for machine in rack.machines:
        layout.add(machine, kinds)
    if not layout.processors:
        raise InvalidInput(f"no processor of kind {' or '.join(kinds)}", field=rack.name)
    _check_size(rack, len(kernels), layout)
    column = {(machine.name, place): r for r, (machine, place) in enumerate(layout.resources)}
    duration, demand = _kernel_tables(kernels, layout, column)
    for spec, row in zip(kernels, duration, strict=True):
        if not np.isfinite(row).any():
            raise InvalidInput("no processor of the rack can run it", field=spec.name)
    source_demand = np.zeros((len(layout.sources), len(layout.resources)))
    for f, (machine, place) in enumerate(layout.sources):
        _add_traffic(source_demand[f], machine, place, machine.parts[place].capacity, 0.0, column)
    kind = np.array([_KIND[machine.parts[place].kind] for machine, place in layout.processors], np.int32)
    machine_of = np.repeat(np.arange(len(rack.machines)), np.diff(layout.ptrs["proc"])).astype(np.int32)
    ptr = {name: np.array(rows, np.int32) for name, rows in layout.ptrs.items()}
    arrays = RackArrays(
        ptr["proc"],
        ptr["res"],
        ptr["source"],
        machine_of,
        kind,
        duration,
        demand,
        source_demand,
        np.where(kind == FPGA, reconfigure_s, 0.0),
        np.flatnonzero(kind == FPGA).astype(np.int32),
    )

    def names(rows: list[tuple[Machine, int]]) -> tuple[str, ...]:
        return tuple(f"{machine.name}/{machine.parts[place].name}" for machine, place in rows)

    return RackModel(
        rack,
        tuple(kernels),
        arrays,
        names(layout.processors),
        names(layout.resources),
        tuple(machine.parts[place].kind for machine, place in layout.resources),
        names(layout.sources),
        tuple(machine.parts[place].kind for machine, place in layout.sources),
    )


def _check_size(rack: Rack, num_kernels: int, layout: _Layout) -> None:
    """Raise before the tables are made: they are dense, over kernels, processors and resources."""
    num_procs, num_resources = len(layout.processors), len(layout.resources)
    entries = num_resources * (num_kernels * num_procs + len(layout.sources))
    if entries > MAX_DEMANDS:
        raise InvalidInput(
            f"{num_kernels:,} kernels on {num_procs:,} processors with {num_resources:,} shared parts make a table of "
            f"{entries:,} entries; at most {MAX_DEMANDS:,}",
            field=rack.name,
        )


def _kernel_tables(
    kernels: Sequence[KernelSpec], layout: _Layout, column: Mapping[tuple[str, int], int]
) -> tuple[Floats, Floats]:
    """Return durations [K, P] and demands [K, P, R]."""
    duration = np.full((len(kernels), len(layout.processors)), np.inf)
    demand = np.zeros((*duration.shape, len(layout.resources)))
    for k, spec in enumerate(kernels):
        for p, (machine, place) in enumerate(layout.processors):
            part = machine.parts[place]
            seconds = spec.duration_s.get(part.model, spec.duration_s.get(part.kind))
            if seconds is None:
                continue
            duration[k, p] = seconds
            rate = spec.bytes_per_s.get(part.model, spec.bytes_per_s.get(part.kind, 0.0))
            _add_traffic(demand[k, p], machine, place, rate, spec.remote_share, column)
            if part.kind == "cpu":
                for core in machine.neighbours[place]:
                    if machine.parts[core].kind == "core":
                        demand[k, p, column[machine.name, core]] = spec.issue
    return duration, demand


def _add_traffic(
    row: Floats, machine: Machine, place: int, rate: float, remote_share: float, column: Mapping[tuple[str, int], int]
) -> None:
    """Add what traffic from a part takes of all resources on its way; of a core, its issue slots instead."""
    if machine.parts[place].kind == "core":
        row[column[machine.name, place]] += 1.0
        return
    near = machine.home(place) if machine.parts[place].kind != "memory" else place
    others = [memory for memory in machine.of_kind("memory") if memory != near]
    shares = {near: 1.0 - (remote_share if others else 0.0)}
    shares |= {memory: remote_share / len(others) for memory in others}
    for memory, share in shares.items():
        way = machine.route(place, memory) if share > 0 else None
        for part in way or ():
            if machine.parts[part].kind != "core" and (machine.name, part) in column:
                row[column[machine.name, part]] += share * rate / machine.parts[part].capacity
