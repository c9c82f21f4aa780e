"""Search over plans on nodes and within memory: every proposal is executed, and what does not run is rejected.

A proposal is decoded in sequence first, memory aside: memory can only delay starts, so what is too late without it is
too late with it. What passes is executed by the event loop of ``simulate.run_events``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Words
from stretto.graphs.kernels.construct.arrival import ready_everywhere
from stretto.graphs.kernels.construct.profile import find_fit, open_profile, take
from stretto.graphs.kernels.construct.room import Room, tally
from stretto.graphs.kernels.search.anneal import AnnealState, put_solution
from stretto.graphs.kernels.search.decode_packed import PackScratch, accept, decode_packed, trace_packed
from stretto.graphs.kernels.search.genetic import cross, mutate, tournament
from stretto.graphs.kernels.search.moves import propose_move, readers_of, revert
from stretto.graphs.kernels.search.ruin import MAX_WINDOW, rebuild_window
from stretto.graphs.kernels.simulate.links import Routes
from stretto.graphs.kernels.simulate.run_events import DONE, PlanArrays, run_events

if TYPE_CHECKING:
    from stretto.graphs.conditions import Loads


class Execution(NamedTuple):
    """What executing a proposal takes: room to decode, memory, loads of the event loop, and scratch."""

    packs: PackScratch
    room: Room
    routes: Routes
    loads: Loads
    kept: Floats  # [m]
    most: Floats  # [m]
    rank: Ints  # [n]
    seconds: Floats  # [n]


@njit(cache=True, nogil=True)
def value_within(
    p: Arrays, x: Execution, assign: Ints, order: Ints, tail: Floats, threshold: float, start: Floats, finish: Floats
) -> float:
    """Fill start and finish; return the makespan, or inf where it exceeds the threshold or memory stops the run."""
    limited = x.room.limit.shape[0] > 0
    if limited and not tally(x.room, assign, x.kept, x.most):
        return np.inf
    value = decode_packed(p, x.packs, assign, order, tail, threshold, start, finish)
    if not limited or value > threshold:
        return float(value)
    for i in range(order.shape[0]):
        v = order[i]
        x.rank[v] = i
        x.seconds[v] = p.duration[v, p.device_class[assign[v]]]
    x.loads.memory.resident[:] = x.kept
    plan = PlanArrays(assign, order, x.rank, x.seconds)
    status, _, _, _, _, tasks, _ = run_events(p, plan, True, 0, x.routes, x.loads)
    if status != DONE:
        return np.inf
    value = 0.0
    for v in range(order.shape[0]):
        start[v] = tasks[v].start
        finish[v] = tasks[v].finish
        value = max(value, finish[v])
    return float(value) if value <= threshold else np.inf


@njit(cache=True, nogil=True)
def load_within(p: Arrays, x: Execution, s: AnnealState, assign: Ints, order: Ints) -> float:
    """Put a solution into the state, execute it, and return its makespan, inf where it does not run."""
    put_solution(s, assign, order)
    makespan = value_within(p, x, s.assign, s.order, s.start, np.inf, s.start, s.finish)
    trace_packed(p, s)
    return makespan


@njit(cache=True, nogil=True)
def anneal_within(
    p: Arrays,
    s: AnnealState,
    x: Execution,
    tail: Floats,
    rng: Words,
    num_steps: int,
    temperature: float,
    value: float,
    best_value: float,
    best_assign: Ints,
    best_order: Ints,
) -> tuple[float, float]:
    """Make ``num_steps`` proposals at one temperature; return the current and the best makespan."""
    n = s.order.shape[0]
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    start, finish = np.empty(n), np.empty(n)
    for _ in range(num_steps):
        if propose_move(p, s, reader_ptr, rng, False, change) == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result = value_within(p, x, s.assign, s.order, tail, threshold, start, finish)
        if not result <= threshold or result == np.inf:
            revert(s.order, s.position, s.assign, change)
            continue
        value = result
        best_value = accept(p, s, rng, start, finish, result, best_value, best_assign, best_order)
    return value, best_value


@njit(cache=True, nogil=True)
def ruin_within(
    p: Arrays,
    s: AnnealState,
    x: Execution,
    tail: Floats,
    rng: Words,
    num_steps: int,
    temperature: float,
    max_size: int,
    noise: float,
    value: float,
    best_value: float,
    best_assign: Ints,
    best_order: Ints,
) -> tuple[float, float]:
    """Re-sort windows of the order and place their tasks anew by earliest finish; otherwise as annealing."""
    n = s.order.shape[0]
    key, missing = np.empty(MAX_WINDOW), np.empty(MAX_WINDOW, dtype=np.int32)
    old_order, old_assign = np.empty(MAX_WINDOW, dtype=np.int32), np.empty(MAX_WINDOW, dtype=np.int32)
    start, finish = np.empty(n), np.empty(n)
    limit = min(max_size, n, MAX_WINDOW)
    for _ in range(num_steps):
        size = min(limit, 2 + below(rng, max(1, limit - 1)))
        center = s.position[s.critical[below(rng, s.critical[n])]] if below(rng, 2) == 0 else below(rng, n)
        first = min(max(0, center - below(rng, size)), n - size)
        for i in range(size):
            old_order[i] = s.order[first + i]
            old_assign[i] = s.assign[old_order[i]]
        rebuild_window(p, s, tail, first, size, noise, rng, key, missing)
        _replace_window(p, s, x, first, size)
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result = value_within(p, x, s.assign, s.order, tail, threshold, start, finish)
        if result <= threshold and result < np.inf:
            value = result
            best_value = accept(p, s, rng, start, finish, result, best_value, best_assign, best_order)
            continue
        for i in range(size):
            v = old_order[i]
            s.order[first + i] = v
            s.position[v] = first + i
            s.assign[v] = old_assign[i]
    return value, best_value


@njit(cache=True, nogil=True)
def _replace_window(p: Arrays, s: AnnealState, x: Execution, first: int, size: int) -> None:
    """Give the tasks of a window, in order, the nodes on which they finish first beside what runs before them."""
    m = x.packs.capacity.shape[0]
    finish = s.finish.copy()
    row = np.empty(m)
    begin = np.inf
    for i in range(first, first + size):
        begin = min(begin, s.start[s.order[i]])
    profile = open_profile(x.packs.capacity, first + size)
    for i in range(first):
        v = s.order[i]
        if finish[v] > begin:
            take(profile, s.assign[v], s.start[v], finish[v], x.packs.need[v])
    for i in range(first, first + size):
        v = s.order[i]
        ready_everywhere(p, s.assign, finish, v, row)
        start, best = 0.0, np.inf
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if row[d] + span < best:
                at = find_fit(profile, d, max(row[d], begin), span, x.packs.need[v], np.inf)
                if at + span < best:
                    start, best = at, at + span
                    s.assign[v] = d
        finish[v] = best
        take(profile, s.assign[v], start, best, x.packs.need[v])


@njit(cache=True, nogil=True)
def evolve_within(
    p: Arrays, x: Execution, assigns: Ints, orders: Ints, values: Floats, num_children: int, mutations: int, rng: Words
) -> int:
    """Breed children as ``genetic.evolve`` does, each executed; return the best member."""
    n = orders.shape[1]
    assign, order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    start, finish = np.empty(n), np.empty(n)
    for _ in range(num_children):
        a, b = tournament(values, rng), tournament(values, rng)
        cross(assigns[a], orders[a], assigns[b], orders[b], below(rng, n + 1), assign, order)
        mutate(p, assign, order, 1 + below(rng, mutations), rng)
        value = value_within(p, x, assign, order, start, np.inf, start, finish)
        loser, other = below(rng, values.shape[0]), below(rng, values.shape[0])
        if values[other] > values[loser]:
            loser = other
        if value <= values[loser]:  # the best member can only lose to a better one
            assigns[loser] = assign
            orders[loser] = order
            values[loser] = value
    return int(np.argmin(values))
