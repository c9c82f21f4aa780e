"""Replay rigid jobs in an order that changes while they wait, without backfilling or with EASY.

The queue is kept in order of arrival and never sorted. A pass computes all ranks anew and picks the head; EASY then
gathers the jobs that could be backfilled and takes them by rank. The others need no place in the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.expected import expect, forget, new_expected, put_in_order, shadow_at
from stretto.queues.kernels.keys import EXPANSION, UNICEP, WFP3
from stretto.queues.kernels.running import begin_job, end_first, new_running
from stretto.queues.kernels.waiting import HOLE_PROCS, next_candidate, next_fitting


class Crowd(NamedTuple):
    """Waiting jobs in order of arrival; one that has started has job -1."""

    job: np.ndarray  # [n]
    procs: np.ndarray  # [n]
    estimate: np.ndarray  # [n]
    submit: np.ndarray  # [n]
    scale: np.ndarray  # [n] what the wait is divided by
    rank: np.ndarray  # [n] the highest comes first; minus the key, hence not negative
    bits: np.ndarray  # [n] the same memory as whole numbers: their order is the same, and they compare faster
    place: np.ndarray  # [n] scratch: where the jobs stand that could be backfilled
    place_bits: np.ndarray  # [n] scratch: their ranks
    size: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def new_crowd(n):
    """Return room for n waiting jobs."""
    rank = np.empty(n)
    return Crowd(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        rank,
        rank.view(np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def run_dynamic(q, num_procs, code, easy, one_event, start):
    """Fill the start of each job; see ``queue_run.run_queue``."""
    n = q.submit.shape[0]
    r = new_running(n)
    x = new_expected(n)
    c = new_crowd(n)
    scale = scales(q, code)
    free = num_procs
    arrived = 0
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        arrival = q.submit[arrived] if arrived < n else np.inf
        now = min(now, arrival)
        more = not (one_event and arrival == now)
        while more and r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, 0.0, False)
            forget(x, job)
            free += q.procs[job]
            more = not one_event
        more = True
        while more and arrived < n and q.submit[arrived] == now:
            join(c, arrived, q.procs[arrived], q.estimate[arrived], now, scale[arrived])
            arrived += 1
            more = not one_event
        size = c.size[0]
        if next_fitting(c, 0, size, free) == size:
            continue  # nothing can start, in whatever order
        fill_ranks(c, code, now)
        head = first_of(c)
        while head >= 0 and c.procs[head] <= free:
            free -= c.procs[head]
            start[c.job[head]] = now
            begin_job(r, c.job[head], now + q.run[c.job[head]], 0.0, 0, False)
            expect(x, c.job[head], now + c.estimate[head], c.procs[head])
            leave(c, head)
            head = first_of(c)
        if easy and head >= 0 and next_fitting(c, 0, size, free) < size:
            put_in_order(x)
            shadow, extra = shadow_at(x, c.procs[head] - free, now, now + 1.0 if one_event else now)
            count = note_candidates(c, next_candidate(c, 0, size, free, now, shadow, extra), free, now, shadow, extra)
            while count > 0 and free > 0:
                i = first_noted(c, count)
                k = c.place[i]
                is_late = now + c.estimate[k] > shadow
                if c.procs[k] <= free and (not is_late or c.procs[k] <= extra):
                    free -= c.procs[k]
                    extra -= c.procs[k] if is_late else 0
                    start[c.job[k]] = now
                    begin_job(r, c.job[k], now + q.run[c.job[k]], 0.0, 0, False)
                    expect(x, c.job[k], now + c.estimate[k], c.procs[k])
                    leave(c, k)
                    c.place_bits[i] = -1
                else:  # others will not fit any more either
                    count = keep_candidates(c, count, free, now, shadow, extra)
        drop_started(c)


@njit(cache=True, nogil=True)
def scales(q, code):
    """Return what each job's wait is divided by."""
    scale = np.maximum(1.0, q.estimate)
    if code == UNICEP:
        scale = np.maximum(1e-12, np.log2(q.procs)) * scale
    return scale


@njit(cache=True, nogil=True)
def join(c, job, procs, estimate, submit, scale):
    """Let a job wait."""
    k = c.size[0]
    c.job[k] = job
    c.procs[k] = procs
    c.estimate[k] = estimate
    c.submit[k] = submit
    c.scale[k] = scale
    c.size[0] += 1


@njit(cache=True, nogil=True)
def leave(c, k):
    """Mark a job that has started."""
    c.job[k] = -1
    c.procs[k] = HOLE_PROCS
    c.rank[k] = -1.0


@njit(cache=True, nogil=True)
def fill_ranks(c, code, now):
    """Compute minus the keys of ``queue_keys.dynamic_key``, to the last bit."""
    if code == EXPANSION:
        for k in range(c.size[0]):
            c.rank[k] = (now - c.submit[k] + c.scale[k]) / c.scale[k]
    elif code == WFP3:
        for k in range(c.size[0]):
            ratio = (now - c.submit[k]) / c.scale[k]
            c.rank[k] = ratio * ratio * ratio * c.procs[k]
    else:
        for k in range(c.size[0]):
            c.rank[k] = (now - c.submit[k]) / c.scale[k]


@njit(cache=True, nogil=True)
def first_of(c):
    """Return the first place of the highest rank, -1 where all have started."""
    best = np.int64(-1)
    for k in range(c.size[0]):
        best = max(best, c.bits[k])
    if best < 0:
        return -1
    k = 0
    while c.bits[k] != best:
        k += 1
    return k


@njit(cache=True, nogil=True)
def note_candidates(c, first, free, now, shadow, extra):
    """Note the places from ``first`` on whose jobs could be backfilled; return how many."""
    count = 0
    for k in range(first, c.size[0]):  # without a branch, for there may be many
        c.place[count] = k
        c.place_bits[count] = c.bits[k]
        count += (c.procs[k] <= free) & ((now + c.estimate[k] <= shadow) | (c.procs[k] <= extra))
    return count


@njit(cache=True, nogil=True)
def keep_candidates(c, count, free, now, shadow, extra):
    """Keep the noted places whose jobs could still be backfilled; return how many."""
    to = 0
    for i in range(count):
        k = c.place[i]
        c.place[to] = k
        c.place_bits[to] = c.bits[k]
        to += (c.procs[k] <= free) & ((now + c.estimate[k] <= shadow) | (c.procs[k] <= extra))
    return to


@njit(cache=True, nogil=True)
def first_noted(c, count):
    """Return which of the noted places has the highest rank; one whose job has started where none is left."""
    best = c.place_bits[0]
    for i in range(1, count):
        best = max(best, c.place_bits[i])
    i = 0
    while c.place_bits[i] != best:
        i += 1
    return i


@njit(cache=True, nogil=True)
def drop_started(c):
    """Move the jobs that still wait together."""
    to = 0
    for k in range(c.size[0]):
        if c.job[k] >= 0:
            if to != k:
                c.job[to] = c.job[k]
                c.procs[to] = c.procs[k]
                c.estimate[to] = c.estimate[k]
                c.submit[to] = c.submit[k]
                c.scale[to] = c.scale[k]
            to += 1
    c.size[0] = to
