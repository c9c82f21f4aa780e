"""A problem in whole ticks, as the CP-SAT models read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import resident_of_tasks
from stretto.core.nodes.packing import SLOT
from stretto.core.problem import Problem
from stretto.graphs.bounds.list_schedule import TimedPlan
from stretto.graphs.bounds.relaxation import Relaxation, merged_edges
from stretto.graphs.bounds.rounding import Ticks, coarsest
from stretto.graphs.memory.needs import MemoryNeeds

#: Ticks in the horizon when times are not whole: rounding costs less than one part in a million.
_ROUNDED_TICKS = 2**28
_MAX_EXACT_TICKS = 2**36
_NEVER = 2**60
#: Units of a resource up to which the solver's sums of need times ticks cannot overflow.
_MAX_UNITS = 2**20
_COARSE_UNITS = 2**14


@dataclass(frozen=True, eq=False)
class PoolRow:
    """One resource of one node: what tasks need of it and what it has, in whole numbers.

    Attributes
    ----------
    is_exact
        Whether the numbers are the true ones. Large numbers without a common divisor are made smaller, needs rounded
        up and capacities down: what fits fits, but then nothing is proven.
    """

    device: int
    need: list[int]  # [n]
    capacity: int
    is_exact: bool


@dataclass(frozen=True, eq=False)
class ResidentRow:
    """The memory of one device: what its tasks keep there, and what each needs besides while it runs."""

    device: int
    resident: list[int]  # [n]
    need: list[int]  # [n]
    limit: int


@dataclass(frozen=True, eq=False)
class Instance:
    """Integer tables of a problem on devices.

    Times are rounded down when they are not whole. Rounding down the times of a real schedule
    gives a solution of this instance, since the floor of a sum is at least the sum of the floors; so
    what is proven here bounds the real problem.

    Attributes
    ----------
    edges
        Source, target, and the transfer between each two devices (None = pure precedence).
    interchangeable
        Groups of devices that nothing tells apart.
    pools
        Resources of nodes that pack; a device without any runs one task at a time.
    resident
        Memory limits where tasks keep bytes resident: a part of what the simulator checks.
    hint
        Device and start of each task in a known schedule of length ``upper`` at most.
    """

    ticks: Ticks
    num_devices: int
    length: list[list[int]]  # [n][m]; _NEVER = cannot run
    head: list[list[int]]  # [n][m]
    tail: list[list[int]]  # [n][m]
    edges: list[tuple[int, int, list[list[int]] | None]]
    lower: int
    upper: int
    interchangeable: list[list[int]]
    hint: tuple[list[int], list[int]]
    is_node: tuple[bool, ...] = ()  # [m]
    pools: tuple[PoolRow, ...] = ()
    resident: tuple[ResidentRow, ...] = ()

    @property
    def num_tasks(self) -> int:
        return len(self.length)

    def devices_of(self, task: int) -> list[int]:
        """Return the devices on which a task can run without breaking the upper bound."""
        return [
            d
            for d, (length, head, tail) in enumerate(
                zip(self.length[task], self.head[task], self.tail[task], strict=True)
            )
            if length < _NEVER and head + length + tail <= self.upper
        ]


def choose_ticks(problem: Problem, grid: Ticks | None, horizon_s: float) -> Ticks:
    """Return exact ticks when times are whole and the horizon is not too long, else fine ones."""
    if grid is not None:
        exact = coarsest(problem, grid)
        if horizon_s * exact.per_s <= _MAX_EXACT_TICKS:
            return exact
    return Ticks(_ROUNDED_TICKS / horizon_s if horizon_s > 0 else 1.0, False)


def make_instance(relaxation: Relaxation, known: TimedPlan, lower_s: float) -> Instance:
    """Put a problem into ticks; ``known`` is any valid schedule."""
    problem = relaxation.problem
    ticks = choose_ticks(problem, relaxation.grid, known.makespan_s)
    column = relaxation.column
    groups = _interchangeable(problem)
    device = _relabel(known.device, groups)
    slack = 0 if ticks.is_exact else 2
    return Instance(
        ticks=ticks,
        num_devices=problem.num_devices,
        length=floor_table(problem.device_duration, ticks),
        head=floor_table(relaxation.head[:, column], ticks),
        tail=floor_table(relaxation.tail[:, column], ticks),
        edges=_edges(problem, ticks),
        lower=max(0, ticks.floor(lower_s)),
        upper=ticks.floor(known.makespan_s) + slack,
        interchangeable=groups,
        hint=(device, [ticks.floor(t) for t in known.start_s.tolist()]),
        is_node=problem.packing.packs if problem.packing is not None else (False,) * problem.num_devices,
        pools=tuple(_pools(problem)),
        resident=tuple(_residents(problem)),
    )


def _pools(problem: Problem) -> Iterator[PoolRow]:
    """Yield what nodes have, one row per node and resource, as small whole numbers where that is possible."""
    packing = problem.packing
    if packing is None:
        return
    for r, name in enumerate(packing.names):
        need = packing.need[:, r].astype(np.int64)
        divisor = int(np.gcd.reduce(need)) or 1
        for d in np.flatnonzero(packing.packs).tolist():
            capacity = packing.capacity[d, r]
            if name == SLOT or not need[np.isfinite(problem.device_duration[:, d])].sum() > capacity:
                continue
            have = int(capacity) // divisor
            if have <= _MAX_UNITS:
                yield PoolRow(d, (need // divisor).tolist(), have, True)
            else:
                coarse = -(-int(capacity) // _COARSE_UNITS)
                yield PoolRow(d, (-(-need // coarse)).tolist(), int(capacity) // coarse, False)


def _residents(problem: Problem) -> Iterator[ResidentRow]:
    """Yield the memory limits of devices where tasks keep bytes resident."""
    needs = MemoryNeeds.of(problem) if np.any(resident_of_tasks(problem.graph)) else None
    if needs is None:
        return
    resident, running = needs.resident.astype(np.int64).tolist(), needs.running.astype(np.int64).tolist()
    for d in np.flatnonzero(np.isfinite(needs.limit)).tolist():
        yield ResidentRow(d, resident, running, int(needs.limit[d]))


def floor_table(seconds: Floats, ticks: Ticks) -> list[list[int]]:
    """Return a table in ticks; what is infinite becomes a number that no horizon reaches."""
    return [[ticks.floor(t) if t < np.inf else _NEVER for t in row] for row in seconds.tolist()]


def _edges(problem: Problem, ticks: Ticks) -> list[tuple[int, int, list[list[int]] | None]]:
    arrays = problem.arrays
    edges: list[tuple[int, int, list[list[int]] | None]] = []
    for source, target, size in zip(*(column.tolist() for column in merged_edges(problem)), strict=True):
        costs = None
        if size > 0 and not problem.is_free_to_move:
            costs = floor_table(arrays.latency + size * arrays.inv_bandwidth, ticks)
        edges.append((source, target, costs))
    return edges


def _interchangeable(problem: Problem) -> list[list[int]]:
    """Return groups of at least two devices whose exchange changes no duration and no transfer."""
    groups: list[list[int]] = []
    for device in range(problem.num_devices):
        for group in groups:
            if _are_alike(problem, group[0], device):
                group.append(device)
                break
        else:
            groups.append([device])
    return [group for group in groups if len(group) > 1]


def _are_alike(problem: Problem, a: int, b: int) -> bool:
    arrays = problem.arrays
    if arrays.device_class[a] != arrays.device_class[b]:
        return False
    swap = np.arange(problem.num_devices)
    swap[[a, b]] = b, a
    return all(np.array_equal(matrix, matrix[swap][:, swap]) for matrix in (arrays.latency, arrays.inv_bandwidth))


def _relabel(device: Ints, groups: list[list[int]]) -> list[int]:
    """Rename interchangeable devices in the order of their first tasks, as symmetry breaking asks."""
    name = list(range(int(device.max(initial=0)) + 1))
    for group in groups:
        used = [d for d in dict.fromkeys(device.tolist()) if d in group]
        for new, old in zip(group, used, strict=False):
            name[old] = new
    return [name[d] for d in device.tolist()]
