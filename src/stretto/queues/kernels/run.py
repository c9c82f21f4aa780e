"""Replay rigid jobs on one machine: any order, without backfilling or with EASY. The fast loop.

At one moment: all completions, then all arrivals, then one pass (``batch``); or one event per pass,
arrivals first. A pass starts jobs from the head of the queue while they fit. EASY then computes, from
estimates only, when the head will fit (the shadow time) and how many processors it will leave
(the extra), and starts any later job that fits now and either ends by the shadow time or
takes no more than the extra. Both are computed anew at each event.

Two observations make it fast without changing a single start. While nothing has ended since the last
pass, the shadow time and the extra still hold, and a job that could not be backfilled then cannot be
now: only new arrivals are looked at. And the shadow time is needed only where some later job fits.

This loop keeps the queue sorted. Orders that change with time are in ``queue_dynamic``.

On form: loops without ``break``, and helpers that are given a whole tuple rather than arrays taken from it, are what
numba can compile without counting references at every call; each count is an atomic operation, and they once took
four fifths of the time.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.dynamic import run_dynamic
from stretto.queues.kernels.expected import expect, forget, new_expected, put_in_order, shadow_at
from stretto.queues.kernels.fcfs import run_fcfs
from stretto.queues.kernels.keys import FCFS, FIRST_DYNAMIC, static_key
from stretto.queues.kernels.running import Running, begin_job, end_first, new_running, shadow_of
from stretto.queues.kernels.waiting import (
    close_holes,
    enqueue,
    leave,
    new_waiting,
    next_candidate,
    next_fitting,
    skip_holes,
)

__all__ = ["Running", "begin_job", "end_first", "new_running", "run_queue", "shadow_of"]


def run_queue(q: QueueArrays, num_procs: int, code: int, easy: bool, one_event: bool, start: np.ndarray) -> int:
    """Fill the start of each job, with the loop that can; all must fit the machine and run for some time.

    Parameters
    ----------
    q
        The jobs, as ``QueueArrays``.
    code
        The order of the queue, of ``queues.kernels.keys``.
    easy, one_event
        Whether to backfill, and whether each event has a pass of its own, arrivals first.
    """
    start[:] = -1.0
    if code >= FIRST_DYNAMIC:
        run_dynamic(q, num_procs, code, easy, one_event, start)
    elif code == FCFS and not easy:
        run_fcfs(q, num_procs, start)
    else:
        run_static(q, num_procs, code, easy, one_event, start)
    return 0


@njit(cache=True, nogil=True)
def run_static(q, num_procs, code, easy, one_event, start):
    """Replay with a key that a job keeps while it waits."""
    n = q.submit.shape[0]
    r = new_running(n)
    x = new_expected(n)
    w = new_waiting(n + 1)
    first = 0  # of the queue, never a hole
    last = 0
    holes = 0
    free = num_procs
    arrived = 0
    shadow = np.inf
    extra = 0
    known = False  # the shadow and the extra still hold
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        arrival = q.submit[arrived] if arrived < n else np.inf
        now = min(now, arrival)
        # A shadow that has passed: the jobs it waits for have outlived their estimates.
        whole = one_event or (known and shadow < now)
        more = not (one_event and arrival == now)
        while more and r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            end_first(r, 0.0, False)
            if easy:
                forget(x, job)
            free += q.procs[job]
            whole = True
            more = not one_event
        if first == last:
            first = last = holes = 0
        look = last  # where backfilling begins to look
        if arrival == now:
            more = True
            while more and arrived < n and q.submit[arrived] == now:
                key = static_key(code, arrived, now, q.estimate[arrived], q.procs[arrived], q.deadline[arrived])
                look = min(look, enqueue(w, first, last, arrived, code, key, q.procs[arrived], q.estimate[arrived]))
                last += 1
                arrived += 1
                more = not one_event
            whole = whole or look == first
        if whole:
            known = False
            while first < last and w.procs[first] <= free:
                job = w.job[first]
                start[job] = now
                free -= w.procs[first]
                begin_job(r, job, now + q.run[job], 0.0, 0, False)
                if easy:
                    expect(x, job, now + w.estimate[first], w.procs[first])
                step = skip_holes(w, first + 1, last)
                holes -= step - first - 1
                first = step
            look = first + 1
        if not easy or free == 0 or look >= last:
            continue
        k = next_fitting(w, look, last, free)
        if k == last:
            continue
        if not known:
            late = now + 1.0 if one_event else now
            put_in_order(x)
            shadow, extra = shadow_at(x, w.procs[first] - free, now, late)
            known = True
        k = next_candidate(w, k, last, free, now, shadow, extra)
        while k < last:
            job = w.job[k]
            if now + w.estimate[k] > shadow:
                extra -= w.procs[k]
            start[job] = now
            free -= w.procs[k]
            begin_job(r, job, now + q.run[job], 0.0, 0, False)
            expect(x, job, now + w.estimate[k], w.procs[k])
            leave(w, k)
            holes += 1
            k = next_candidate(w, k + 1, last, free, now, shadow, extra) if free > 0 else last
        if holes > 4 + ((last - first) >> 3):
            last = close_holes(w, first, last)
            holes = 0
