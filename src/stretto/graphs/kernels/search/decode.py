"""Turn an assignment and a topological order into times: each task appended to its device.

This is what the ``sequence`` discipline means without contention. It is the inner loop of
every search, so it can start in the middle of the order and give up early.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def tails(p):
    """Return the least time that must pass after each task ends: best kinds, free transfers."""
    n = p.release.shape[0]
    tail = np.zeros(n)
    for i in range(n - 1, -1, -1):
        v = p.topo[i]
        least = np.inf
        for c in range(p.duration.shape[1]):
            least = min(least, p.duration[v, c])
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            tail[u] = max(tail[u], tail[v] + least)
    return tail


# Inlined and over plain arrays: handing tuples to a helper costs more than these loops.
@njit(cache=True, nogil=True, inline="always")
def reads_arrive(in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, v, d, begin, skipped):
    """Return when all that task v reads is on device d, not before ``begin``; what task ``skipped`` makes is left out.

    Pass -1 to leave nothing out.
    """
    ready = begin
    for e in range(in_ptr[v], in_ptr[v + 1]):
        u = in_task[e]
        if u != skipped:
            at = finish[u]
            a = assign[u]
            if a != d and in_size[e] > 0.0:
                at += latency[a, d] + in_size[e] * inv_bandwidth[a, d]
            ready = max(ready, at)
    return ready


@njit(cache=True, nogil=True, inline="always")
def way_after(
    out_ptr, object_ptr, reader, sizes, latency, inv_bandwidth, duration, classes, assign, rest, v, d, skipped
):
    """Return the longest way from the end of v on device d, over its readers but ``skipped``, to the end of all."""
    way = 0.0
    for o in range(out_ptr[v], out_ptr[v + 1]):
        size = sizes[o]
        for r in range(object_ptr[o], object_ptr[o + 1]):
            w = reader[r]
            if w != skipped:
                b = assign[w]
                more = duration[w, classes[b]] + rest[w]
                if b != d and size > 0.0:
                    more += latency[d, b] + size * inv_bandwidth[d, b]
                way = max(way, more)
    return way


@njit(cache=True, nogil=True)
def ready_time(p, assign, finish, v, d):
    """Return when all that task v reads is on device d."""
    return reads_arrive(
        p.in_ptr, p.in_task, p.in_size, p.latency, p.inv_bandwidth, assign, finish, v, d, p.release[v], -1
    )


@njit(cache=True, nogil=True)
def best_device(p, assign, finish, free, v):
    """Return the device on which task v ends first; ties go to the lower index."""
    best = -1
    best_finish = np.inf
    for d in range(free.shape[0]):
        span = p.duration[v, p.device_class[d]]
        if span == np.inf or free[d] + span >= best_finish:
            continue
        end = max(free[d], ready_time(p, assign, finish, v, d)) + span
        if end < best_finish:
            best_finish = end
            best = d
    return best


@njit(cache=True, nogil=True, inline="always")
def _append(p, assign, start, finish, free, v):
    """Fill the times of task v behind what its device has; return its end."""
    d = assign[v]
    start[v] = max(free[d], ready_time(p, assign, finish, v, d))
    finish[v] = start[v] + p.duration[v, p.device_class[d]]
    free[d] = finish[v]
    return finish[v]


@njit(cache=True, nogil=True)
def decode(p, assign, order, start, finish):
    """Fill start and finish by appending tasks in order; return the makespan."""
    free = np.zeros(p.device_class.shape[0])
    makespan = 0.0
    for v in order:
        makespan = max(makespan, _append(p, assign, start, finish, free, v))
    return makespan


@njit(cache=True, nogil=True)
def decode_greedy(p, assign, order, start, finish):
    """Fill assignment, start and finish, giving each task in order the device that ends it first."""
    free = np.zeros(p.device_class.shape[0])
    makespan = 0.0
    for v in order:
        assign[v] = best_device(p, assign, finish, free, v)
        makespan = max(makespan, _append(p, assign, start, finish, free, v))
    return makespan
