"""Simulated annealing of plans that a work-conserving runtime will execute.

The moves are those of ``graphs.kernels.search.anneal``; each proposal is executed in full by the event loop of
``graphs.kernels.simulate.run_priority``, because what a device takes next depends on everything before it.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import uniform
from stretto.graphs.kernels.search.moves import propose, readers_of, revert
from stretto.graphs.kernels.simulate.run_priority import run_priority


@njit(cache=True, nogil=True)
def execute(p, s, seconds):
    """Execute the plan in the state; fill its times and return the makespan."""
    n = s.order.shape[0]
    for v in range(n):
        seconds[v] = p.duration[v, p.device_class[s.assign[v]]]
    run_priority(p, s.assign, s.order, s.position, seconds, s.start, s.finish)
    makespan = 0.0
    for v in range(n):
        makespan = max(makespan, s.finish[v])
    return makespan


@njit(cache=True, nogil=True)
def trace_conserving(p, s):
    """Walk back from the last task to end, along arrivals and along the device's previous task."""
    n = s.order.shape[0]
    v = 0
    for u in range(n):
        if s.finish[u] > s.finish[v]:
            v = u
    count = 0
    while v >= 0 and count < n:
        s.critical[count] = v
        count += 1
        v = held_up_by(p, s, v)
    s.critical[n] = count


@njit(cache=True, nogil=True)
def held_up_by(p, s, v):
    """Return the task whose end decided the start of v: a producer, or one on its device; or -1."""
    d = s.assign[v]
    begin = s.start[v]
    # Written out as in anneal.blocker: a helper would count references to all arrays of both tuples at every task.
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        at = s.finish[u]
        a = s.assign[u]
        if a != d and p.in_size[e] > 0.0:
            at += p.latency[a, d] + p.in_size[e] * p.inv_bandwidth[a, d]
        if at >= begin:
            return u
    for u in range(s.order.shape[0]):
        if u != v and s.assign[u] == d and s.finish[u] == begin and s.start[u] < begin:
            return u
    return -1


@njit(cache=True, nogil=True)
def load_conserving(p, s, assign, order):
    """Put a plan into the state, execute it, and return its makespan."""
    n = order.shape[0]
    for i in range(n):
        s.order[i] = order[i]
        s.position[order[i]] = i
        s.assign[i] = assign[i]
    seconds = np.empty(n)
    makespan = execute(p, s, seconds)
    trace_conserving(p, s)
    return makespan


@njit(cache=True, nogil=True)
def anneal_conserving(p, s, rng, num_steps, temperature, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature; return the current and the best makespan."""
    n = s.order.shape[0]
    order, position, assign, path = s.order, s.position, s.assign, s.critical
    in_ptr, in_task, reader, duration, classes = p.in_ptr, p.in_task, p.object_reader, p.duration, p.device_class
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    seconds = np.empty(n)
    for _ in range(num_steps):
        first = propose(
            order, position, assign, path, in_ptr, in_task, reader_ptr, reader, duration, classes, rng, False, change
        )
        if first == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result = execute(p, s, seconds)
        if result > threshold:
            revert(order, position, assign, change)
            continue
        value = result
        trace_conserving(p, s)
        if result < best_value:
            best_value = result
            for i in range(n):
                best_assign[i] = s.assign[i]
                best_order[i] = s.order[i]
    return value, best_value
