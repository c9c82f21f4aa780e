"""Replay rigid jobs with conservative backfilling: every waiting job has a reservation.

The plan is the one that results from placing all waiting jobs, in queue order, as early as running
jobs (by their estimates) and the jobs before them allow, anew at each event. It is only computed anew
when it can differ: when a job ends before its estimate, or a job is inserted before others. A job
that arrives behind all others joins the plan as it stands, and a job that ends on time changes
nothing. Estimates must not be below run times; then a reservation is always met by an event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.queue_keys import FIRST_DYNAMIC, static_key
from stretto.kernels.queue_run import begin_job, end_first, enqueue, new_running, new_waiting, resort


class Plan(NamedTuple):
    """Free processors over time: ``free[k]`` from ``begin[k]`` to ``begin[k+1]``, the last for ever."""

    begin: np.ndarray
    free: np.ndarray
    size: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def new_plan(n):
    """Return room for the steps of n jobs."""
    return Plan(np.empty(2 * n + 2), np.empty(2 * n + 2, np.int64), np.zeros(1, np.int64))


@njit(cache=True, nogil=True)
def drop_past(plan, now):
    """Forget what lies before now."""
    k = 0
    while k + 1 < plan.size[0] and plan.begin[k + 1] <= now:
        k += 1
    if k > 0:
        for i in range(k, plan.size[0]):
            plan.begin[i - k] = plan.begin[i]
            plan.free[i - k] = plan.free[i]
        plan.size[0] -= k
    plan.begin[0] = now


@njit(cache=True, nogil=True)
def reset(plan, r, now, free):
    """Make the plan of running jobs alone."""
    plan.begin[0] = now
    plan.free[0] = free
    size = 1
    for k in range(r.size[0]):
        free += r.procs[k]
        if r.expected[k] == plan.begin[size - 1]:
            plan.free[size - 1] = free
        else:
            plan.begin[size] = r.expected[k]
            plan.free[size] = free
            size += 1
    plan.size[0] = size


@njit(cache=True, nogil=True)
def insert_step(plan, at, k):
    """Make a step at a time inside segment k; return its index."""
    for i in range(plan.size[0], k + 1, -1):
        plan.begin[i] = plan.begin[i - 1]
        plan.free[i] = plan.free[i - 1]
    plan.begin[k + 1] = at
    plan.free[k + 1] = plan.free[k]
    plan.size[0] += 1
    return k + 1


@njit(cache=True, nogil=True)
def reserve(plan, procs, span):
    """Take processors for a span as early as possible; return when."""
    size = plan.size[0]
    k = 0
    while True:
        while plan.free[k] < procs:
            k += 1
        end = plan.begin[k] + span
        j = k + 1
        while j < size and plan.begin[j] < end and plan.free[j] >= procs:
            j += 1
        if j == size or plan.begin[j] >= end:
            break
        k = j
    start = plan.begin[k]
    if not (j < size and plan.begin[j] == end):
        insert_step(plan, end, j - 1)
    for i in range(k, j):
        plan.free[i] -= procs
    return start


@njit(cache=True, nogil=True)
def run_conservative(q, num_procs, code, start):
    """Fill the start of each job; all must fit the machine."""
    n = q.submit.shape[0]
    start[:] = -1.0
    r = new_running(n)
    w = new_waiting(n + 1)
    plan = new_plan(n)
    reserved = np.empty(n)
    dynamic = code >= FIRST_DYNAMIC
    free = num_procs
    arrived = 0
    plan.begin[0] = 0.0
    plan.free[0] = num_procs
    plan.size[0] = 1
    while arrived < n or r.size[0] > 0:
        now = r.end[0] if r.size[0] > 0 else np.inf
        if arrived < n:
            now = min(now, q.submit[arrived])
        anew = dynamic
        while r.size[0] > 0 and r.end[0] == now:
            job = r.job[0]
            expected = start[job] + q.estimate[job]
            end_first(r, expected, True)
            free += q.procs[job]
            anew = anew or expected != now
        if w.first[0] == w.last[0]:
            w.first[0] = 0
            w.last[0] = 0
        look = w.last[0]
        while arrived < n and q.submit[arrived] == now:
            key = static_key(code, arrived, now, q.estimate[arrived], q.procs[arrived], q.deadline[arrived])
            at = enqueue(w, arrived, key, q.procs[arrived], q.estimate[arrived])
            anew = anew or at < look
            look = min(look, at)
            arrived += 1
        if dynamic:
            resort(w, q, code, now)
        if anew:
            reset(plan, r, now, free)
            look = w.first[0]
        else:
            drop_past(plan, now)
        for k in range(look, w.last[0]):
            reserved[w.job[k]] = reserve(plan, w.procs[k], w.estimate[k])
        to = w.first[0]
        for k in range(w.first[0], w.last[0]):
            job = w.job[k]
            if reserved[job] <= now:
                start[job] = now
                free -= w.procs[k]
                begin_job(r, job, now + q.run[job], now + w.estimate[k], w.procs[k], True)
            else:
                if to != k:
                    w.key[to] = w.key[k]
                    w.procs[to] = w.procs[k]
                    w.estimate[to] = w.estimate[k]
                    w.job[to] = job
                to += 1
        w.last[0] = to
    return 0
