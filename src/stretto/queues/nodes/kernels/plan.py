"""The plan of all promised starts on nodes: kept at every event, and tried anew before a start that is not in it."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import CPUS, INNER, NUM_PLACES, NUM_RUNNING
from stretto.queues.nodes.kernels.choose import is_open
from stretto.queues.nodes.kernels.conservative import amount
from stretto.queues.nodes.kernels.place import place
from stretto.queues.nodes.kernels.plan_arrays import NUM_PLANNED, NUM_UNUSED
from stretto.queues.nodes.kernels.reserve import select, takes_equal_numbers
from stretto.queues.nodes.kernels.timeline import (
    add_between,
    clear_node,
    first_room,
    first_sum,
    next_change,
    room_between,
)


@njit(**INNER)
def set_between(site, shapes, island, lines, scratch, entry, start, end, sign):
    """Give or take an entry (node, tasks, shape) between two times, on its node and in the sum of its island."""
    node, tasks, shape = entry
    for r in range(scratch.shape[0]):
        scratch[r] = amount(site, shapes, shape, tasks, node, r)
    add_between(lines, node, start, end, scratch, sign)
    for r in range(scratch.shape[0]):
        if r != CPUS:
            scratch[r] = 0
    add_between(lines, site.capacity.shape[1] + island, start, end, scratch, sign)


@njit(**INNER)
def set_slot(site, shapes, island, side, scratch, slot, start, end, sign):
    """Give or take all entries of a slot between two times."""
    for k in range(side.num_entries[slot]):
        entry = (side.node[slot, k], side.tasks[slot, k], side.shape[slot, k])
        set_between(site, shapes, island, side.lines, scratch, entry, start, end, sign)


@njit(**INNER)
def write_slot(side, slot, store, first, taken):
    """Copy entries of the store to a slot."""
    side.num_entries[slot] = taken
    for k in range(taken):
        side.node[slot, k] = store.node[first + k]
        side.tasks[slot, k] = store.tasks[first + k]
        side.shape[slot, k] = store.shape[first + k]


@njit(**INNER)
def read_slot(side, slot, store, first):
    """Copy the entries of a slot to the store; return how many."""
    for k in range(side.num_entries[slot]):
        store.node[first + k] = side.node[slot, k]
        store.tasks[first + k] = side.tasks[slot, k]
        store.shape[first + k] = side.shape[slot, k]
    return side.num_entries[slot]


@njit(**INNER)
def reset_to_running(site, shapes, s, store, lines, scratch, island):
    """Make a timeline of what runs alone, on the nodes of an island."""
    row = site.capacity.shape[1] + island
    total = clear_node(lines, row)
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        step = clear_node(lines, node)
        for r in range(scratch.shape[0]):
            lines.free[step, r] = s.free[r, node]
        lines.free[total, CPUS] += s.free[CPUS, node]
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        slot = s.first[node]
        while slot >= 0:
            entry = (node, store.slot_tasks[slot], store.slot_shape[slot])
            set_between(site, shapes, island, lines, scratch, entry, store.until[slot], np.inf, 1)
            slot = store.next[slot]


@njit(**INNER)
def group_time(q, s, p, side, job, time, starting):
    """Return the first time, from one on, at which the limits of a job leave it a place for its estimate.

    Parameters
    ----------
    starting
        A job that is about to start now and counts as running, -1 = none.
    """
    is_moved = True
    while is_moved:
        is_moved = False
        for i in range(q.limit_ptr[job], q.limit_ptr[job + 1]):
            later = limit_time(q, s, p, side, job, time, starting, q.limit_of[i], q.limit_amount[i])
            is_moved = is_moved or later > time
            time = later
    return time


@njit(**INNER)
def limit_time(q, s, p, side, job, time, starting, limit, amount):
    """Return the first time, from one on, at which one limit leaves a job a place for its estimate."""
    while True:
        end = time + q.estimate[job]
        most, soonest = 0, np.inf
        moment = time
        while moment < end:  # at the start, and whenever another one begins
            used, later = 0, np.inf
            for i in range(s.counts[NUM_RUNNING] + p.numbers[NUM_PLANNED] + 1):
                other, begin, until = member(q, s, p, side, starting, i)
                if other < 0 or other == job:
                    continue
                adds = amount_of(q, other, limit)
                if adds == 0:
                    continue
                if begin <= moment < until:
                    used += adds
                if begin > moment:
                    later = min(later, begin)
                if until > time:
                    soonest = min(soonest, until)
            most = max(most, used)
            moment = later
        if most + amount <= q.limit_most[limit]:
            return time
        time = soonest


@njit(**INNER)
def amount_of(q, job, limit):
    """Return what a job adds to a limit while it runs."""
    for i in range(q.limit_ptr[job], q.limit_ptr[job + 1]):
        if q.limit_of[i] == limit:
            return q.limit_amount[i]
    return 0


@njit(**INNER)
def member(q, s, p, side, starting, i):
    """Return the i-th job that runs or is planned, -1 = none, and its time."""
    num_running, now = s.counts[NUM_RUNNING], s.clock[0]
    if i < num_running:
        return s.running[i], now, s.expected[i]
    i -= num_running
    if i == p.numbers[NUM_PLANNED]:
        return starting, now, now + (q.estimate[starting] if starting >= 0 else 0.0)
    job = p.jobs[i]
    if job == starting or side.start[job] == np.inf:
        return -1, now, now
    return job, side.start[job], side.start[job] + q.estimate[job]


@njit(**INNER)
def shape_time(site, shapes, s, lines, shape, time, span):
    """Return the first time, from one on, at which enough nodes hold their equal numbers of tasks for a span."""
    node_set = shapes.node_set[shape]
    first, last, in_set = site.set_first[node_set], site.set_last[node_set], site.in_set[node_set]
    need, exclusive = shapes.need[shape], shapes.exclusive[shape]
    wanted = shapes.tasks[shape] // shapes.each[shape]
    while True:
        count, ready = 0, 0
        for node in range(first, last):
            if not in_set[node]:
                continue
            found = node_time(site, lines, need, exclusive, node, time, span)
            s.times[count] = found
            count += 1
            if found == time:
                ready += 1
                if ready == wanted:
                    return time
        if count < wanted:
            return np.inf
        time = select(s.times, count, wanted - 1)
        if time == np.inf or wanted == 1:
            return time


@njit(**INNER)
def node_time(site, lines, need, exclusive, node, time, span):
    """Return the first time, from one on, at which an open node holds what is needed for a span."""
    while True:
        time = first_room(lines, node, need, site.capacity, exclusive, time, span)
        if time == np.inf or is_open(site.closed_ptr, site.closed_from, site.closed_until, node, time, time + span):
            return time
        later = np.inf
        for i in range(site.closed_ptr[node], site.closed_ptr[node + 1]):
            if site.closed_until[i] > time and site.closed_from[i] < time + span:
                later = min(later, site.closed_until[i])
        time = later


@njit(**INNER)
def equal_start(site, shapes, q, s, lines, kind, time, span):
    """Return the first time, from one on, at which one of a kind's shapes finds its nodes."""
    component = q.component_ptr[kind]
    best = np.inf
    for i in range(q.alternative_ptr[component], q.alternative_ptr[component + 1]):
        best = min(best, shape_time(site, shapes, s, lines, q.alternative[i], time, span))
        if best == time:
            break
    return best


@njit(**INNER)
def island_change(site, lines, island, time):
    """Return when the plan changes next on a node of an island, or a node reopens."""
    found = np.inf
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        found = min(found, next_change(lines, site.island_node[k], time))
    for i in range(site.reopening.shape[0]):
        if site.reopening[i] > time:
            found = min(found, site.reopening[i])
            break
    return found


@njit(**INNER)
def earliest(site, shapes, q, s, store, p, side, job, time, before, starting):
    """Find the earliest time at which a job fits into a plan that does not hold it.

    Looks from a time on and before another one. Returns the time, inf = none, and how many entries stand behind the
    store's last one. Where nodes take equal numbers of tasks, the time is computed; otherwise every change of the plan
    is tried at which the island has enough processors.
    """
    kind = q.kind[job]
    island, span = q.island[kind], q.estimate[job]
    is_equal = takes_equal_numbers(shapes, q, kind)
    row = site.capacity.shape[1] + island
    while time < before:
        later = group_time(q, s, p, side, job, time, starting)
        if later == time:
            later = first_sum(side.lines, row, q.procs[job], time, span)
        if later == time and is_equal:
            later = equal_start(site, shapes, q, s, side.lines, kind, time, span)
        if later > time:
            time = later
            continue
        taken = fit_between(site, shapes, q, s, store, side.lines, kind, island, time, time + span)
        if taken > 0:
            return time, taken
        time = island_change(site, side.lines, island, time)
    return np.inf, 0


@njit(**INNER)
def fit_between(site, shapes, q, s, store, lines, kind, island, start, end):
    """Write the entries of a kind that runs from a start to an end behind the store's last one; return how many."""
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        room_between(lines, site.island_node[k], start, end, s.later)
    taken, _ = place(site, shapes, q, s, store, kind, s.later, (False, start, end, False))
    return taken


@njit(**INNER)
def sort_plan(p):
    """Sort the plan by planned start, then job; it mostly is sorted already."""
    start = p.kept.start
    for i in range(1, p.numbers[NUM_PLANNED]):
        job = p.jobs[i]
        k = i
        while k > 0 and (
            start[p.jobs[k - 1]] > start[job] or (start[p.jobs[k - 1]] == start[job] and p.jobs[k - 1] > job)
        ):
            p.jobs[k] = p.jobs[k - 1]
            k -= 1
        p.jobs[k] = job


@njit(**INNER)
def set_planned(site, shapes, q, p, side, job, sign):
    """Take a planned job's room (-1), or give it back (+1)."""
    island, start = q.island[q.kind[job]], side.start[job]
    set_slot(site, shapes, island, side, p.amount, p.slot[job], start, start + q.estimate[job], sign)


@njit(**INNER)
def move(site, shapes, q, s, store, p, job, time, before):
    """Plan a job of the plan at the earliest time within bounds; return False, and change nothing, if there is none."""
    kept = p.kept
    old = kept.start[job]
    set_planned(site, shapes, q, p, kept, job, 1)
    kept.start[job] = np.inf
    found, taken = earliest(site, shapes, q, s, store, p, kept, job, time, before, -1)
    if taken > 0:
        write_slot(kept, p.slot[job], store, s.counts[NUM_PLACES], taken)
    kept.start[job] = found if taken > 0 else old
    set_planned(site, shapes, q, p, kept, job, -1)
    return taken > 0


@njit(**INNER)
def move_forward(site, shapes, q, s, store, p, island):
    """Let every job of an island start as early as the rest of the plan allows, in the order of planned starts."""
    now, count = s.clock[0], p.numbers[NUM_PLANNED]
    for i in range(count):
        p.trial_jobs[i] = p.jobs[i]
    for i in range(count):
        job = p.trial_jobs[i]
        if q.island[q.kind[job]] == island and p.kept.start[job] > now:
            move(site, shapes, q, s, store, p, job, now, p.kept.start[job])
    sort_plan(p)
    p.has_room[island] = False


@njit(**INNER)
def join_plan(site, shapes, q, s, store, p, job):
    """Plan a job that has become eligible behind everybody, and promise its start."""
    if p.slack[job] == np.inf:
        return
    found, taken = earliest(site, shapes, q, s, store, p, p.kept, job, s.clock[0], np.inf, -1)
    if taken == 0:
        return
    p.numbers[NUM_UNUSED] -= 1
    p.slot[job] = p.unused[p.numbers[NUM_UNUSED]]
    write_slot(p.kept, p.slot[job], store, s.counts[NUM_PLACES], taken)
    p.kept.start[job] = found
    set_planned(site, shapes, q, p, p.kept, job, -1)
    p.first_planned[job] = found
    p.due[job] = found + p.slack[job] + p.wait_share[job] * (found - s.clock[0])
    p.jobs[p.numbers[NUM_PLANNED]] = job
    p.numbers[NUM_PLANNED] += 1
    sort_plan(p)


@njit(**INNER)
def leave_plan(p, job):
    """Take a job that has started out of the list of planned jobs."""
    if p.slot[job] < 0:
        return
    at = 0
    while p.jobs[at] != job:
        at += 1
    for i in range(at + 1, p.numbers[NUM_PLANNED]):
        p.jobs[i - 1] = p.jobs[i]
    p.numbers[NUM_PLANNED] -= 1
    p.unused[p.numbers[NUM_UNUSED]] = p.slot[job]
    p.numbers[NUM_UNUSED] += 1
    p.slot[job] = -1
    p.kept.start[job] = np.inf
