"""Two devices are enough: the one that is idle first, and the one that the last data comes from.

On equal devices and links the earliest start of a ready task is on one of these two
(Radulescu, van Gemund 1999), which is what makes FCP and FLB fast.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import first_ready, open_devices, ready_everywhere
from stretto.graphs.kernels.construct.ranks import mean_transfer
from stretto.graphs.kernels.construct.rounds import release_readers


@njit(cache=True, nogil=True)
def last_message(
    p: Arrays, assign: Ints, finish: Floats, v: int, latency: float, inv_bandwidth: float
) -> tuple[int, float]:
    """Return where the last data of task v comes from, and when, over a mean link; -1 = from nowhere."""
    device = -1
    last = p.release[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        at = finish[u] + mean_transfer(p.in_size[e], latency, inv_bandwidth)
        if at > last or device < 0:
            last = max(last, at)
            device = assign[u]
    return device, last


@njit(cache=True, nogil=True)
def first_idle(p: Arrays, v: int, free: Floats) -> int:
    """Return the device that is idle first among those that can run task v."""
    best = -1
    for d in range(free.shape[0]):
        if p.duration[v, p.device_class[d]] < np.inf and (best < 0 or free[d] < free[best]):
            best = d
    return best


@njit(cache=True, nogil=True)
def fast_critical_path(p: Arrays, order: Ints, latency: float, inv_bandwidth: float) -> tuple[Ints, Floats, Floats]:
    """Take tasks in order; each starts on the better of its two devices."""
    assign, start, finish, free, row = open_devices(p)
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        d = first_idle(p, v, free)
        near, _ = last_message(p, assign, finish, v, latency, inv_bandwidth)
        if near >= 0 and near != d and p.duration[v, p.device_class[near]] < np.inf:
            at_idle = max(row[d], free[d])
            at_near = max(row[near], free[near])
            if at_near < at_idle or (at_near == at_idle and near < d):
                d = near
        assign[v] = d
        start[v] = max(row[d], free[d])
        finish[v] = start[v] + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
    return assign, start, finish


@njit(cache=True, nogil=True)
def fast_load_balancing(
    p: Arrays, level: Floats, latency: float, inv_bandwidth: float
) -> tuple[Ints, Ints, Floats, Floats]:
    """In each round commit the earliest start among the two candidates of FLB.

    A ready task is *bound* when its last data comes later than its enabling device is idle:
    it starts first on that device. The others are *loose* and start first on the device
    that is idle first. Equal starts: loose before bound, higher level, lower index.
    """
    n = p.release.shape[0]
    assign, start, finish, free, row = open_devices(p)
    task = np.empty(n, dtype=np.int32)
    near = np.empty(n, dtype=np.int32)  # enabling device by task, -1 = none that can run it
    near_ready = np.empty(n)  # data there
    last = np.empty(n)  # last message
    missing, fresh, num_fresh = first_ready(p)
    count = 0
    order = np.empty(n, dtype=np.int32)
    for i in range(n):
        for f in range(num_fresh):
            v = fresh[f]
            task[count] = v
            count += 1
            d, last[v] = last_message(p, assign, finish, v, latency, inv_bandwidth)
            near[v] = -1
            if d >= 0 and p.duration[v, p.device_class[d]] < np.inf:
                ready_everywhere(p, assign, finish, v, row)
                near[v] = d
                near_ready[v] = row[d]
        bound, loose = _candidates(count, task, near, near_ready, last, free, level)
        k = loose if loose >= 0 else bound
        d = -1
        if loose >= 0:
            d = first_idle(p, task[loose], free)
        if bound >= 0:
            home = near[task[bound]]
            at = max(near_ready[task[bound]], free[home])
            if loose < 0 or at < max(last[task[loose]], free[d]):
                k = bound
                d = home
        v = task[k]
        order[i] = v
        ready_everywhere(p, assign, finish, v, row)
        assign[v] = d
        start[v] = max(row[d], free[d])
        finish[v] = start[v] + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
        count -= 1
        task[k] = task[count]
        num_fresh = release_readers(p, v, missing, fresh)
    return order, assign, start, finish


@njit(cache=True, nogil=True)
def _candidates(
    count: int, task: Ints, near: Ints, near_ready: Floats, last: Floats, free: Floats, level: Floats
) -> tuple[int, int]:
    """Return the positions of the bound task that starts first and the loose one with the first data."""
    bound = -1
    bound_at = np.inf
    loose = -1
    loose_at = np.inf
    for k in range(count):
        v = task[k]
        d = near[v]
        if d >= 0 and last[v] >= free[d]:
            at = max(near_ready[v], free[d])
            if bound < 0 or at < bound_at or (at == bound_at and _more_urgent(level, v, task[bound])):
                bound, bound_at = k, at
        elif loose < 0 or last[v] < loose_at or (last[v] == loose_at and _more_urgent(level, v, task[loose])):
            loose, loose_at = k, last[v]
    return bound, loose


@njit(cache=True, nogil=True)
def _more_urgent(level: Floats, v: int, w: int) -> bool:
    return bool(level[v] > level[w] or (level[v] == level[w] and v < w))
