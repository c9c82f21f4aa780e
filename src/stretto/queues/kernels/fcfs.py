"""First come, first served, without backfilling: every job starts when it fits, and not before its predecessor.

No queue is needed, nor the order of ends at one time: jobs are placed one after the other, and only the ends of
running jobs are kept, in a heap.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def run_fcfs(q, num_procs, start):
    """Fill the start of each job; all must fit the machine."""
    n = q.submit.shape[0]
    room = min(num_procs, n) + 1
    end = np.empty(room)
    procs = np.empty(room, np.int32)
    size = 0
    free = num_procs
    now = 0.0
    for job in range(n):
        need = q.procs[job]
        now = max(now, q.submit[job])
        while free < need:  # ends that nobody has needed yet may lie in the past
            now = max(now, end[0])
            free += procs[0]
            size -= 1
            sink(end, procs, size)
        start[job] = now
        free -= need
        rise(end, procs, size, now + q.run[job], need)
        size += 1


@njit(cache=True, nogil=True)
def rise(end, procs, i, time, need):
    """Add a pair at the end of the heap."""
    while i > 0:
        up = (i - 1) >> 1
        if end[up] <= time:
            break
        end[i] = end[up]
        procs[i] = procs[up]
        i = up
    end[i] = time
    procs[i] = need


@njit(cache=True, nogil=True)
def sink(end, procs, size):
    """Replace the top of the heap by the pair at ``size``."""
    time = end[size]
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        if c + 1 < size and end[c + 1] < end[c]:
            c += 1
        if time <= end[c]:
            break
        end[i] = end[c]
        procs[i] = procs[c]
        i = c
    end[i] = time
    procs[i] = procs[size]
