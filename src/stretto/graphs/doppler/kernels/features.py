"""What the two policies see at a step: features of the candidates, and of the devices for one task."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.doppler.kernels.memory import bytes_on

#: Readers of a task that look-ahead tries; of a task with more only the first ones are tried.
MAX_READERS = 16


@njit(cache=True, nogil=True, _nrt=False)
def standardise(table, column, count):
    """Shift and scale the first ``count`` rows of a column to mean 0 and deviation 1; equal values become 0."""
    mean = 0.0
    for i in range(count):
        mean += table[i, column]
    mean /= count
    square = 0.0
    for i in range(count):
        gap = table[i, column] - mean
        square += gap * gap
    deviation = np.sqrt(square / count)
    if deviation <= 1e-6 * abs(mean) + 1e-30:
        for i in range(count):
            table[i, column] = 0.0
        return
    for i in range(count):
        table[i, column] = (table[i, column] - mean) / deviation


@njit(cache=True, nogil=True, _nrt=False)
def candidate_features(p, fixed, work):
    """Fill ``work.x``: the five static features, readiness, best finish, regret, delay, siblings placed."""
    count = work.counters[0]
    m = work.free.shape[0]
    x = work.x
    first = np.inf
    for i in range(count):
        v = work.window[i]
        for f in range(5):
            x[i, f] = fixed.raw[v, f]
        soonest = np.inf
        best = np.inf
        second = np.inf
        best_start = np.inf
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf:
                continue
            soonest = min(soonest, work.ready[v, d])
            begin = max(work.ready[v, d], work.free[d])
            best_start = min(best_start, begin)
            end = begin + span
            if end < best:
                second = best
                best = end
            elif end < second:
                second = end
        x[i, 5] = soonest
        x[i, 6] = best
        x[i, 7] = second - best if second < np.inf else 0.0
        x[i, 8] = best_start
        first = min(first, best_start)
        siblings = 0.0
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            for e in range(p.object_ptr[o], min(p.object_ptr[o + 1], p.object_ptr[o] + MAX_READERS)):
                c = p.object_reader[e]
                num_read = p.in_ptr[c + 1] - p.in_ptr[c]
                siblings = max(siblings, 1.0 - (work.missing[c] - 1.0) / num_read)
        x[i, 9] = siblings
    for i in range(count):
        x[i, 8] = np.log1p((x[i, 8] - np.float32(first)) / fixed.scale_s)
    for f in range(8):
        standardise(x, f, count)


@njit(cache=True, nogil=True, _nrt=False)
def device_masks(p, fixed, work, assign, v, symmetric):
    """Fill ``work.allowed`` for task v; return how many devices it may go to.

    Memory limits are soft: a task that fits nowhere may go to the device with the most memory left.
    """
    m = work.free.shape[0]
    num = 0
    for d in range(m):
        work.allowed[d] = 0
        if p.duration[v, p.device_class[d]] == np.inf:
            continue
        if fixed.is_limited == 1 and bytes_on(p, fixed, work, assign, v, d) > fixed.limit[d]:
            continue
        if symmetric == 1 and work.num_on[d] == 0:
            taken = False
            for a in range(fixed.twin[d], d):
                if fixed.twin[a] == fixed.twin[d] and work.num_on[a] == 0:
                    taken = True
                    break
            if taken:
                continue
        work.allowed[d] = 1
        num += 1
    if num == 0:
        best = -1
        for d in range(m):
            if p.duration[v, p.device_class[d]] < np.inf and (
                best < 0 or fixed.limit[d] - work.used[d] > fixed.limit[best] - work.used[best]
            ):
                best = d
        work.allowed[best] = 1
        num = 1
    return num


@njit(cache=True, nogil=True, _nrt=False)
def try_readers(p, fixed, work, v, d, end):
    """Return when the readers of v would all have ended if v ended on d then, and with the path behind them."""
    m = work.free.shape[0]
    latest = end
    path = end
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        size = p.object_size[o]
        for e in range(p.object_ptr[o], min(p.object_ptr[o + 1], p.object_ptr[o] + MAX_READERS)):
            c = p.object_reader[e]
            best = np.inf
            for a in range(m):
                span = p.duration[c, p.device_class[a]]
                begin = max(work.ready[c, a], work.free[a])
                arrival = end
                if a != d and size > 0.0:
                    arrival = end + (p.latency[d, a] + size * p.inv_bandwidth[d, a])
                best = min(best, max(begin, arrival) + span)
            latest = max(latest, best)
            path = max(path, best + fixed.level[c] - fixed.weight[c])
    return latest, path


@njit(cache=True, nogil=True, _nrt=False)
def device_features(p, fixed, work, assign, v):
    """Fill ``work.y``, ``start_on`` and ``look_on`` for task v."""
    m = work.free.shape[0]
    y = work.y
    for d in range(m):
        for f in range(y.shape[1]):
            y[d, f] = 0.0
        y[d, 0] = work.load[d]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        a = assign[u]
        if y[a, 1] == 0.0 or work.start[u] < y[a, 2]:
            y[a, 2] = work.start[u]
        y[a, 1] += fixed.weight[u]
        y[a, 3] = max(y[a, 3], np.float32(work.finish[u]))
        if p.in_size[e] > 0.0:
            for d in range(m):
                y[d, 7] += p.latency[a, d] + p.in_size[e] * p.inv_bandwidth[a, d]
    least_end = np.inf
    least_look = np.inf
    least_path = np.inf
    for d in range(m):
        span = p.duration[v, p.device_class[d]]
        begin = max(work.ready[v, d], work.free[d])
        work.start_on[d] = begin
        y[d, 4] = begin
        if work.allowed[d] == 0:
            work.look_on[d] = np.inf
            continue
        latest, path = try_readers(p, fixed, work, v, d, begin + span)
        work.look_on[d] = latest
        work.score[d] = path
        least_end = min(least_end, begin + span)
        least_look = min(least_look, latest)
        least_path = min(least_path, path)
    for d in range(m):
        span = p.duration[v, p.device_class[d]]
        y[d, 12] = 1.0 if work.num_on[d] == 0 else 0.0
        left = 1.0
        if fixed.limit[d] < np.inf:
            left = (fixed.limit[d] - work.used[d]) / fixed.limit[d] if fixed.limit[d] > 0.0 else 0.0
        y[d, 11] = left
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            for e in range(p.object_ptr[o], min(p.object_ptr[o + 1], p.object_ptr[o] + MAX_READERS)):
                y[d, 10] += work.near[p.object_reader[e], d]
        if work.allowed[d] == 0:
            continue
        y[d, 5] = np.log1p((work.start_on[d] + span - least_end) / fixed.scale_s)
        if fixed.weight[v] > 0.0 and span > 0.0:
            y[d, 6] = np.log(span / fixed.weight[v])
        y[d, 8] = np.log1p((work.look_on[d] - least_look) / fixed.scale_s)
        y[d, 9] = np.log1p((work.score[d] - least_path) / fixed.scale_s)
        y[d, 13] = np.log1p((work.start_on[d] - work.free[d]) / fixed.scale_s)
        y[d, 14] = y[d, 10]
    for f in range(5):
        standardise(y, f, m)
    standardise(y, 7, m)
    standardise(y, 10, m)
    for d in range(m):
        y[d, 14] = np.log1p(y[d, 14] / fixed.scale_s)
