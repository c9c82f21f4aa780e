"""Whether a job may start now: as planned, in room that the plan leaves, or with another plan that keeps all promises.

A check leaves everything as it was. The nodes of the job then stand in slot 0 of the trial, and the other plan, where
it needs one, in the rest of the trial.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import INNER, NUM_PLACES, RESERVED_JOB
from stretto.queues.nodes.kernels.easy import start_job
from stretto.queues.nodes.kernels.place import apply, apply_reserved, place
from stretto.queues.nodes.kernels.plan import (
    earliest,
    group_time,
    leave_plan,
    reset_to_running,
    set_between,
    set_planned,
    set_slot,
    sort_plan,
    write_slot,
)
from stretto.queues.nodes.kernels.plan_arrays import (
    NUM_ENDED,
    NUM_PASS_TESTS,
    NUM_PLANNED,
    NUM_REFUSED,
    NUM_TESTS,
)
from stretto.queues.nodes.kernels.timeline import clear_node, new_step, room_between

# What a check says.
REFUSED = 0
IN_ROOM = 1  # all others start as planned
WITH_PLAN = 2  # the plan of the trial must be adopted


@njit(**INNER)
def set_free(site, shapes, s, store, taken, spares, sign):
    """Release (+1) or take (-1) the entries behind the store's last one, in what is free and beside the reservation."""
    first = s.counts[NUM_PLACES]
    apply(site, shapes, store, first, first + taken, s.free, sign)
    if spares:
        apply_reserved(site, shapes, store, first, first + taken, s, sign)


@njit(**INNER)
def check_room(site, shapes, q, s, store, p, job, ask):
    """Say whether a job can start now while all others start as planned."""
    kept, kind, now = p.kept, q.kind[job], s.clock[0]
    island, old = q.island[kind], p.kept.start[job]
    if old < np.inf:
        set_planned(site, shapes, q, p, kept, job, 1)
        kept.start[job] = np.inf
    taken = 0
    if group_time(q, s, p, kept, job, now, -1) == now:
        for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
            room_between(kept.lines, site.island_node[k], now, now + q.estimate[job], s.later)
        taken, _ = place(site, shapes, q, s, store, kind, s.later, ask)
    if taken > 0:
        first = s.counts[NUM_PLACES]
        write_slot(p.trial, 0, store, first, taken)
        if ask[0]:
            apply_reserved(site, shapes, store, first, first + taken, s, 1)
    if old < np.inf:
        kept.start[job] = old
        set_planned(site, shapes, q, p, kept, job, -1)
    return taken > 0


@njit(**INNER)
def check_start(site, shapes, q, s, store, p, job, ask, may_test):
    """Say whether a job that fits now, as it was asked, may start; see the top of this file."""
    if check_room(site, shapes, q, s, store, p, job, ask):
        return IN_ROOM
    if not may_test or p.refused_at[job] == p.numbers[NUM_ENDED]:
        return REFUSED
    p.numbers[NUM_TESTS] += 1
    p.numbers[NUM_PASS_TESTS] += 1
    kind = q.kind[job]
    taken, _ = place(site, shapes, q, s, store, kind, s.free, ask)
    set_free(site, shapes, s, store, taken, ask[0], 1)
    write_slot(p.trial, 0, store, s.counts[NUM_PLACES], taken)
    if find_plan(site, shapes, q, s, store, p, q.island[kind], job, s.clock[0]):
        return WITH_PLAN
    return REFUSED


@njit(**INNER)
def start_checked(site, shapes, q, s, store, out, p, job, spares, verdict):
    """Start a job that has just been checked."""
    now, kept = s.clock[0], p.kept
    island = q.island[q.kind[job]]
    first, taken = s.counts[NUM_PLACES], p.trial.num_entries[0]
    for k in range(taken):
        store.node[first + k] = p.trial.node[0, k]
        store.tasks[first + k] = p.trial.tasks[0, k]
        store.shape[first + k] = p.trial.shape[0, k]
    set_free(site, shapes, s, store, taken, spares, -1)
    if verdict == WITH_PLAN:
        adopt_trial(site, q, p, island, job)
    else:
        if kept.start[job] < np.inf:
            set_planned(site, shapes, q, p, kept, job, 1)
            p.has_room[island] = p.has_room[island] or kept.start[job] > now
        for k in range(first, first + taken):
            entry = (store.node[k], store.tasks[k], store.shape[k])
            set_between(site, shapes, island, kept.lines, p.amount, entry, now, now + q.estimate[job], -1)
    leave_plan(p, job)
    start_job(q, s, store, out, job, taken)


@njit(**INNER)
def refuse(p, job):
    """Note that a start was refused; it is not tested again before a job has ended."""
    p.refused_at[job] = p.numbers[NUM_ENDED]
    p.numbers[NUM_REFUSED] += 1


@njit(**INNER)
def find_plan(site, shapes, q, s, store, p, island, starting, not_before):
    """Look for a plan of an island in which all promises are kept; True = it is in the trial.

    First in the order of planned starts, then in the order of latest starts: each finds plans that the other misses.

    Parameters
    ----------
    starting
        A job that is about to start now on the nodes of slot 0, -1 = none.
    not_before
        When the others start at the earliest.
    """
    trial = p.trial
    count = 0
    for i in range(p.numbers[NUM_PLANNED]):
        job = p.jobs[i]
        if q.island[q.kind[job]] == island and job != starting:
            p.trial_jobs[count] = job
            count += 1
    for attempt in range(2):
        if attempt == 1:
            sort_by_due(p, count)
        reset_to_running(site, shapes, s, store, trial.lines, p.amount, island)
        for i in range(count):
            trial.start[p.trial_jobs[i]] = np.inf
        if starting >= 0:
            end = s.clock[0] + q.estimate[starting]
            set_slot(site, shapes, island, trial, p.amount, 0, s.clock[0], end, -1)
        if plan_in_order(site, shapes, q, s, store, p, count, starting, not_before):
            return True
    return False


@njit(**INNER)
def sort_by_due(p, count):
    """Sort the jobs of the trial by latest start; among equals the order stays."""
    for i in range(1, count):
        job = p.trial_jobs[i]
        k = i
        while k > 0 and p.due[p.trial_jobs[k - 1]] > p.due[job]:
            p.trial_jobs[k] = p.trial_jobs[k - 1]
            k -= 1
        p.trial_jobs[k] = job


@njit(**INNER)
def plan_in_order(site, shapes, q, s, store, p, count, starting, not_before):
    """Plan the jobs of the trial one after the other, as early as possible; False = somebody would be late."""
    trial = p.trial
    for i in range(count):
        job = p.trial_jobs[i]
        before = np.nextafter(p.due[job], np.inf)
        found, taken = earliest(site, shapes, q, s, store, p, trial, job, not_before, before, starting)
        if taken == 0:
            return False
        write_slot(trial, p.slot[job], store, s.counts[NUM_PLACES], taken)
        trial.start[job] = found
        set_planned(site, shapes, q, p, trial, job, -1)
    return True


@njit(**INNER)
def adopt_trial(site, q, p, island, starting):
    """Make the trial the plan of an island."""
    kept, trial = p.kept, p.trial
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        copy_node(trial.lines, kept.lines, site.island_node[k])
    copy_node(trial.lines, kept.lines, site.capacity.shape[1] + island)
    for i in range(p.numbers[NUM_PLANNED]):
        job = p.jobs[i]
        if q.island[q.kind[job]] != island or job == starting:
            continue
        kept.start[job] = trial.start[job]
        slot = p.slot[job]
        kept.num_entries[slot] = trial.num_entries[slot]
        for k in range(trial.num_entries[slot]):
            kept.node[slot, k] = trial.node[slot, k]
            kept.tasks[slot, k] = trial.tasks[slot, k]
            kept.shape[slot, k] = trial.shape[slot, k]
    p.has_room[island] = False
    sort_plan(p)


@njit(**INNER)
def copy_node(source, target, node):
    """Make the steps of a node equal to those of another timeline."""
    step = clear_node(target, node)
    other = source.head[node]
    while True:
        target.begin[step] = source.begin[other]
        for r in range(target.free.shape[1]):
            target.free[step, r] = source.free[other, r]
        other = source.next[other]
        if other < 0:
            return
        behind = new_step(target)
        target.next[step] = behind
        target.next[behind] = -1
        step = behind


@njit(**INNER)
def forget_reservation(s, island):
    """Let the head of an island reserve anew: a job has started that may have taken what was reserved."""
    s.island[RESERVED_JOB, island] = -1
