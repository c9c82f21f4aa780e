"""Simulated annealing of plans that a work-conserving runtime will execute.

The moves are those of ``graphs.kernels.search.anneal``; each proposal is executed in full by the event loop of
``graphs.kernels.simulate.run_priority``, because what a device takes next depends on everything before it.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import uniform
from stretto.graphs.kernels.search.anneal import copy_solution, put_solution, trace_critical
from stretto.graphs.kernels.search.moves import propose_move, readers_of, revert
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
def load_conserving(p, s, assign, order):
    """Put a plan into the state, execute it, and return its makespan."""
    put_solution(s, assign, order)
    makespan = execute(p, s, np.empty(order.shape[0]))
    trace_critical(p, s, False)
    return makespan


@njit(cache=True, nogil=True)
def anneal_conserving(p, s, rng, num_steps, temperature, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature; return the current and the best makespan."""
    n = s.order.shape[0]
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    seconds = np.empty(n)
    for _ in range(num_steps):
        first = propose_move(p, s, reader_ptr, rng, False, change)
        if first == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result = execute(p, s, seconds)
        if result > threshold:
            revert(s.order, s.position, s.assign, change)
            continue
        value = result
        trace_critical(p, s, False)
        if result < best_value:
            best_value = result
            copy_solution(s, best_assign, best_order)
    return value, best_value
