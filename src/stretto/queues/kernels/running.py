"""Running jobs, by when they end: a heap; and where wanted, by when they are expected to end: a sorted list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit


class Running(NamedTuple):
    """Running jobs twice: a heap by true end, and a list sorted by expected end."""

    end: np.ndarray  # [n] heap
    job: np.ndarray  # [n] heap
    expected: np.ndarray  # [n] ascending
    procs: np.ndarray  # [n] of the sorted list
    owner: np.ndarray  # [n] job of the sorted list
    size: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def new_running(n):
    """Return room for n running jobs."""
    return Running(
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def begin_job(r, job, end, expected, procs, sorted_too):
    """Add a running job."""
    size = r.size[0]
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if r.end[up] < end or (r.end[up] == end and r.job[up] <= job):
            break
        r.end[i] = r.end[up]
        r.job[i] = r.job[up]
        i = up
    r.end[i] = end
    r.job[i] = job
    if sorted_too:
        i = size
        while i > 0 and r.expected[i - 1] > expected:
            r.expected[i] = r.expected[i - 1]
            r.procs[i] = r.procs[i - 1]
            r.owner[i] = r.owner[i - 1]
            i -= 1
        r.expected[i] = expected
        r.procs[i] = procs
        r.owner[i] = job
    r.size[0] = size + 1


@njit(cache=True, nogil=True)
def end_first(r, expected, sorted_too):
    """Remove the job that ends first; ``expected`` is the end that was expected of it."""
    size = r.size[0] - 1
    job = r.job[0]
    end = r.end[size]
    mover = r.job[size]
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        if c + 1 < size and (r.end[c + 1] < r.end[c] or (r.end[c + 1] == r.end[c] and r.job[c + 1] < r.job[c])):
            c += 1
        if end < r.end[c] or (end == r.end[c] and mover <= r.job[c]):
            break
        r.end[i] = r.end[c]
        r.job[i] = r.job[c]
        i = c
    r.end[i] = end
    r.job[i] = mover
    if sorted_too:
        low = 0
        high = size + 1
        while low < high:
            middle = (low + high) >> 1
            if r.expected[middle] < expected:
                low = middle + 1
            else:
                high = middle
        while r.owner[low] != job:
            low += 1
        for k in range(low, size):
            r.expected[k] = r.expected[k + 1]
            r.procs[k] = r.procs[k + 1]
            r.owner[k] = r.owner[k + 1]
    r.size[0] = size


@njit(cache=True, nogil=True)
def shadow_of(r, need):
    """Return when ``need`` more processors are expected to be free, and how many more than that then are."""
    found = 0
    k = 0
    while found < need:
        found += r.procs[k]
        k += 1
    shadow = r.expected[k - 1]
    while k < r.size[0] and r.expected[k] == shadow:
        found += r.procs[k]
        k += 1
    return shadow, found - need
