"""The plan behind promises across pools: a place and a start for every waiting job that was promised one.

The plan only proves that all promises can be kept. So it rents as late as it can: a job is planned in a pool that is
always up where that meets its promise, and else in an elastic one, at its latest start.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.pools.kernels.profile import (
    earliest_any,
    earliest_from,
    fill_base,
    fits_at,
    give_back,
    is_fixed,
    plan_span,
    steps_of,
    take,
    trial_steps_of,
)
from stretto.queues.promises.kernels.steps import add, copy_steps


@njit(cache=True, nogil=True)
def find_place(q, p, s, c, job, not_before, is_trial):
    """Return a pool and a start for a job: the earliest in a pool that is always up, or as late as promised in others.

    Where the promise cannot be met at all, the earliest of any pool.
    """
    best = -1
    best_time = np.inf
    for k in range(c.counted.shape[0]):
        if c.counted[k] and is_fixed(p, k) and p.width[job, k] >= 0:
            steps = trial_steps_of(c, k) if is_trial else steps_of(c, k)
            time = earliest_from(steps, p.width[job, k], plan_span(q, p, s, job, k), not_before)
            if time < best_time:
                best = k
                best_time = time
    if best_time <= c.latest[job]:
        return best, best_time
    for k in range(c.counted.shape[0]):
        if c.counted[k] and not is_fixed(p, k) and p.width[job, k] >= 0:
            steps = trial_steps_of(c, k) if is_trial else steps_of(c, k)
            length = plan_span(q, p, s, job, k)
            late = max(c.latest[job], not_before)
            if c.latest[job] >= not_before and fits_at(steps, p.width[job, k], length, late):
                return k, late
            time = earliest_from(steps, p.width[job, k], length, not_before)
            if time < best_time:
                best = k
                best_time = time
    return best, best_time


@njit(cache=True, nogil=True)
def sort_plan(c):
    """Let the plan stand by planned start, then by lower job."""
    for i in range(1, c.moment[0].num_planned):
        job = c.plan[i]
        to = i
        while to > 0:
            other = c.plan[to - 1]
            if c.planned[other] < c.planned[job] or (c.planned[other] == c.planned[job] and other < job):
                break
            c.plan[to] = other
            to -= 1
        c.plan[to] = job


@njit(cache=True, nogil=True)
def leave_plan(c, job):
    """Take a job out of the list; the profile is the caller's."""
    to = 0
    for i in range(c.moment[0].num_planned):
        if c.plan[i] != job:
            c.plan[to] = c.plan[i]
            to += 1
    c.moment[0].num_planned = to
    c.planned[job] = np.inf


@njit(cache=True, nogil=True)
def move_forward(q, p, s, c):
    """Let each planned job, in order, move to where it is better off; all others stay, so none gets later."""
    count = c.moment[0].num_planned
    for i in range(count):
        c.trial[i] = c.plan[i]
    for i in range(count):
        job = c.trial[i]
        give_back(q, p, s, c, job)
        c.where[job], c.planned[job] = find_place(q, p, s, c, job, s.moment[0].now, False)
        take(q, p, s, c, job)
    sort_plan(c)


@njit(cache=True, nogil=True)
def join_plan(q, p, s, c, job):
    """Promise a job that begins to wait a latest start, and plan it."""
    c.is_new[job] = False
    if c.slack[job] == np.inf:
        return
    time = earliest_any(q, p, s, c, job)
    if time == np.inf:
        return
    c.due[job] = time + c.slack[job] + c.wait_share[job] * (time - s.moment[0].now)
    c.latest[job] = c.due[job]
    c.where[job], c.planned[job] = find_place(q, p, s, c, job, s.moment[0].now, False)
    take(q, p, s, c, job)
    c.plan[c.moment[0].num_planned] = job
    c.moment[0].num_planned += 1
    sort_plan(c)


@njit(cache=True, nogil=True)
def plan_anew(q, p, s, c):
    """Plan all jobs again after an estimate was outlived; a promise that is out of reach is put off to what is not."""
    fill_order(c, -1, False)
    place_all(q, p, s, c, -1, -1, s.moment[0].now, c.moment[0].num_planned, False)
    adopt(c, -1)
    for i in range(c.moment[0].num_planned):
        job = c.plan[i]
        c.latest[job] = max(c.latest[job], c.planned[job])


@njit(cache=True, nogil=True)
def fill_order(c, without, by_latest):
    """Write the planned jobs but one into the scratch order; return how many."""
    count = 0
    for i in range(c.moment[0].num_planned):
        job = c.plan[i]
        if job == without:
            continue
        to = count
        while by_latest and to > 0 and c.latest[c.trial[to - 1]] > c.latest[job]:
            c.trial[to] = c.trial[to - 1]
            to -= 1
        c.trial[to] = job
        count += 1
    return count


@njit(cache=True, nogil=True)
def place_all(q, p, s, c, started, pool, not_before, count, must_meet):
    """Plan the jobs of the scratch order in turn, beside one that starts now; say whether all are in time."""
    for k in range(c.counted.shape[0]):
        if c.counted[k]:
            fill_base(p, s, c, k, trial_steps_of(c, k))
    if started >= 0:
        now = s.moment[0].now
        add(trial_steps_of(c, pool), now, now + plan_span(q, p, s, started, pool), -p.width[started, pool])
    for i in range(count):
        job = c.trial[i]
        k, time = find_place(q, p, s, c, job, not_before, True)
        if must_meet and time > c.latest[job]:
            return False
        c.trial_where[job] = k
        c.trial_start[job] = time
        add(trial_steps_of(c, k), time, time + plan_span(q, p, s, job, k), -p.width[job, k])
    return True


@njit(cache=True, nogil=True)
def find_plan(q, p, s, c, started, pool, not_before):
    """Say whether all promises can be met beside a job that starts now: by planned, or else by latest starts."""
    count = fill_order(c, started, False)
    if place_all(q, p, s, c, started, pool, not_before, count, True):
        return True
    count = fill_order(c, started, True)
    return place_all(q, p, s, c, started, pool, not_before, count, True)


@njit(cache=True, nogil=True)
def adopt(c, started):
    """Let the plan be what was last tried."""
    if started >= 0:
        leave_plan(c, started)
    for k in range(c.counted.shape[0]):
        if c.counted[k]:
            copy_steps(trial_steps_of(c, k), steps_of(c, k))
    for i in range(c.moment[0].num_planned):
        job = c.plan[i]
        c.planned[job] = c.trial_start[job]
        c.where[job] = c.trial_where[job]
    sort_plan(c)
