"""What the simulator and its reference share: options, noise, memory, links, and errors of impossible plans."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, NoReturn

import numpy as np

from stretto.core.cluster import Links
from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import resident_of_devices, resident_of_tasks
from stretto.core.kernels.shapes import Flags
from stretto.core.magnitudes import NOISE
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.problem import Problem
from stretto.core.provenance import are_objects_in_memory
from stretto.errors import Infeasible, InvalidInput, InvalidPlan, UnknownName

Contention = Literal["none", "fifo", "fair"]
CONTENTIONS: tuple[Contention, ...] = ("none", "fifo", "fair")
_MOST_NAMED = 5


class MemoryLoad(NamedTuple):
    """Limits and needs in whole bytes, so that sums of them are exact in float64."""

    limit: Floats  # [m]
    resident: Floats  # [m]
    task: Floats  # [n]
    object: Floats  # [O]


class PackLoad(NamedTuple):
    """What tasks need of nodes and what nodes have, memory aside; in whole units (``core/nodes/packing.py``)."""

    packs: Flags  # [m] 1 = a node; empty where no device is
    need: Floats  # [n, R]
    capacity: Floats  # [m, R]


class Loads(NamedTuple):
    """What limits an execution besides devices and links."""

    memory: MemoryLoad
    packs: PackLoad


def pack_load(problem: Problem) -> PackLoad:
    """Return needs and capacities for the event loop; empty where every device runs one task at a time."""
    packing = problem.packing
    if packing is None:
        none = np.empty((problem.num_tasks, 0))
        return PackLoad(np.empty(0, dtype=np.uint8), none, np.empty((problem.num_devices, 0)))
    return PackLoad(np.array(packing.packs, dtype=np.uint8), *packing.beside_memory)


def check_options(plan: Plan, discipline: str | None, contention: str, noise: float, seed: int) -> Discipline:
    """Return the discipline to execute under; raise where an option is unknown or out of range."""
    chosen = discipline if discipline is not None else plan.discipline
    if chosen not in DISCIPLINES:
        raise UnknownName("discipline", str(chosen), DISCIPLINES)
    if contention not in CONTENTIONS:
        raise UnknownName("contention", str(contention), CONTENTIONS)
    if not (noise >= 0 and math.isfinite(noise)):
        raise InvalidInput(f"{noise} must be finite and not negative", field="noise")
    NOISE.check(noise, "noise", field="noise")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    return chosen


def noise_factors(num_tasks: int, noise: float, seed: int) -> Floats:
    """Return a lognormal factor of mean 1 and coefficient of variation ``noise`` per task; empty for none."""
    if noise == 0:
        return np.empty(0)
    variance = math.log1p(noise * noise)
    draws = np.random.default_rng(seed).standard_normal(num_tasks)
    return np.exp(math.sqrt(variance) * draws - variance / 2)


def memory_load(problem: Problem, plan: Plan) -> MemoryLoad | None:
    """Return limits and needs, or None where nothing is limited; raise where residents alone exceed a limit."""
    graph, devices = problem.graph, problem.cluster.devices
    limit = np.array([device.memory_bytes for device in devices])
    if not np.any(np.isfinite(limit)):
        return None
    zeros = np.zeros(graph.num_tasks)
    task = np.ceil(graph.memory_bytes) if graph.memory_bytes is not None else zeros
    resident_of_task = resident_of_tasks(graph)
    resident = resident_of_devices(graph, np.asarray(plan.assignment), len(devices))
    over = np.flatnonzero(resident > limit)
    if len(over):
        d = int(over[0])
        largest = int(np.argmax(np.where(plan.assignment == d, resident_of_task, -1.0)))
        raise Infeasible(
            f"device {devices[d].name!r}: the tasks assigned to it keep {resident[d]:,.0f} bytes resident, "
            f"more than its {limit[d]:,.0f}; the largest is {graph.task_name(largest)!r} "
            f"with {resident_of_task[largest]:,.0f}"
        )
    has_bytes = graph.transfer_unit == "bytes" and (problem.packing is None or are_objects_in_memory(graph))
    objects = np.ceil(graph.object_size) if has_bytes else np.zeros(graph.num_objects)
    return MemoryLoad(np.floor(limit), resident, task, objects)


def shared_links(problem: Problem) -> Links | None:
    """Return the links that transfers share, or None when each pair of devices has its own."""
    return None if problem.graph.transfer_unit == "seconds" else problem.cluster.links


def checked_indices(problem: Problem, plan: Plan) -> tuple[Ints, Ints]:
    """Return assignment and order as the kernels want them; raise where shape or type is wrong."""
    columns = []
    for what, values in (("assignment", plan.assignment), ("order", plan.order)):
        array = np.asarray(values)
        if array.shape != (problem.num_tasks,):
            raise InvalidPlan(f"the plan's {what} has shape {array.shape}, expected ({problem.num_tasks},)")
        if array.dtype.kind not in "iu":
            raise InvalidPlan(f"the plan's {what} holds {array.dtype} values, expected integers")
        columns.append(np.ascontiguousarray(array, dtype=np.int32))
    return columns[0], columns[1]


def fail_device(problem: Problem, plan: Plan, task: int) -> NoReturn:
    name, device = problem.graph.task_name(task), int(plan.assignment[task])
    if not 0 <= device < problem.num_devices:
        raise InvalidPlan(
            f"task {name!r} is assigned to device {device}, but the last device is {problem.num_devices - 1}"
        )
    where = problem.cluster.devices[device]
    raise InvalidPlan(f"task {name!r} cannot run on device {where.name!r} ({where.kind}), to which it is assigned")


def fail_order(problem: Problem, plan: Plan, position: int) -> NoReturn:
    task = int(plan.order[position])
    if not 0 <= task < problem.num_tasks:
        raise InvalidPlan(
            f"position {position} of the order names task {task}, but there are only {problem.num_tasks} tasks"
        )
    raise InvalidPlan(
        f"task {problem.graph.task_name(task)!r} appears twice in the order, again at position {position}"
    )


def fail_deadlock(
    problem: Problem, device: Ints, order: Ints, is_finished: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> NoReturn:
    """Say which task each device waits to run, and which device it waits for."""
    heads: dict[int, int] = {}
    for task in order.tolist():
        if not is_finished[task]:
            heads.setdefault(int(device[task]), task)
    arrays, graph = problem.arrays, problem.graph
    lines = []
    for where, task in sorted(heads.items())[:_MOST_NAMED]:
        producers = arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]].tolist()
        for producer in (p for p in producers if not is_finished[p]):
            lines.append(
                f"{problem.cluster.devices[where].name} waits with {graph.task_name(task)!r} "
                f"for {graph.task_name(producer)!r} on {problem.cluster.devices[int(device[producer])].name}"
            )
            break
    more = ", ..." if len(heads) > _MOST_NAMED else ""
    raise InvalidPlan(f"the planned order cannot be executed in sequence: {'; '.join(lines)}{more}")


def fail_memory(problem: Problem, device: int, task: int, time_s: float, used: float, limit: float) -> NoReturn:
    raise Infeasible(
        f"memory of device {problem.cluster.devices[device].name!r} is exhausted at {time_s:.6g} s: "
        f"{used:,.0f} of {limit:,.0f} bytes are held, and task {problem.graph.task_name(task)!r} cannot proceed; "
        "spread the tasks over more devices or raise the limit"
    )
