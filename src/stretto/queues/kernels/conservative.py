"""Replay rigid jobs with conservative backfilling: every waiting job has a reservation.

The plan is the one that results from placing all waiting jobs, in queue order, as early as running
jobs (by their estimates) and the jobs before them allow, anew at each event. It is only computed anew
when it can differ: when a job ends before its estimate, or a job is inserted before others. A job
that arrives behind all others joins the plan as it stands, and a job that ends on time changes
nothing. Estimates must not be below run times; then a reservation is always met by an event.

And it is only computed as far as it matters now. Once no job of the rest of the queue fits what the plan leaves
free at this moment, none of them can start, and their places wait until something has changed. Nothing is lost:
the next step of the plan is an expected end, which is an event; until then every later place stays what it is.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.expected import expect, forget, new_expected, put_in_order
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.kernels.profile import drop_past, new_profile, reserve, reset
from stretto.queues.kernels.running import begin_job, end_first, new_running
from stretto.queues.kernels.waiting import enqueue, move, new_waiting, next_fitting


@njit(cache=True, nogil=True)
def run_conservative(q, num_procs, code, start):
    """Fill the start of each job; all must fit the machine."""
    n = q.submit.shape[0]
    start[:] = -1.0
    r = new_running(n)
    x = new_expected(n)
    w = new_waiting(n + 1)
    plan = new_profile(n, num_procs)
    reserved = np.empty(n + 1)  # by place of the queue
    dynamic = code >= FIRST_DYNAMIC
    last = 0  # of the queue, which begins at place 0
    planned = 0  # places of the queue before this one have a reservation
    free = num_procs
    arrived = 0
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        anew = dynamic
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            anew = anew or start[job] + q.estimate[job] != now
            end_first(r, 0.0, False)
            forget(x, job)
            free += q.procs[job]
        while arrived < n and q.submit[arrived] == now:
            key = static_key(code, arrived, now, q.estimate[arrived], q.procs[arrived], q.deadline[arrived])
            at = enqueue(w, 0, last, arrived, code, key, q.procs[arrived], q.estimate[arrived])
            anew = anew or at < planned
            last += 1
            arrived += 1
        if dynamic:
            resort(w, q, last, code, now)
        if anew:
            put_in_order(x)
            reset(plan, x, now, free)
            planned = 0
        else:
            drop_past(plan, now)
        fitting = next_fitting(w, planned, last, plan.free[0])
        while fitting < last:
            for k in range(planned, fitting + 1):
                reserved[k] = reserve(plan, w.procs[k], w.estimate[k])
            planned = fitting + 1
            fitting = next_fitting(w, planned, last, plan.free[0])
        to = 0
        for k in range(planned):
            if reserved[k] > now:
                reserved[to] = reserved[k]
                move(w, k, to)
                to += 1
            else:
                job = w.job[k]
                start[job] = now
                free -= w.procs[k]
                begin_job(r, job, now + q.run[job], 0.0, 0, False)
                expect(x, job, now + w.estimate[k], w.procs[k])
        if to < planned:
            for k in range(planned, last):
                move(w, k, to + k - planned)
            last -= planned - to
            planned = to
    return 0


@njit(cache=True, nogil=True)
def resort(w, q, last, code, now):
    """Compute all keys anew and sort; equal keys by lower job."""
    for k in range(last):
        job = w.job[k]
        procs = w.procs[k]
        estimate = w.estimate[k]
        key = dynamic_key(code, now, q.submit[job], estimate, procs)
        at = k
        while at > 0 and (w.key[at - 1] > key or (w.key[at - 1] == key and w.job[at - 1] > job)):
            move(w, at - 1, at)
            at -= 1
        w.key[at] = key
        w.procs[at] = procs
        w.estimate[at] = estimate
        w.job[at] = job
