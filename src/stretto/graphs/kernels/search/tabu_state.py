"""Device sequences as linked lists, timed from both ends, whole or with one task taken out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.kernels.search.decode import reads_arrive, way_after

FIRST_WIDTH = 4  # critical tasks weighed per move in the first descent


class TabuState(NamedTuple):
    """Device sequences as linked lists, with times from the front and from the back."""

    assign: np.ndarray  # [n]
    before: np.ndarray  # [n] task that precedes on the device, or -1
    after: np.ndarray  # [n] task that follows, or -1
    first: np.ndarray  # [m] first task of each device, or -1
    order: np.ndarray  # [n] topological over reads and sequences
    position: np.ndarray  # [n]
    start: np.ndarray  # [n]
    finish: np.ndarray  # [n]
    rest: np.ndarray  # [n] longest way from a task's end to the end of all
    peak: np.ndarray  # [n] largest finish among the first i+1 of the order
    barred: np.ndarray  # [n, m] move number until which a task must not enter a device
    clock: np.ndarray  # [3] moves made; moves since this descent last improved; tasks evaluated per move
    local: np.ndarray  # [1] best makespan of this descent


def new_tabu_state(num_tasks: int, num_devices: int) -> TabuState:
    """Allocate a state."""
    assign, before, after, order, position = (np.zeros(num_tasks, dtype=np.int32) for _ in range(5))
    start, finish, rest, peak = (np.zeros(num_tasks) for _ in range(4))
    first = np.zeros(num_devices, dtype=np.int32)
    barred, clock = np.zeros((num_tasks, num_devices), dtype=np.int64), np.zeros(3, dtype=np.int64)
    times = (start, finish, rest, peak)
    return TabuState(assign, before, after, first, order, position, *times, barred, clock, np.zeros(1))


@njit(cache=True, nogil=True)
def load_tabu(p, s, assign, order):
    """Put a solution into the state and return its makespan."""
    n = order.shape[0]
    last = np.full(s.first.shape[0], -1, dtype=np.int32)
    s.first[:] = -1
    for i in range(n):
        v = order[i]
        d = assign[v]
        s.assign[v] = d
        s.before[v] = last[d]
        s.after[v] = -1
        if last[d] >= 0:
            s.after[last[d]] = v
        else:
            s.first[d] = v
        last[d] = v
    s.barred[:] = 0
    s.clock[:] = 0
    s.clock[2] = FIRST_WIDTH
    s.local[0] = np.inf
    return time_all(p, s, np.empty(n, dtype=np.int32))


@njit(cache=True, nogil=True)
def time_all(p, s, missing):
    """Sort topologically and time the sequences from the front and from the back; return the makespan."""
    order, position, assign, before, after = s.order, s.position, s.assign, s.before, s.after
    start, finish, rest, peak = s.start, s.finish, s.rest, s.peak
    in_ptr, in_task, in_size = p.in_ptr, p.in_task, p.in_size
    out_ptr, object_ptr, reader, sizes = p.out_ptr, p.object_ptr, p.object_reader, p.object_size
    latency, inv_bandwidth, duration, classes = p.latency, p.inv_bandwidth, p.duration, p.device_class
    release = p.release
    n = order.shape[0]
    tail = 0
    for v in range(n):
        missing[v] = in_ptr[v + 1] - in_ptr[v] + (1 if before[v] >= 0 else 0)
        if missing[v] == 0:
            order[tail] = v
            tail += 1
    makespan = 0.0
    for i in range(n):
        v = order[i]
        position[v] = i
        d = assign[v]
        begin = release[v]
        if before[v] >= 0:
            begin = max(begin, finish[before[v]])
        begin = reads_arrive(in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, v, d, begin, -1)
        start[v] = begin
        finish[v] = begin + duration[v, classes[d]]
        makespan = max(makespan, finish[v])
        peak[i] = makespan
        w = after[v]
        if w >= 0:
            missing[w] -= 1
            if missing[w] == 0:
                order[tail] = w
                tail += 1
        for r in range(object_ptr[out_ptr[v]], object_ptr[out_ptr[v + 1]]):
            w = reader[r]
            missing[w] -= 1
            if missing[w] == 0:
                order[tail] = w
                tail += 1
    for i in range(n - 1, -1, -1):
        v = order[i]
        d = assign[v]
        way = 0.0
        w = after[v]
        if w >= 0:
            way = duration[w, classes[d]] + rest[w]
        onward = way_after(
            out_ptr, object_ptr, reader, sizes, latency, inv_bandwidth, duration, classes, assign, rest, v, d, -1
        )
        way = max(way, onward)
        rest[v] = way
    return makespan


@njit(cache=True, nogil=True)
def take_out(p, s, v, start, finish, rest):
    """Time all others without v, into the arrays given; return their makespan."""
    order, position, assign, before, after = s.order, s.position, s.assign, s.before, s.after
    in_ptr, in_task, in_size = p.in_ptr, p.in_task, p.in_size
    out_ptr, object_ptr, reader, sizes = p.out_ptr, p.object_ptr, p.object_reader, p.object_size
    latency, inv_bandwidth, duration, classes = p.latency, p.inv_bandwidth, p.duration, p.device_class
    release = p.release
    old_start, old_finish, old_rest = s.start, s.finish, s.rest
    n = order.shape[0]
    at_v = position[v]
    for i in range(at_v):
        u = order[i]
        start[u] = old_start[u]
        finish[u] = old_finish[u]
    makespan = s.peak[at_v - 1] if at_v > 0 else 0.0
    for i in range(at_v + 1, n):
        w = order[i]
        d = assign[w]
        begin = release[w]
        u = before[w]
        if u == v:
            u = before[v]
        if u >= 0:
            begin = max(begin, finish[u])
        begin = reads_arrive(in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, w, d, begin, v)
        start[w] = begin
        finish[w] = begin + duration[w, classes[d]]
        makespan = max(makespan, finish[w])
        rest[w] = old_rest[w]
    for i in range(at_v - 1, -1, -1):
        u = order[i]
        d = assign[u]
        way = 0.0
        w = after[u]
        if w == v:
            w = after[v]
        if w >= 0:
            way = duration[w, classes[d]] + rest[w]
        onward = way_after(
            out_ptr, object_ptr, reader, sizes, latency, inv_bandwidth, duration, classes, assign, rest, u, d, v
        )
        way = max(way, onward)
        rest[u] = way
    return makespan


@njit(cache=True, nogil=True)
def relocate(s, v, d, a):
    """Move v behind task a (or to the front, for -1) of device d."""
    before, after, first, assign = s.before, s.after, s.first, s.assign
    u = before[v]
    w = after[v]
    if u >= 0:
        after[u] = w
    else:
        first[assign[v]] = w
    if w >= 0:
        before[w] = u
    assign[v] = d
    if a >= 0:
        b = after[a]
        after[a] = v
    else:
        b = first[d]
        first[d] = v
    before[v] = a
    after[v] = b
    if b >= 0:
        before[b] = v
