"""Large-neighbourhood moves: undo a stretch of the order and rebuild it greedily.

A window of the order is re-sorted by noisy remaining path lengths, its tasks are placed one by
one where they end first, and the rest of the order is decoded as it stood.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.graphs.kernels.search.anneal import copy_solution, evaluate, store_checkpoints, trace_critical, undo

MAX_WINDOW = 128


@njit(cache=True, nogil=True)
def rebuild_window(p, s, tail, first, size, noise, rng, key, missing):
    """Re-sort the window topologically by decreasing noisy tail."""
    last = first + size
    for i in range(first, last):
        v = s.order[i]
        key[i - first] = tail[v] * (1.0 + noise * (uniform(rng) - 0.5))
        count = 0
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            at = s.position[p.in_task[e]]
            if at >= first:
                count += 1
        missing[i - first] = count
    window = s.order[first:last].copy()
    for i in range(first, last):
        best = -1
        for k in range(size):
            if missing[k] == 0 and (best < 0 or key[k] > key[best]):
                best = k
        v = window[best]
        missing[best] = -1
        s.order[i] = v
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            for r in range(p.object_ptr[o], p.object_ptr[o + 1]):
                at = s.position[p.object_reader[r]]
                if at < last:
                    missing[at - first] -= 1
    # Positions change only now: the search above reads the old ones.
    for i in range(first, last):
        s.position[s.order[i]] = i


@njit(cache=True, nogil=True)
def ruin_and_recreate(
    p, s, tail, rng, num_steps, temperature, max_size, noise, value, best_value, best_assign, best_order
):
    """Make ``num_steps`` window moves at one temperature; return the current and the best makespan."""
    n = s.order.shape[0]
    key = np.empty(MAX_WINDOW)
    missing = np.empty(MAX_WINDOW, dtype=np.int32)
    old_order = np.empty(MAX_WINDOW, dtype=np.int32)
    limit = min(max_size, n, MAX_WINDOW)
    for _ in range(num_steps):
        size = min(limit, 2 + below(rng, max(1, limit - 1)))
        if below(rng, 2) == 0:
            centre = s.position[s.critical[below(rng, s.critical[n])]]
        else:
            centre = below(rng, n)
        first = min(max(0, centre - below(rng, size)), n - size)
        for i in range(size):
            old_order[i] = s.order[first + i]
        rebuild_window(p, s, tail, first, size, noise, rng, key, missing)
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result, reached = evaluate(p, s, tail, first, threshold, first + size)
        if result <= threshold:
            value = result
            store_checkpoints(s, first)
            trace_critical(p, s, True)
            if result < best_value:
                best_value = result
                copy_solution(s, best_assign, best_order)
        else:
            undo(s, first, reached, True)
            for i in range(size):
                v = old_order[i]
                s.order[first + i] = v
                s.position[v] = first + i
    return value, best_value
