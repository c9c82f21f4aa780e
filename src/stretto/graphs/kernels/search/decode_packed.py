"""Turn an assignment and a topological order into times on nodes that pack, and search over both.

Tasks of a node start in order, each as soon as its data is there and enough is free: what the ``sequence`` discipline
means without contention. Nothing starts before what stands earlier, so of a node's past only the tasks still running
matter: a heap of their ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.core.kernels.rng import below, uniform
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Longs, Words
from stretto.graphs.kernels.search.anneal import AnnealState, copy_solution, put_solution
from stretto.graphs.kernels.search.decode import reads_arrive
from stretto.graphs.kernels.search.moves import propose_move, readers_of, revert


class PackScratch(NamedTuple):
    """What decoding needs besides the solution: needs, capacities, and room for the running tasks of each node."""

    need: Floats  # [n, R]
    capacity: Floats  # [m, R]
    free: Floats  # [m, R]
    last_start: Floats  # [m]
    num_running: Longs  # [m]
    base: Longs  # [m+1] where the heap of each node begins
    end: Floats  # [n] heaps of ends
    task: Longs  # [n] and the tasks that end


def new_scratch(need: Floats, capacity: Floats) -> PackScratch:
    """Allocate room for decoding."""
    n, m = len(need), len(capacity)
    return PackScratch(
        need,
        capacity,
        capacity.copy(),
        np.zeros(m),
        np.zeros(m, dtype=np.int64),
        np.zeros(m + 1, dtype=np.int64),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def decode_packed(
    p: Arrays, w: PackScratch, assign: Ints, order: Ints, tail: Floats, threshold: float, start: Floats, finish: Floats
) -> float:
    """Fill start and finish; return the makespan, or inf as soon as it must exceed the threshold.

    ``tail`` is the least time from the end of each task to the end of all; it is not read while the threshold is inf.
    """
    n = order.shape[0]
    m, num_resources = w.capacity.shape
    need, free, last_start, num_running, base = w.need, w.free, w.last_start, w.num_running, w.base
    in_ptr, in_task, in_size, latency, inv_bandwidth = p.in_ptr, p.in_task, p.in_size, p.latency, p.inv_bandwidth
    duration, device_class, release = p.duration, p.device_class, p.release
    base[:] = 0
    for v in range(n):
        base[assign[v] + 1] += 1
    for d in range(m):
        base[d + 1] += base[d]
        last_start[d] = 0.0
        num_running[d] = 0
        for r in range(num_resources):
            free[d, r] = w.capacity[d, r]
    makespan = 0.0
    bounded = threshold < np.inf
    for v in order:
        d = assign[v]
        at = reads_arrive(
            in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, v, d, max(release[v], last_start[d]), -1
        )
        # Tasks that have ended by then give back; later ends are waited for while something is short.
        while num_running[d] > 0:
            first = w.end[base[d]]
            if first > at:
                fits = True
                for r in range(num_resources):
                    if need[v, r] > free[d, r]:
                        fits = False
                        break
                if fits:
                    break
                at = first
            u = w.task[base[d]]
            for r in range(num_resources):
                free[d, r] += need[u, r]
            drop_timed(w.end, w.task, base[d], num_running[d])
            num_running[d] -= 1
        end = at + duration[v, device_class[d]]
        start[v] = at
        finish[v] = end
        last_start[d] = at
        push_timed(w.end, w.task, base[d], num_running[d], end, v)
        num_running[d] += 1
        for r in range(num_resources):
            free[d, r] -= need[v, r]
        makespan = max(makespan, end)
        if bounded and end + tail[v] > threshold:
            return np.inf
    return makespan


@njit(cache=True, nogil=True)
def load_packed(p: Arrays, w: PackScratch, s: AnnealState, assign: Ints, order: Ints) -> float:
    """Put a solution into the state, decode it, and return its makespan."""
    put_solution(s, assign, order)
    makespan = decode_packed(p, w, s.assign, s.order, s.start, np.inf, s.start, s.finish)
    trace_packed(p, s)
    return makespan


@njit(cache=True, nogil=True)
def trace_packed(p: Arrays, s: AnnealState) -> None:
    """Walk back from the last task to end, along whatever made each task wait, and note the path as critical.

    A task waits for the data that comes last, for a task of its node that ends as it starts, or for one that starts
    with it and stands before it.
    """
    n = s.order.shape[0]
    v = s.order[0]
    for u in range(n):
        if s.finish[u] > s.finish[v]:
            v = u
    count = 0
    while v >= 0 and count < n:
        s.critical[count] = v
        count += 1
        v = _packed_blocker(p, s, v)
    s.critical[n] = count


@njit(cache=True, nogil=True)
def _packed_blocker(p: Arrays, s: AnnealState, v: int) -> int:
    """Return the task whose end decided the start of v, or -1."""
    d = s.assign[v]
    begin = s.start[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        at = s.finish[u]
        if s.assign[u] != d and p.in_size[e] > 0.0:
            at += p.latency[s.assign[u], d] + p.in_size[e] * p.inv_bandwidth[s.assign[u], d]
        if at >= begin:
            return int(u)
    last = -1
    for u in range(s.order.shape[0]):
        if s.assign[u] == d and s.position[u] < s.position[v]:
            if s.finish[u] == begin:
                return u
            if s.start[u] == begin and begin > p.release[v]:
                last = u
    return last


@njit(cache=True, nogil=True)
def accept(
    p: Arrays,
    s: AnnealState,
    rng: Words,
    start: Floats,
    finish: Floats,
    result: float,
    best_value: float,
    best_assign: Ints,
    best_order: Ints,
) -> float:
    """Take over the times of an accepted proposal; return the best makespan."""
    s.start[:] = start
    s.finish[:] = finish
    if below(rng, 4) == 0 or result < best_value:
        trace_packed(p, s)
    if result < best_value:
        copy_solution(s, best_assign, best_order)
        return result
    return best_value


@njit(cache=True, nogil=True)
def anneal_packed(
    p: Arrays,
    s: AnnealState,
    w: PackScratch,
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
        result = decode_packed(p, w, s.assign, s.order, tail, threshold, start, finish)
        if result > threshold:
            revert(s.order, s.position, s.assign, change)
            continue
        value = result
        best_value = accept(p, s, rng, start, finish, result, best_value, best_assign, best_order)
    return value, best_value


@njit(cache=True, nogil=True)
def mean_rise_packed(p: Arrays, s: AnnealState, w: PackScratch, rng: Words, num_samples: int, value: float) -> float:
    """Return by how much moves that lengthen the plan in the state do so on average; zero where none does."""
    n = s.order.shape[0]
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    start, finish = np.empty(n), np.empty(n)
    total, count = 0.0, 0
    for _ in range(num_samples):
        if propose_move(p, s, reader_ptr, rng, False, change) == n:
            continue
        result = decode_packed(p, w, s.assign, s.order, start, np.inf, start, finish)
        revert(s.order, s.position, s.assign, change)
        if result > value:
            total += result - value
            count += 1
    return total / max(1, count)
