"""A queue sorted by a key that does not change. Jobs that were started out of turn leave holes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.keys import FCFS

#: More processors than any machine has: a hole never fits.
HOLE_PROCS = 2**31 - 1
#: Jobs that are looked at in one go; processors compare several at once.
BLOCK = 64


class Waiting(NamedTuple):
    """The queue, sorted by key, from a first place to a last that loops keep; a hole has job -1."""

    key: np.ndarray
    procs: np.ndarray
    estimate: np.ndarray
    job: np.ndarray


@njit(cache=True, nogil=True)
def new_waiting(n):
    """Return room for n waiting jobs."""
    return Waiting(np.empty(n), np.empty(n, np.int32), np.empty(n), np.empty(n, np.int32))


@njit(cache=True, nogil=True)
def enqueue(w, first, last, job, code, key, procs, estimate):
    """Insert a job behind all keys that are not greater; return where it stands."""
    at = last
    if code != FCFS:
        at = place_of(w, first, last, key)
        for k in range(last, at, -1):
            w.key[k] = w.key[k - 1]
        for k in range(last, at, -1):
            w.procs[k] = w.procs[k - 1]
        for k in range(last, at, -1):
            w.estimate[k] = w.estimate[k - 1]
        for k in range(last, at, -1):
            w.job[k] = w.job[k - 1]
    w.key[at] = key
    w.procs[at] = procs
    w.estimate[at] = estimate
    w.job[at] = job
    return at


@njit(cache=True, nogil=True)
def place_of(w, low, high, key):
    """Return the first place with a greater key."""
    while low < high:
        middle = (low + high) >> 1
        if w.key[middle] > key:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def leave(w, k):
    """Make a hole."""
    w.job[k] = -1
    w.procs[k] = HOLE_PROCS


@njit(cache=True, nogil=True)
def skip_holes(w, first, last):
    """Return the first place that is no hole."""
    while first < last and w.job[first] < 0:
        first += 1
    return first


@njit(cache=True, nogil=True)
def close_holes(w, first, last):
    """Move jobs together; return where the queue ends."""
    to = first
    for k in range(first, last):
        if w.job[k] >= 0:
            move(w, k, to)
            to += 1
    return to


@njit(cache=True, nogil=True)
def move(w, k, to):
    """Move the job at place k to another place."""
    w.key[to] = w.key[k]
    w.procs[to] = w.procs[k]
    w.estimate[to] = w.estimate[k]
    w.job[to] = w.job[k]


@njit(cache=True, nogil=True)
def next_fitting(w, k, last, free):
    """Return the first place from k on with a job that fits now; ``last`` where there is none."""
    free = np.int32(min(free, HOLE_PROCS - 1))
    count = 0
    while k + BLOCK <= last and count == 0:
        for i in range(k, k + BLOCK):  # without an early exit, so that several are compared at once
            count += w.procs[i] <= free
        k += BLOCK
    if count > 0:
        k -= BLOCK
    while k < last and w.procs[k] > free:
        k += 1
    return k


@njit(cache=True, nogil=True)
def next_candidate(w, k, last, free, now, shadow, extra):
    """Return the first place from k on with a job that fits now and would not delay the head."""
    free = np.int32(min(free, HOLE_PROCS - 1))
    extra = np.int32(min(extra, HOLE_PROCS - 1))
    count = 0
    while k + BLOCK <= last and count == 0:
        for i in range(k, k + BLOCK):
            count += (w.procs[i] <= free) & ((now + w.estimate[i] <= shadow) | (w.procs[i] <= extra))
        k += BLOCK
    if count > 0:
        k -= BLOCK
    while k < last and (w.procs[k] > free or (now + w.estimate[k] > shadow and w.procs[k] > extra)):
        k += 1
    return k
