"""What an improver of placements sees when it visits a task, and how long a placement takes."""

# Not cached on disk: the cache of these files would not see changes in the kernels of the package.
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.doppler.kernels.features import standardise
from stretto.graphs.kernels.search.decode import decode


class ImproveRecord(NamedTuple):
    """Visits of an improver: B episodes of n steps, one for each task in a fixed order."""

    start: Any  # [B, n] i32 the placement that was there
    taken: Any  # [B, n] i32 the device each task was moved to, by task
    target: Any  # [B, n, m] u8 by step
    y: Any  # [B, n, m, Fp] f32 by step
    allowed: Any  # [B, n, m] u8 by step
    makespan_s: Any  # [B, n + 1] f64 before each step, and behind the last
    log_prob: Any  # [B, n] f32 by step


@njit(nogil=True)
def times(p, order, assign, makespan):
    """Fill the makespans of placements, one per row, all executed in one order."""
    n = order.shape[0]
    start = np.empty(n)
    finish = np.empty(n)
    for b in range(assign.shape[0]):
        makespan[b] = decode(p, assign[b], order, start, finish)


@njit(nogil=True)
def visit(p, fixed, assign, v, y, allowed):
    """Fill the features and the mask of all devices for task v, under one placement per row of ``assign``.

    Features: the load of the device without v; what v reads from there, and sends there; the time that
    v's data would take to it; whether v is there; the run time there. Where v is, it may always stay.
    """
    m = p.device_class.shape[0]
    for b in range(assign.shape[0]):
        y[b] = 0.0
        load = np.zeros(m)
        used = np.zeros(m)
        for u in range(assign.shape[1]):
            if u != v:
                d = assign[b, u]
                load[d] += p.duration[u, p.device_class[d]]
                used[d] += fixed.resident[u]
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            a = assign[b, p.in_task[e]]
            y[b, a, 1] += fixed.object_move_s[p.in_object[e]]
            if p.in_size[e] > 0.0:
                for d in range(m):
                    y[b, d, 3] += p.latency[a, d] + p.in_size[e] * p.inv_bandwidth[a, d]
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
                y[b, assign[b, p.object_reader[e]], 2] += fixed.object_move_s[o]
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            is_there = assign[b, v] == d
            y[b, d, 0] = load[d]
            y[b, d, 4] = 1.0 if is_there else 0.0
            if fixed.weight[v] > 0.0 and 0.0 < span < np.inf:
                y[b, d, 5] = np.log(span / fixed.weight[v])
            fits = used[d] + fixed.resident[v] + fixed.need[v] <= fixed.limit[d]
            allowed[b, d] = 1 if span < np.inf and (fits or is_there) else 0
        for f in range(4):
            standardise(y[b], f, m)
