"""Replay rigid jobs on one machine: any order, without backfilling or with EASY. The fast loop.

At one moment: all completions, then all arrivals, then one pass (``batch``); or one event per pass,
arrivals first. A pass starts jobs from the head of the queue while they fit. EASY then computes, from
estimates only, when the head will fit (the shadow time) and how many processors it will leave
(the extra), and starts any later job that fits now and either ends by the shadow time or
takes no more than the extra. Both are computed anew at each event.

Two observations make it fast without changing a single start. While nothing has ended since the last
pass, the shadow and the extra still hold, and a job that could not be backfilled then cannot be
now: only new arrivals are looked at. And running jobs stand sorted by expected end, so that the
shadow is found by one short walk. Both need estimates that jobs do not outlive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.queue_keys import FIRST_DYNAMIC, dynamic_key, static_key


class Running(NamedTuple):
    """Running jobs twice: a heap by true end, and a list sorted by expected end."""

    end: np.ndarray  # [n] heap
    job: np.ndarray  # [n] heap
    expected: np.ndarray  # [n] ascending
    procs: np.ndarray  # [n] of the sorted list
    owner: np.ndarray  # [n] job of the sorted list
    size: np.ndarray  # [1]


class Waiting(NamedTuple):
    """The queue, sorted by key: entries ``first[0]`` to ``last[0]``."""

    key: np.ndarray
    procs: np.ndarray
    estimate: np.ndarray
    job: np.ndarray
    first: np.ndarray  # [1]
    last: np.ndarray  # [1]


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
def new_waiting(n):
    """Return room for n waiting jobs."""
    return Waiting(
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n),
        np.empty(n, np.int32),
        np.zeros(1, np.int64),
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
def enqueue(w, job, key, procs, estimate):
    """Insert a job behind all keys that are not greater; return where it stands."""
    at = w.last[0]
    first = w.first[0]
    while at > first and w.key[at - 1] > key:
        w.key[at] = w.key[at - 1]
        w.procs[at] = w.procs[at - 1]
        w.estimate[at] = w.estimate[at - 1]
        w.job[at] = w.job[at - 1]
        at -= 1
    w.key[at] = key
    w.procs[at] = procs
    w.estimate[at] = estimate
    w.job[at] = job
    w.last[0] += 1
    return at


@njit(cache=True, nogil=True)
def resort(w, q, code, now):
    """Compute all keys anew and sort; equal keys by lower job."""
    first = w.first[0]
    for k in range(first, w.last[0]):
        job = w.job[k]
        key = dynamic_key(code, now, q.submit[job], w.estimate[k], w.procs[k])
        procs = w.procs[k]
        estimate = w.estimate[k]
        at = k
        while at > first and (w.key[at - 1] > key or (w.key[at - 1] == key and w.job[at - 1] > job)):
            w.key[at] = w.key[at - 1]
            w.procs[at] = w.procs[at - 1]
            w.estimate[at] = w.estimate[at - 1]
            w.job[at] = w.job[at - 1]
            at -= 1
        w.key[at] = key
        w.procs[at] = procs
        w.estimate[at] = estimate
        w.job[at] = job


@njit(cache=True, nogil=True)
def fewest_procs(w):
    """Return what the narrowest waiting job needs; zero where none waits."""
    if w.first[0] == w.last[0]:
        return 0
    least = w.procs[w.first[0]]
    for k in range(w.first[0] + 1, w.last[0]):
        least = min(least, w.procs[k])
    return least


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


@njit(cache=True, nogil=True)
def compact(w, start, begin):
    """Close the holes that backfilled jobs left at and after ``begin``."""
    to = begin
    for k in range(begin, w.last[0]):
        if start[w.job[k]] < 0.0:
            if to != k:
                w.key[to] = w.key[k]
                w.procs[to] = w.procs[k]
                w.estimate[to] = w.estimate[k]
                w.job[to] = w.job[k]
            to += 1
    w.last[0] = to


@njit(cache=True, nogil=True)
def run_queue(q, num_procs, code, easy, one_event, start):
    """Fill the start of each job; all must fit the machine, with estimates not below run times.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``.
    code
        The order of the queue, of ``kernels.queue_keys``.
    easy, one_event
        Whether to backfill, and whether each event has a pass of its own, arrivals first.
    """
    n = q.submit.shape[0]
    start[:] = -1.0
    r = new_running(n)
    w = new_waiting(n + 1)
    dynamic = code >= FIRST_DYNAMIC
    free = num_procs
    arrived = 0
    shadow = 0.0
    extra = 0
    known = False  # the shadow and the extra still hold
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        arrival = q.submit[arrived] if arrived < n else np.inf
        now = min(now, arrival)
        whole = dynamic
        if not (one_event and arrival == now):
            while r.size[0] > 0 and r.end[0] == now:
                job = r.job[0]
                end_first(r, start[job] + q.estimate[job], easy)
                free += q.procs[job]
                whole = True
                if one_event:
                    break
        if w.first[0] == w.last[0]:
            w.first[0] = 0
            w.last[0] = 0
            whole = True
        look = w.last[0]  # where backfilling begins to look
        if arrival == now:
            while arrived < n and q.submit[arrived] == now:
                key = static_key(code, arrived, now, q.estimate[arrived], q.procs[arrived], q.deadline[arrived])
                at = enqueue(w, arrived, key, q.procs[arrived], q.estimate[arrived])
                look = min(look, at)
                arrived += 1
                if one_event:
                    break
            whole = whole or look == w.first[0]
        if dynamic:
            if free < fewest_procs(w):
                continue  # nothing can start, in whatever order
            resort(w, q, code, now)
        if whole:
            known = False
            head = w.first[0]
            while head < w.last[0] and w.procs[head] <= free:
                job = w.job[head]
                start[job] = now
                free -= w.procs[head]
                begin_job(r, job, now + q.run[job], now + w.estimate[head], w.procs[head], easy)
                head += 1
            w.first[0] = head
            look = head + 1
        if not easy or free == 0 or look >= w.last[0]:
            continue
        if not known:
            shadow, extra = shadow_of(r, w.procs[w.first[0]] - free)
            known = True
        first_hole = -1
        for k in range(look, w.last[0]):
            procs = w.procs[k]
            if procs > free:
                continue
            expected = now + w.estimate[k]
            if expected > shadow:
                if procs > extra:
                    continue
                extra -= procs
            job = w.job[k]
            start[job] = now
            free -= procs
            begin_job(r, job, now + q.run[job], expected, procs, True)
            if first_hole < 0:
                first_hole = k
            if free == 0:
                break
        if first_hole >= 0:
            compact(w, start, first_hole)
    return 0
