"""Execute plans within memory as far as they go: what planners judge by, and what the search chains need for it."""

from __future__ import annotations

import numpy as np

from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.conditions import (
    Contention,
    Loads,
    MemoryLoad,
    check_options,
    checked_indices,
    memory_load,
    pack_load,
    shared_links,
)
from stretto.graphs.kernels.search.decode_packed import new_scratch
from stretto.graphs.kernels.search.within_memory import Execution
from stretto.graphs.kernels.simulate import run_sequence as sequence
from stretto.graphs.kernels.simulate.links import Routes
from stretto.graphs.kernels.simulate.run_events import PlanArrays, run_events
from stretto.graphs.memory.limits import NO_LIMITS, binding_needs, open_room, placing_limits

CONTENTION_CODES = {"none": 0, "fifo": 1, "fair": 2}
NO_LOAD = MemoryLoad(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))


def progress(
    problem: Problem, plan: Plan, *, discipline: Discipline | None, contention: Contention
) -> tuple[int, float]:
    """Execute a plan within memory as far as it goes; return how many tasks could not run, and the last end.

    A plan whose residents alone exceed a limit runs nothing.
    """
    chosen = check_options(plan, discipline, contention, 0.0, 0)
    device, order = checked_indices(problem, plan)
    n = problem.num_tasks
    rank, seconds = np.empty(n, dtype=np.int32), np.empty(n)
    status, _ = sequence.check_plan(problem.arrays, device, order, np.empty(0), rank, seconds)
    try:
        load = memory_load(problem, plan)
    except Infeasible:
        return n, np.inf
    if status != sequence.OK:
        return n, np.inf
    _, _, _, _, _, tasks, _ = run_events(
        problem.arrays,
        PlanArrays(device, order, rank, seconds),
        chosen == "sequence",
        CONTENTION_CODES[contention],
        routes_of(problem),
        Loads(load if load is not None else NO_LOAD, pack_load(problem)),
    )
    waiting = np.count_nonzero(tasks["is_started"] == 0)
    return int(waiting), float(tasks["finish"].max())


def routes_of(problem: Problem) -> Routes:
    """Return the links that transfers share, for the event loop."""
    links = shared_links(problem)
    if links is None:
        none = np.empty(0, dtype=np.int32)
        return Routes(np.ones(1, dtype=np.int64), none, none, np.empty(0))
    return Routes(
        np.zeros(1, dtype=np.int64),
        np.ascontiguousarray(links.route_ptr, dtype=np.int32),
        np.ascontiguousarray(links.route, dtype=np.int32),
        np.ascontiguousarray(links.bandwidth, dtype=np.float64),
    )


def execution_of(problem: Problem) -> Execution:
    """Return what executing the proposals of a search takes; where memory cannot bind, its limits are empty."""
    n, m = problem.num_tasks, problem.num_devices
    have, needs = placing_limits(problem), binding_needs(problem)
    need, capacity = (have.need, have.capacity) if have is not None else (np.ones((n, 1)), np.ones((m, 1)))
    room = NO_LIMITS if needs is None else open_room(problem, needs)
    memory = NO_LOAD if needs is None else MemoryLoad(needs.limit, np.zeros(m), room.own, room.size)
    return Execution(
        new_scratch(need, capacity),
        room,
        routes_of(problem),
        Loads(memory, pack_load(problem)),
        np.zeros(m),
        np.zeros(m),
        np.zeros(n, dtype=np.int32),
        np.zeros(n),
    )
