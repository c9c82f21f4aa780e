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


@njit(cache=True, nogil=True)
def ready_time(p, assign, finish, v, d):
    """Return when all that task v reads is on device d."""
    ready = p.release[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        at = finish[u]
        a = assign[u]
        if a != d:
            size = p.in_size[e]
            if size > 0.0:
                at += p.latency[a, d] + size * p.inv_bandwidth[a, d]
        ready = max(ready, at)
    return ready


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


@njit(cache=True, nogil=True)
def decode(p, assign, order, start, finish):
    """Fill start and finish by appending tasks in order; return the makespan."""
    free = np.zeros(p.device_class.shape[0])
    makespan = 0.0
    for i in range(order.shape[0]):
        v = order[i]
        d = assign[v]
        start[v] = max(free[d], ready_time(p, assign, finish, v, d))
        finish[v] = start[v] + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
        makespan = max(makespan, finish[v])
    return makespan


@njit(cache=True, nogil=True)
def decode_greedy(p, assign, order, start, finish):
    """Fill assignment, start and finish, giving each task in order the device that ends it first."""
    free = np.zeros(p.device_class.shape[0])
    makespan = 0.0
    for i in range(order.shape[0]):
        v = order[i]
        d = best_device(p, assign, finish, free, v)
        assign[v] = d
        start[v] = max(free[d], ready_time(p, assign, finish, v, d))
        finish[v] = start[v] + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
        makespan = max(makespan, finish[v])
    return makespan
