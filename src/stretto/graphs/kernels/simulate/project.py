"""Projects (RCPSP): schedule generation under shared renewable resources.

The serial scheme (Kelley 1963; Kolisch 1996): take the tasks in order, start each as early as its
predecessors and the resources left allow. Free capacity is a list of segments in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.core.kernels.shapes import Floats, Ints


class CapacityProfile(NamedTuple):
    """Free capacity over time: segment k lasts from begin[k] to begin[k+1]; the last never ends."""

    begin: Floats  # [2n+2]
    free: Ints  # [2n+2, R]
    size: Ints  # [1] segments in use


class Project(NamedTuple):
    """A project as arrays: durations, demands, capacities, and precedences both ways."""

    duration: Floats  # [n]
    release: Floats  # [n]
    demand: Ints  # [n, R]
    capacity: Ints  # [R]
    in_ptr: Ints
    in_task: Ints
    out_ptr: Ints
    out_task: Ints


@njit(cache=True, nogil=True)
def new_profile(capacity, num_tasks):
    """Return a profile with everything free for ever."""
    size = 2 * num_tasks + 2
    return CapacityProfile(
        np.zeros(size), np.zeros((size, capacity.shape[0]), dtype=np.int32), np.zeros(1, dtype=np.int32)
    )


@njit(cache=True, nogil=True)
def clear(profile, capacity):
    """Free everything."""
    profile.size[0] = 1
    profile.begin[0] = 0.0
    for r in range(capacity.shape[0]):
        profile.free[0, r] = capacity[r]


@njit(cache=True, nogil=True)
def fits(profile, k, need):
    """Say whether segment k has the need free."""
    for r in range(need.shape[0]):
        if profile.free[k, r] < need[r]:
            return False
    return True


@njit(cache=True, nogil=True)
def earliest(profile, need, ready, span):
    """Return the earliest start not before ``ready`` with the need free for the whole span."""
    size = profile.size[0]
    k = 0
    while k + 1 < size and profile.begin[k + 1] <= ready:
        k += 1
    start = ready
    while k < size:
        if not fits(profile, k, need):
            k += 1
            start = profile.begin[k] if k < size else start
        elif k + 1 == size or profile.begin[k + 1] >= start + span:
            return start
        else:
            k += 1
    return start


@njit(cache=True, nogil=True)
def split(profile, at):
    """Return the segment that begins at this time, making it when there is none."""
    size = profile.size[0]
    k = size - 1
    while profile.begin[k] > at:
        k -= 1
    if profile.begin[k] == at:
        return k
    for j in range(size, k + 1, -1):
        profile.begin[j] = profile.begin[j - 1]
        for r in range(profile.free.shape[1]):
            profile.free[j, r] = profile.free[j - 1, r]
    profile.begin[k + 1] = at
    for r in range(profile.free.shape[1]):
        profile.free[k + 1, r] = profile.free[k, r]
    profile.size[0] = size + 1
    return k + 1


@njit(cache=True, nogil=True)
def occupy(profile, need, start, end):
    """Take the need from start to end."""
    if end <= start:
        return
    first = split(profile, start)
    last = split(profile, end)
    for k in range(first, last):
        for r in range(need.shape[0]):
            profile.free[k, r] -= need[r]


@njit(cache=True, nogil=True)
def serial(q, in_ptr, in_task, release, order, tail, threshold, profile, start, finish):
    """Run the serial scheme over the given precedences; return the makespan, or inf above the threshold."""
    clear(profile, q.capacity)
    makespan = 0.0
    for i in range(order.shape[0]):
        v = order[i]
        ready = release[v]
        for e in range(in_ptr[v], in_ptr[v + 1]):
            ready = max(ready, finish[in_task[e]])
        span = q.duration[v]
        begin = ready if span == 0.0 else earliest(profile, q.demand[v], ready, span)
        start[v] = begin
        finish[v] = begin + span
        occupy(profile, q.demand[v], begin, begin + span)
        makespan = max(makespan, finish[v])
        if finish[v] + tail[v] > threshold:
            return np.inf
    return makespan


@njit(cache=True, nogil=True)
def serial_schedule(p, demand, capacity, order):
    """Return start and finish of each task by the serial scheme in the given order."""
    n = order.shape[0]
    q = Project(p.duration[:, 0].copy(), p.release, demand, capacity, p.in_ptr, p.in_task, p.in_ptr, p.in_task)
    start = np.zeros(n)
    finish = np.zeros(n)
    profile = new_profile(capacity, n)
    serial(q, p.in_ptr, p.in_task, p.release, order, np.zeros(n), np.inf, profile, start, finish)
    return start, finish


@njit(cache=True, nogil=True)
def sort_by(key, order):
    """Sort the order by ascending key, in place and stably (insertion: it is nearly sorted)."""
    for i in range(1, order.shape[0]):
        v = order[i]
        j = i - 1
        while j >= 0 and key[order[j]] > key[v]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = v


@njit(cache=True, nogil=True)
def justify(q, order, zeros, profile, start, finish, scratch):
    """Shift all tasks right, then left again (Valls 2005); the makespan never grows.

    The order is rewritten by start times; start and finish are filled.
    """
    n = order.shape[0]
    serial(q, q.in_ptr, q.in_task, q.release, order, zeros, np.inf, profile, start, finish)
    for v in range(n):
        scratch[v] = -finish[v]
    backward = order[::-1].copy()
    sort_by(scratch, backward)
    serial(q, q.out_ptr, q.out_task, zeros, backward, zeros, np.inf, profile, start, finish)
    for v in range(n):
        scratch[v] = -finish[v]
    forward = backward[::-1].copy()
    sort_by(scratch, forward)
    makespan = serial(q, q.in_ptr, q.in_task, q.release, forward, zeros, np.inf, profile, start, finish)
    sort_by(start, forward)
    order[:] = forward
    return makespan


@njit(cache=True, nogil=True)
def shift(order, position, v, target):
    """Move v to a position of the order."""
    at = position[v]
    step = 1 if target > at else -1
    i = at
    while i != target:
        u = order[i + step]
        order[i] = u
        position[u] = i
        i += step
    order[target] = v
    position[v] = target


@njit(cache=True, nogil=True)
def anneal_project(q, tail, rng, num_steps, temperature, order, value, best_value, best_order):
    """Make ``num_steps`` proposals on the task order; return the current and the best makespan."""
    n = order.shape[0]
    position = np.empty(n, dtype=np.int32)
    for i in range(n):
        position[order[i]] = i
    start = np.zeros(n)
    finish = np.zeros(n)
    zeros = np.zeros(n)
    scratch = np.zeros(n)
    trial = np.empty(n, dtype=np.int32)
    profile = new_profile(q.capacity, n)
    for _ in range(num_steps):
        v = below(rng, n)
        low = 0
        for e in range(q.in_ptr[v], q.in_ptr[v + 1]):
            low = max(low, position[q.in_task[e]] + 1)
        high = n - 1
        for e in range(q.out_ptr[v], q.out_ptr[v + 1]):
            high = min(high, position[q.out_task[e]] - 1)
        if low == high:
            continue
        at = position[v]
        target = low + below(rng, high - low)
        if target >= at:
            target += 1
        shift(order, position, v, target)
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result = serial(q, q.in_ptr, q.in_task, q.release, order, tail, threshold, profile, start, finish)
        if result > threshold:
            shift(order, position, v, at)
            continue
        value = result
        if result < best_value or below(rng, 16) == 0:
            trial[:] = order
            justified = justify(q, trial, zeros, profile, start, finish, scratch)
            if justified <= value:
                value = justified
                order[:] = trial
                for i in range(n):
                    position[order[i]] = i
        if value < best_value:
            best_value = value
            best_order[:] = order
    return value, best_value
