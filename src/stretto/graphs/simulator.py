"""Execute a plan on a simulated cluster; ``graphs.reference`` defines what that means.

This facade checks the plan and picks the smallest kernel that is enough: a single pass for sequences,
the fast event loop for priorities, the general one for contention, memory and nodes that pack.
"""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.graphs.conditions import (
    Contention,
    Loads,
    MemoryLoad,
    check_options,
    checked_indices,
    fail_deadlock,
    fail_device,
    fail_memory,
    fail_order,
    memory_load,
    noise_factors,
    pack_load,
)
from stretto.graphs.kernels.simulate import run_sequence as sequence
from stretto.graphs.kernels.simulate.copies import make_copies
from stretto.graphs.kernels.simulate.run_events import STUCK, PlanArrays, run_events
from stretto.graphs.kernels.simulate.run_priority import run_priority
from stretto.graphs.memory.execution import CONTENTION_CODES, NO_LOAD, routes_of

_MOVED = ("item", "device", "start", "finish")


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    noise: float = 0.0,
    seed: int = 0,
    memory_limits: bool = True,
    record_transfers: bool = False,
) -> Schedule:
    """Execute a plan and return what happened.

    Parameters
    ----------
    discipline
        How devices follow the plan; None takes the plan's own.
    contention
        ``none``: transfers never disturb each other. ``fifo``: one at a time per link.
        ``fair``: links are shared max-min fair.
    noise
        Coefficient of variation of a lognormal factor on each task's duration, of mean 1.
    memory_limits
        Whether devices with finite memory refuse what does not fit.
    record_transfers
        Whether the schedule lists the movements of objects.

    Raises
    ------
    InvalidPlan
        The plan is incomplete, places a task where it cannot run, or its order deadlocks.
    Infeasible
        Memory is exhausted and nothing can proceed.
    """
    chosen = check_options(plan, discipline, contention, noise, seed)
    device, order = checked_indices(problem, plan)
    n = problem.num_tasks
    factor = noise_factors(n, noise, seed)
    rank, seconds = np.empty(n, dtype=np.int32), np.empty(n)
    status, at = sequence.check_plan(problem.arrays, device, order, factor, rank, seconds)
    if status == sequence.BAD_ORDER:
        fail_order(problem, plan, at)
    if status != sequence.OK:
        fail_device(problem, plan, at)
    if problem.graph.resources is not None:
        return _project(problem, device, order, factor, chosen, contention)
    load = memory_load(problem, plan) if memory_limits else None
    if contention != "none" or load is not None or problem.packing is not None:
        return _general(problem, device, order, rank, seconds, chosen, contention, load, record_transfers)
    start, finish = np.empty(n), np.empty(n)
    if chosen == "sequence":
        _run_sequence(problem, device, order, seconds, start, finish)
    else:
        ran = run_priority(problem.arrays, device, order, rank, seconds, start, finish)
        assert ran == n, "an acyclic graph always runs to its end"
    transfers = _uncontended_transfers(problem, device, finish) if record_transfers else None
    return Schedule(device, start, finish, chosen, contention, transfers)


def _run_sequence(problem: Problem, device: Ints, order: Ints, seconds: Floats, start: Floats, finish: Floats) -> None:
    if sequence.run_sequence(problem.arrays, device, order, seconds, start, finish) != sequence.DONE:
        fail_deadlock(problem, device, order, finish >= 0)


def _project(
    problem: Problem, device: Ints, order: Ints, factor: Floats, discipline: Discipline, contention: str
) -> Schedule:
    """Run a project with renewable resources by serial schedule generation, in the plan's order."""
    from stretto.graphs.kernels.simulate.project import serial_schedule

    resources = problem.graph.resources
    assert resources is not None
    arrays = problem.arrays
    if len(factor):
        arrays = arrays._replace(duration=arrays.duration * factor[:, None])
    start, finish = serial_schedule(arrays, resources.demand, resources.capacity, order)
    return Schedule(device, start, finish, discipline, contention)


def _general(
    problem: Problem,
    device: Ints,
    order: Ints,
    rank: Ints,
    seconds: Floats,
    discipline: Discipline,
    contention: str,
    load: MemoryLoad | None,
    record_transfers: bool,
) -> Schedule:
    status, time_s, where, task, used, tasks, copies = run_events(
        problem.arrays,
        PlanArrays(device, order, rank, seconds),
        discipline == "sequence",
        CONTENTION_CODES[contention],
        routes_of(problem),
        Loads(load if load is not None else NO_LOAD, pack_load(problem)),
    )
    start, finish = np.ascontiguousarray(tasks["start"]), np.ascontiguousarray(tasks["finish"])
    if status == STUCK:
        # Only an impossible order or a lack of memory stops the loop, and the order is to blame first.
        if discipline == "sequence":
            _run_sequence(problem, device, order, seconds, start, finish)
        assert load is not None
        fail_memory(problem, where, task, time_s, used, float(load.limit[where]))
    moved = copies[copies["moves"] == 1] if record_transfers else None
    transfers = None if moved is None else _transfers(problem, device, *(moved[name] for name in _MOVED))
    return Schedule(device, start, finish, discipline, contention, transfers)


def _transfers(problem: Problem, device: Ints, item: Ints, target: Ints, start: Floats, finish: Floats) -> Transfers:
    source = device[problem.arrays.object_task[item]]
    return Transfers(
        item.astype(np.int32),
        source,
        target.astype(np.int32),
        np.ascontiguousarray(start),
        np.ascontiguousarray(finish),
    )


def _uncontended_transfers(problem: Problem, device: Ints, finish: Floats) -> Transfers:
    """List the transfers of an execution in which each one starts when its producer ends."""
    arrays = problem.arrays
    copies = make_copies(arrays, device)
    moves = copies.moves == 1
    item, target = copies.object_index[moves], copies.device[moves]
    source = device[arrays.object_task[item]]
    start = finish[arrays.object_task[item]]
    duration = arrays.latency[source, target] + arrays.object_size[item] * arrays.inv_bandwidth[source, target]
    return _transfers(problem, device, item, target, start, start + duration)
