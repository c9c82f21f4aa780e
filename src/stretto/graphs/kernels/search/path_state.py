"""A plan under search with times from the front and from the back, both kept up to date by following changes.

``order`` is topological over reads and over the devices' sequences. What stands before a position cannot depend on what
stands behind it, so a change of a task's place is followed forward (earliest starts) and backward (longest way to
the end) only as far as times really change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.kernels.search.decode import reads_arrive, way_after
from stretto.graphs.kernels.search.moves import move_to


class PathState(NamedTuple):
    """An order with its devices' sequences as linked lists, and times from both ends."""

    assign: np.ndarray  # [n]
    order: np.ndarray  # [n]
    position: np.ndarray  # [n]
    before: np.ndarray  # [n] task that precedes on the device, or -1
    after: np.ndarray  # [n] task that follows, or -1
    first: np.ndarray  # [m] first task of each device, or -1
    last: np.ndarray  # [m]
    start: np.ndarray  # [n]
    finish: np.ndarray  # [n]
    rest: np.ndarray  # [n] longest way from a task's end to the end of all
    dirty: np.ndarray  # [n] u8 whose times must be computed again
    critical: np.ndarray  # [n + 1] tasks of one critical path; the last entry is their number
    scratch: np.ndarray  # [n] times of a window, saved
    resident: np.ndarray  # [n] bytes that stay where a task is placed
    running: np.ndarray  # [n] bytes that must be there while it runs
    limit: np.ndarray  # [m] bytes; inf = none
    used: np.ndarray  # [m] resident bytes
    most: np.ndarray  # [m] most bytes that a task which has been there since loading needs while it runs


def new_path_state(
    num_tasks: int, num_devices: int, resident: np.ndarray, running: np.ndarray, limit: np.ndarray
) -> PathState:
    """Allocate a state."""
    assign, order, position, before, after = (np.zeros(num_tasks, dtype=np.int32) for _ in range(5))
    first, last = (np.full(num_devices, -1, dtype=np.int32) for _ in range(2))
    start, finish, rest, scratch = (np.zeros(num_tasks) for _ in range(4))
    dirty, critical = np.zeros(num_tasks, dtype=np.uint8), np.zeros(num_tasks + 1, dtype=np.int32)
    links = (assign, order, position, before, after, first, last)
    return PathState(
        *links, start, finish, rest, dirty, critical, scratch, resident, running, limit, *np.zeros((2, num_devices))
    )


@njit(cache=True, nogil=True, _nrt=False)
def load_paths(p, s, assign, order):
    """Put a plan with a topological order into the state; return its makespan."""
    n = order.shape[0]
    s.first[:] = -1
    s.last[:] = -1
    s.used[:] = 0.0
    s.most[:] = 0.0
    for i in range(n):
        v = order[i]
        d = assign[v]
        s.order[i] = v
        s.position[v] = i
        s.assign[v] = d
        s.before[v] = s.last[d]
        s.after[v] = -1
        if s.last[d] >= 0:
            s.after[s.last[d]] = v
        else:
            s.first[d] = v
        s.last[d] = v
        s.used[d] += s.resident[v]
        s.most[d] = max(s.most[d], s.running[v])
        s.start[v] = start_of(p, s, v, d, s.before[v])
        s.finish[v] = s.start[v] + p.duration[v, p.device_class[d]]
    for i in range(n - 1, -1, -1):
        v = s.order[i]
        s.rest[v] = rest_of(p, s, v, s.assign[v], s.after[v])
    s.dirty[:] = 0
    trace_path(p, s)
    return makespan_of(s)


@njit(cache=True, nogil=True, inline="always", _nrt=False)
def start_of(p, s, v, d, a):
    """Return when v can start on device d behind task a (or -1)."""
    begin = p.release[v]
    if a >= 0:
        begin = max(begin, s.finish[a])
    return reads_arrive(p.in_ptr, p.in_task, p.in_size, p.latency, p.inv_bandwidth, s.assign, s.finish, v, d, begin, -1)


@njit(cache=True, nogil=True, inline="always", _nrt=False)
def rest_of(p, s, v, d, b):
    """Return the longest way from the end of v on device d, before task b (or -1), to the end of all."""
    way = way_after(
        p.out_ptr,
        p.object_ptr,
        p.object_reader,
        p.object_size,
        p.latency,
        p.inv_bandwidth,
        p.duration,
        p.device_class,
        s.assign,
        s.rest,
        v,
        d,
        -1,
    )
    if b >= 0:
        way = max(way, p.duration[b, p.device_class[d]] + s.rest[b])
    return way


@njit(cache=True, nogil=True, _nrt=False)
def makespan_of(s):
    """Return the latest end: of the last task of some device."""
    value = 0.0
    for d in range(s.last.shape[0]):
        if s.last[d] >= 0:
            value = max(value, s.finish[s.last[d]])
    return value


@njit(cache=True, nogil=True, _nrt=False)
def neighbor_before(s, d, at, v):
    """Return the last task of device d that stands before position ``at``, other than v; or -1."""
    if s.first[d] < 0 or s.position[s.first[d]] >= at:
        return np.int32(-1)
    if s.position[s.last[d]] < at:
        a = s.last[d]
    else:
        i = at - 1
        while s.assign[s.order[i]] != d:
            i -= 1
        a = s.order[i]
    return s.before[a] if a == v else a


@njit(cache=True, nogil=True, _nrt=False)
def put_between(s, v, d, a, b):
    """Take v out of its device's sequence and put it on device d between neighbors a and b."""
    u = s.before[v]
    w = s.after[v]
    home = s.assign[v]
    if u >= 0:
        s.after[u] = w
    else:
        s.first[home] = w
    if w >= 0:
        s.before[w] = u
    else:
        s.last[home] = u
    s.assign[v] = d
    s.used[home] -= s.resident[v]
    s.used[d] += s.resident[v]
    s.most[d] = max(s.most[d], s.running[v])
    s.before[v] = a
    s.after[v] = b
    if a >= 0:
        s.after[a] = v
    else:
        s.first[d] = v
    if b >= 0:
        s.before[b] = v
    else:
        s.last[d] = v


@njit(cache=True, nogil=True, inline="always", _nrt=False)
def _mark(s, v):
    """Note that the times of a task may change; return 1 where that is new, for -1 and known ones 0."""
    if v < 0 or s.dirty[v] == 1:
        return 0
    s.dirty[v] = 1
    return 1


@njit(cache=True, nogil=True, _nrt=False)
def relocate_path(p, s, v, d, target, a, b):
    """Move v to a position of the order, on device d between a and b, and follow the changes; return the makespan."""
    at = s.position[v]
    old_before = s.before[v]
    old_after = s.after[v]
    move_to(s.order, s.position, v, target)
    put_between(s, v, d, a, b)
    _follow_forward(p, s, v, old_after, min(at, target))
    _follow_backward(p, s, v, old_before, max(at, target))
    return makespan_of(s)


@njit(cache=True, nogil=True, _nrt=False)
def _follow_forward(p, s, v, old_after, first):
    """Compute starts again from position ``first``: of v, its readers and what follows on both devices."""
    n = s.order.shape[0]
    open_tasks = _mark(s, v) + _mark(s, s.after[v]) + _mark(s, old_after)
    for r in range(p.object_ptr[p.out_ptr[v]], p.object_ptr[p.out_ptr[v + 1]]):
        open_tasks += _mark(s, p.object_reader[r])
    i = first
    while open_tasks > 0 and i < n:
        x = s.order[i]
        i += 1
        if s.dirty[x] == 0:
            continue
        s.dirty[x] = 0
        open_tasks -= 1
        d = s.assign[x]
        s.start[x] = start_of(p, s, x, d, s.before[x])
        end = s.start[x] + p.duration[x, p.device_class[d]]
        if end != s.finish[x]:
            s.finish[x] = end
            open_tasks += _mark(s, s.after[x])
            for r in range(p.object_ptr[p.out_ptr[x]], p.object_ptr[p.out_ptr[x + 1]]):
                open_tasks += _mark(s, p.object_reader[r])


@njit(cache=True, nogil=True, _nrt=False)
def _follow_backward(p, s, v, old_before, last):
    """Compute the ways to the end again from position ``last`` down: of v, what it reads and what precedes it."""
    open_tasks = _mark(s, v) + _mark(s, s.before[v]) + _mark(s, old_before)
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        open_tasks += _mark(s, p.in_task[e])
    i = last
    while open_tasks > 0 and i >= 0:
        x = s.order[i]
        i -= 1
        if s.dirty[x] == 0:
            continue
        s.dirty[x] = 0
        open_tasks -= 1
        d = s.assign[x]
        way = rest_of(p, s, x, d, s.after[x])
        if way != s.rest[x] or x == v:
            s.rest[x] = way
            open_tasks += _mark(s, s.before[x])
            for e in range(p.in_ptr[x], p.in_ptr[x + 1]):
                open_tasks += _mark(s, p.in_task[e])


@njit(cache=True, nogil=True, _nrt=False)
def trace_path(p, s):
    """Write one critical path, from the last task to end back to what made each wait."""
    n = s.order.shape[0]
    v = np.int32(-1)
    for d in range(s.last.shape[0]):
        u = s.last[d]
        if u >= 0 and (v < 0 or s.finish[u] > s.finish[v]):
            v = u
    count = 0
    while v >= 0 and count < n:
        s.critical[count] = v
        count += 1
        v = _cause(p, s, v)
    s.critical[n] = count


@njit(cache=True, nogil=True, _nrt=False)
def _cause(p, s, v):
    """Return the task whose end decided the start of v: the one before it on its device, or a producer; or -1."""
    u = s.before[v]
    if u >= 0 and s.finish[u] >= s.start[v]:
        return u
    d = s.assign[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        arrival = s.finish[u]
        if s.assign[u] != d and p.in_size[e] > 0.0:
            arrival += p.latency[s.assign[u], d] + p.in_size[e] * p.inv_bandwidth[s.assign[u], d]
        if arrival >= s.start[v]:
            return u
    return np.int32(-1)
