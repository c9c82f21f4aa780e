"""Annealing of single tasks, in which a proposal costs the reads of one task and not a decoding of the plan.

Move task v to another device, or to another place of the order between what it reads and what reads it. Whatever stands
before its new place keeps its start, whatever stands behind keeps its way to the end; only the window between the old
and the new place must be looked at. Every path that became longer leads through v, so the new makespan is at most the
larger of the old one and of the longest path through v: a proposal is accepted or rejected exactly, before anything is
decoded. The idea is that of ``graphs.kernels.search.tabu``; tasks stay within their part of the order, so nothing has
to be timed without v.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.graphs.kernels.search.path_state import (
    neighbor_before,
    relocate_path,
    rest_of,
    start_of,
    trace_path,
)

REACH = 48  # positions that a task is shifted by, at most
STALE = 16  # accepted moves after which the critical path is traced again


@njit(cache=True, nogil=True, _nrt=False)
def draw_target(p, s, rng, v):
    """Return a position for v: its own, or one nearby between its producers and its readers."""
    at = s.position[v]
    if below(rng, 2) == 0:
        return at
    low = max(0, at - REACH)
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        low = max(low, s.position[p.in_task[e]] + 1)
    high = min(s.order.shape[0] - 1, at + REACH)
    for r in range(p.object_ptr[p.out_ptr[v]], p.object_ptr[p.out_ptr[v + 1]]):
        high = min(high, s.position[p.object_reader[r]] - 1)
    return low + below(rng, high - low + 1)


@njit(cache=True, nogil=True, _nrt=False)
def open_window(p, s, v, target):
    """Time the tasks between v and its new place without v: their ends, or their ways to the end.

    The old values are kept in ``scratch`` for :func:`close_window`.
    """
    at = s.position[v]
    for i in range(at + 1, target + 1):
        x = s.order[i]
        s.scratch[x] = s.finish[x]
        a = s.before[x] if s.before[x] != v else s.before[v]
        d = s.assign[x]
        s.finish[x] = start_of(p, s, x, d, a) + p.duration[x, p.device_class[d]]
    for i in range(at - 1, target - 1, -1):
        x = s.order[i]
        s.scratch[x] = s.rest[x]
        b = s.after[x] if s.after[x] != v else s.after[v]
        s.rest[x] = rest_of(p, s, x, s.assign[x], b)


@njit(cache=True, nogil=True, _nrt=False)
def close_window(s, v, target):
    """Put back the times that :func:`open_window` changed."""
    at = s.position[v]
    for i in range(at + 1, target + 1):
        s.finish[s.order[i]] = s.scratch[s.order[i]]
    for i in range(target, at):
        s.rest[s.order[i]] = s.scratch[s.order[i]]


@njit(cache=True, nogil=True, _nrt=False)
def neighbors(s, v, d, target):
    """Return the tasks of device d between which v stands at a position of the order."""
    a = neighbor_before(s, d, target + 1 if target > s.position[v] else target, v)
    b = s.after[a] if a >= 0 else s.first[d]
    if b == v:
        b = s.after[v]
    return a, b


@njit(cache=True, nogil=True, _nrt=False)
def path_through(p, s, v, d, a, b):
    """Return the longest path through v on device d between a and b."""
    return start_of(p, s, v, d, a) + p.duration[v, p.device_class[d]] + rest_of(p, s, v, d, b)


@njit(cache=True, nogil=True, _nrt=False)
def has_room(s, v, d):
    """Say whether a device has room for a task beside its residents and what its tasks need; its own one has it."""
    return s.assign[v] == d or s.used[d] + s.resident[v] + max(s.most[d], s.running[v]) <= s.limit[d]


@njit(cache=True, nogil=True, _nrt=False)
def draw_device(p, s, rng, v, target):
    """Return a device for v at a position, with its path: the best of all, a neighbor's, or any; or -1."""
    m = s.first.shape[0]
    home = s.assign[v]
    stays = target == s.position[v]
    kind = below(rng, 4)
    if kind < 2:
        best = -1
        best_path = np.inf
        for d in range(m):
            if (stays and d == home) or p.duration[v, p.device_class[d]] == np.inf or not has_room(s, v, d):
                continue
            a, b = neighbors(s, v, d, target)
            path = path_through(p, s, v, d, a, b)
            if path < best_path:
                best = d
                best_path = path
        return best
    d = home
    reads = p.in_ptr[v + 1] - p.in_ptr[v]
    base = p.object_ptr[p.out_ptr[v]]
    links = reads + p.object_ptr[p.out_ptr[v + 1]] - base
    if kind == 2 and links > 0:
        k = below(rng, links)
        u = p.in_task[p.in_ptr[v] + k] if k < reads else p.object_reader[base + k - reads]
        d = s.assign[u]
    elif stays or below(rng, 2) == 0:
        d = below(rng, m)
    if (stays and d == home) or p.duration[v, p.device_class[d]] == np.inf or not has_room(s, v, d):
        return -1
    return d


@njit(cache=True, nogil=True, _nrt=False)
def anneal_paths(p, s, rng, num_steps, temperature, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature; return the current and the best makespan."""
    n = s.order.shape[0]
    stale = 0
    for _ in range(num_steps):
        v = s.critical[below(rng, s.critical[n])] if below(rng, 4) > 0 else np.int32(below(rng, n))
        target = draw_target(p, s, rng, v)
        open_window(p, s, v, target)
        d = draw_device(p, s, rng, v, target)
        a = np.int32(-1)
        b = np.int32(-1)
        path = np.inf
        if d >= 0:
            a, b = neighbors(s, v, d, target)
            path = path_through(p, s, v, d, a, b)
        close_window(s, v, target)
        if path > value - temperature * np.log(1.0 - uniform(rng)):
            continue
        value = relocate_path(p, s, v, np.int32(d), target, a, b)
        stale += 1
        if value < best_value:
            best_value = value
            stale = STALE
            for i in range(n):
                best_assign[i] = s.assign[i]
                best_order[i] = s.order[i]
        if stale >= STALE:
            trace_path(p, s)
            stale = 0
    return value, best_value


@njit(cache=True, nogil=True, _nrt=False)
def path_rise(p, s, rng, num_samples, value):
    """Return by how much proposals that lengthen the makespan do so on average; nothing is changed."""
    n = s.order.shape[0]
    total = 0.0
    count = 0
    for _ in range(num_samples):
        v = s.critical[below(rng, s.critical[n])] if below(rng, 4) > 0 else np.int32(below(rng, n))
        target = draw_target(p, s, rng, v)
        open_window(p, s, v, target)
        d = draw_device(p, s, rng, v, target)
        if d >= 0:
            a, b = neighbors(s, v, d, target)
            path = path_through(p, s, v, d, a, b)
            if path > value:
                total += path - value
                count += 1
        close_window(s, v, target)
    return total / max(1, count)
