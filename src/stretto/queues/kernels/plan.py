"""Conservative backfilling in several pools: a plan of all waiting jobs, made anew at each moment."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.attempts import start_job
from stretto.queues.kernels.pools import gather_releases, is_usable, score
from stretto.queues.kernels.state import span


@njit(cache=True, nogil=True)
def plan_all(q, p, rules, s, out, limit, draws):
    """Reserve for every job in turn; start those whose time is now and that fit. They become -1 in the queue."""
    now = s.moment[0].now
    count = s.moment[0].num_waiting
    num_pools = p.pool.shape[0]
    most = 2 * count + 2
    sizes = np.zeros(num_pools, np.int64)
    lengths = np.zeros(num_pools, np.int64)
    for k in range(num_pools):
        lengths[k] = s.moment[0].num_running + s.pool[k].num_pending
        most = max(most, 2 * count + 2 + lengths[k])
    begin = np.empty((num_pools, most))
    free = np.empty((num_pools, most), np.int64)
    for k in range(num_pools):
        sizes[k] = fill_profile(p, rules, s, k, begin[k], free[k])
    for i in range(count):
        job = s.waiting[i]
        best = -1
        best_time = np.inf
        best_a = 0.0
        best_b = 0.0
        for k in range(num_pools):
            if not is_usable(q, p, rules, s, job, k, s.ahead[i]):
                continue
            time = earliest(begin[k], free[k], sizes[k], p.width[job, k], span(p, s, job, k))
            if time == np.inf:
                continue
            a, b = score(p, rules, s, job, k)
            if best < 0 or time < best_time or (time == best_time and (a < best_a or (a == best_a and b < best_b))):
                best = k
                best_time = time
                best_a = a
                best_b = b
        if best < 0:
            continue
        length = span(p, s, job, best)
        if length > 0.0:
            sizes[best] = take(begin[best], free[best], sizes[best], best_time, best_time + length, p.width[job, best])
        if best_time <= now and p.width[job, best] <= s.pool[best].free:
            start_job(q, p, rules, s, out, limit, draws, job, best)
            s.waiting[i] = -1


@njit(cache=True, nogil=True)
def fill_profile(p, rules, s, k, begin, free):
    """Write the free processors of a pool over time, by running jobs and ordered nodes; return the steps."""
    begin[0] = s.moment[0].now
    free[0] = s.pool[k].free
    size = 1
    for i in range(gather_releases(p, rules, s, k)):
        if s.release[i] > begin[size - 1]:
            begin[size] = s.release[i]
            free[size] = free[size - 1]
            size += 1
        free[size - 1] += s.release_procs[i]
    return size


@njit(cache=True, nogil=True)
def earliest(begin, free, size, width, length):
    """Return the first time from which on ``width`` processors are free for ``length`` seconds, inf = never."""
    k = 0
    while k < size:
        if free[k] < width:
            k += 1
            continue
        end = begin[k] + length
        j = k + 1
        while j < size and begin[j] < end and free[j] >= width:
            j += 1
        if j == size or begin[j] >= end:
            return begin[k]
        k = j
    return np.inf


@njit(cache=True, nogil=True)
def take(begin, free, size, start, end, width):
    """Take processors from start, which is a step, to end; return the steps."""
    k = 0
    while begin[k] < start:
        k += 1
    while k < size and begin[k] < end:
        free[k] -= width
        k += 1
    if k < size and begin[k] == end:
        return size
    for i in range(size, k, -1):
        begin[i] = begin[i - 1]
        free[i] = free[i - 1]
    begin[k] = end
    free[k] = free[k - 1] + width
    return size + 1
