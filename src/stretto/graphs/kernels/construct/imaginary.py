"""BIL: the imaginary makespan of each ready task on each device decides both choices."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import first_ready, open_devices, ready_everywhere
from stretto.graphs.kernels.construct.rounds import release_readers


@njit(cache=True, nogil=True)
def schedule_by_imaginary_level(p: Arrays, behind: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Schedule all tasks by best imaginary level; return as ``rounds.schedule_in_rounds`` does.

    Parameters
    ----------
    behind
        The optimistic cost table; the best imaginary level of a task on a device is its
        duration there plus its entry.
    """
    n = p.release.shape[0]
    m = p.device_class.shape[0]
    assign, start, finish, free, makespan = open_devices(p)
    task = np.empty(n, dtype=np.int32)
    room = 64
    ready = np.empty((room, m))
    missing, fresh, num_fresh = first_ready(p)
    count = 0
    order = np.empty(n, dtype=np.int32)
    for i in range(n):
        if count + num_fresh > room:
            room = 2 * (count + num_fresh)
            larger = np.empty((room, m))
            larger[:count] = ready[:count]
            ready = larger
        for f in range(num_fresh):
            task[count] = fresh[f]
            ready_everywhere(p, assign, finish, fresh[f], ready[count])
            count += 1
        k = 0
        most = -np.inf
        for j in range(count):
            num_able = _imaginary(p, task[j], ready[j], free, behind, count, makespan)
            value = largest(makespan) if count >= num_able else smallest(makespan, count)
            if value > most or (value == most and task[j] < task[k]):
                k, most = j, value
        v = task[k]
        order[i] = v
        _imaginary(p, v, ready[k], free, behind, count, makespan)
        d = int(np.argmin(makespan))
        assign[v] = d
        start[v] = max(ready[k, d], free[d])
        finish[v] = start[v] + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
        count -= 1
        if k != count:
            task[k] = task[count]
            ready[k] = ready[count]
        num_fresh = release_readers(p, v, missing, fresh)
    return order, assign, start, finish


@njit(cache=True, nogil=True)
def _imaginary(p: Arrays, v: int, row: Floats, free: Floats, behind: Floats, num_ready: int, out: Floats) -> int:
    """Fill the imaginary makespan of task v per device; return how many devices can run it.

    With more ready tasks than devices, time on a device is worth more: the revised makespan
    counts the duration once for each round that the ready tasks need.
    """
    m = row.shape[0]
    crowd = max(num_ready / m - 1.0, 0.0)
    able = 0
    for d in range(m):
        span = p.duration[v, p.device_class[d]]
        if span == np.inf:
            out[d] = np.inf
        else:
            out[d] = max(row[d], free[d]) + (span + behind[v, d]) + span * crowd
            able += 1
    return able


@njit(cache=True, nogil=True)
def smallest(values: Floats, k: int) -> float:
    """Return the k-th smallest value, counted from one, which must be finite."""
    least = -np.inf
    seen = 0
    while True:
        following = np.inf
        equal = 0
        for i in range(values.shape[0]):
            value = values[i]
            if value > least:
                if value < following:
                    following = value
                    equal = 1
                elif value == following:
                    equal += 1
        seen += equal
        if seen >= k:
            return following
        least = following


@njit(cache=True, nogil=True)
def largest(values: Floats) -> float:
    """Return the largest finite value."""
    largest = -np.inf
    for i in range(values.shape[0]):
        if values[i] < np.inf:
            largest = max(largest, values[i])
    return largest
