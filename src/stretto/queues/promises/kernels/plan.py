"""The plan of all promised starts: kept on every event, and tried anew before a start that is not in it.

The plan is a start per waiting job, by estimates, on top of what runs, in which everybody meets the promise. Two facts
make it cheap to keep.

- When processors become free, jobs move forward in the order of their planned starts. None gets later, and a job that
  is planned later never stands in the way: wherever the two overlap, they already did. So jobs move within the profile
  of the whole plan, and one that cannot move costs a look at the steps before its start.
- Moving a second time changes nothing. So nothing is moved before processors have become free outside of the plan, and
  then only jobs that are narrow enough for them.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.promises.kernels.steps import (
    add,
    bound_of,
    copy_steps,
    earlier,
    earliest,
    most_free,
    no_bounds,
    note_bound,
    split,
    step_at,
)


@njit(cache=True, nogil=True)
def note_room(s, begin, end):
    """Note between which times processors have become free."""
    m = s.moment[0]
    m.room_begin = min(m.room_begin, begin)
    m.room_end = max(m.room_end, end)


@njit(cache=True, nogil=True)
def forget_room(s):
    """Note that no job of the plan can move forward."""
    m = s.moment[0]
    m.room_begin = np.inf
    m.room_end = -np.inf


@njit(cache=True, nogil=True)
def sort_plan(s):
    """Sort the plan by planned start, then job; it mostly is sorted already."""
    for i in range(1, s.moment[0].num_planned):
        job = s.plan[i]
        at = s.planned[job]
        k = i
        while k > 0 and (s.planned[s.plan[k - 1]] > at or (s.planned[s.plan[k - 1]] == at and s.plan[k - 1] > job)):
            s.plan[k] = s.plan[k - 1]
            k -= 1
        s.plan[k] = job


@njit(cache=True, nogil=True)
def move_forward(q, s):
    """Let every job start as early as the plan allows, in the order of planned starts; see the top of this file."""
    m = s.moment[0]
    begin = max(m.room_begin, m.now)
    if m.num_planned > 0 and begin < m.room_end:
        room = most_free(s.steps, begin, m.room_end)
        bounds = no_bounds()
        for i in range(m.num_planned):
            job = s.plan[i]
            old = s.planned[job]
            procs = q.procs[job]
            if procs > room or old <= begin:
                continue
            span = q.estimate[job]
            bound = bound_of(bounds, procs, span)
            first = step_at(s.steps, bound) if bound > m.now else 0
            new = earlier(s.steps, first, procs, span, old)
            if new == old:
                if bound < old:
                    note_bound(bounds, i, procs, span, old)
            else:
                bounds[:] = np.inf  # what it leaves is free for others
                add(s.steps, old, old + span, procs)
                add(s.steps, new, new + span, -procs)
                s.planned[job] = new
                vacated = max(old, new + span)
                room = max(room, most_free(s.steps, vacated, old + span))
                begin = min(begin, vacated)
        sort_plan(s)
    forget_room(s)


@njit(cache=True, nogil=True)
def reset_to_running(q, s, steps):
    """Make a profile of what runs alone."""
    m = s.moment[0]
    steps.begin[0] = m.now
    steps.free[0] = m.free
    last = 0
    for i in range(m.num_running):
        job = s.running[i]
        if s.expected[job] > steps.begin[last]:
            last += 1
            steps.begin[last] = s.expected[job]
            steps.free[last] = steps.free[last - 1]
        steps.free[last] += q.procs[job]
    steps.size[0] = last + 1


@njit(cache=True, nogil=True)
def plan_in_order(q, s, count, not_before, check):
    """Plan the trial's jobs one after the other in its profile, as early as possible; False = somebody would be late.

    Parameters
    ----------
    not_before
        Nobody starts before this time, which is now or an expected end.
    check
        Whether to stop as soon as a job is planned after its latest start.
    """
    steps = s.trial_steps
    bounds = no_bounds()
    for i in range(count):
        job = s.trial[i]
        bound = max(not_before, bound_of(bounds, q.procs[job], q.estimate[job]))
        at = earliest(steps, step_at(steps, bound), q.procs[job], q.estimate[job])
        begin = steps.begin[at]
        if begin > bound:
            note_bound(bounds, i, q.procs[job], q.estimate[job], begin)
        if check and begin > s.latest[job]:
            return False
        s.trial_start[job] = begin
        add(steps, begin, begin + q.estimate[job], -q.procs[job])
        if not_before > s.moment[0].now:
            split(steps, not_before)  # where an equal step before it was merged
    return True


@njit(cache=True, nogil=True)
def sort_trial_by_latest(s, count):
    """Sort the trial by latest start; among equals the order stays."""
    latest = np.empty(count)
    for i in range(count):
        latest[i] = s.latest[s.trial[i]]
    order = np.argsort(latest, kind="mergesort")
    sorted_jobs = s.trial[:count][order]
    for i in range(count):
        s.trial[i] = sorted_jobs[i]


@njit(cache=True, nogil=True)
def find_plan(q, s, without, not_before):
    """Look for a plan of all promised starts but one; True = it is in the trial.

    First in the order of planned starts, then in the order of latest starts: each finds plans that the other misses.

    Parameters
    ----------
    without
        A job that is about to start now and counts as running, -1 = none.
    """
    m = s.moment[0]
    count = 0
    for i in range(m.num_planned):
        if s.plan[i] != without:
            s.trial[count] = s.plan[i]
            count += 1
    for attempt in range(2):
        if attempt == 1:
            sort_trial_by_latest(s, count)
        reset_to_running(q, s, s.trial_steps)
        if without >= 0:
            add(s.trial_steps, m.now, m.now + q.estimate[without], -q.procs[without])
        if not_before > m.now:
            split(s.trial_steps, not_before)
        if plan_in_order(q, s, count, not_before, True):
            return True
    return False


@njit(cache=True, nogil=True)
def adopt_trial(s, without):
    """Make the trial the plan; ``without`` has started and leaves it."""
    m = s.moment[0]
    count = 0
    for i in range(m.num_planned):
        job = s.plan[i]
        if job != without:
            s.plan[count] = job
            s.planned[job] = s.trial_start[job]
            count += 1
    m.num_planned = count
    copy_steps(s.trial_steps, s.steps)
    sort_plan(s)
    forget_room(s)


@njit(cache=True, nogil=True)
def plan_anew(q, s):
    """Plan all again after running jobs have outlived their estimates; starts that are out of reach are put off."""
    m = s.moment[0]
    for i in range(m.num_planned):
        s.trial[i] = s.plan[i]
    reset_to_running(q, s, s.trial_steps)
    plan_in_order(q, s, m.num_planned, m.now, False)
    adopt_trial(s, -1)
    for i in range(m.num_planned):
        job = s.plan[i]
        s.latest[job] = max(s.latest[job], s.planned[job])


@njit(cache=True, nogil=True)
def join_plan(q, s, job):
    """Plan a job that arrives behind everybody, and promise its start."""
    m = s.moment[0]
    if s.slack[job] == np.inf:
        return
    span = q.estimate[job]
    begin = s.steps.begin[earliest(s.steps, 0, q.procs[job], span)]
    add(s.steps, begin, begin + span, -q.procs[job])
    s.planned[job] = begin
    s.first_planned[job] = begin
    s.due[job] = begin + s.slack[job] + s.wait_share[job] * (begin - q.submit[job])
    s.latest[job] = s.due[job]
    s.plan[m.num_planned] = job
    m.num_planned += 1
    sort_plan(s)


@njit(cache=True, nogil=True)
def leave_plan(q, s, job):
    """Take a job that starts now out of the plan; its processors stay taken, from now on."""
    m = s.moment[0]
    span = q.estimate[job]
    old = s.planned[job]
    if old == np.inf:
        add(s.steps, m.now, m.now + span, -q.procs[job])
        return
    if old > m.now:
        add(s.steps, old, old + span, q.procs[job])
        add(s.steps, m.now, m.now + span, -q.procs[job])
        note_room(s, max(old, m.now + span), old + span)
    at = 0
    while s.plan[at] != job:
        at += 1
    for i in range(at + 1, m.num_planned):
        s.plan[i - 1] = s.plan[i]
    m.num_planned -= 1


@njit(cache=True, nogil=True)
def fits_now(q, s, job):
    """Say whether a job can start now and everybody else as planned."""
    m = s.moment[0]
    if s.planned[job] <= m.now:
        return True
    steps = s.steps
    end = min(s.planned[job], m.now + q.estimate[job])  # from its planned start on it has its room already
    k = 0
    while k < steps.size[0] and steps.begin[k] < end:
        if steps.free[k] < q.procs[job]:
            return False
        k += 1
    return True
