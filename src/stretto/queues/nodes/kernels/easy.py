"""The pass over the queue of an island: first in order, then backfilling around the reservation of the head."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import push_timed
from stretto.queues.kernels.codes import EASY
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.nodes.kernels.arrays import (
    BEGIN,
    END,
    EPOCH,
    FAILED_AT,
    FAILED_BESIDE,
    FAILED_WITH,
    HEAD,
    INNER,
    IS_ACTIVE,
    IS_DIRTY,
    IS_FAILED,
    NEWEST,
    NUM_ACTIVE,
    NUM_ENDS,
    NUM_FREED,
    NUM_NEW,
    NUM_PLACES,
    NUM_RUNNING,
    NUM_SLOTS,
    NUM_WAITING,
    PASS,
    PASS_EPOCH,
    PASSED,
    RESERVED_EPOCH,
    RESERVED_JOB,
    RESERVED_NUMBER,
    UNSEEN,
    UNUSED_SLOT,
)
from stretto.queues.nodes.kernels.choose import holds, tasks_on
from stretto.queues.nodes.kernels.limits import count_limits, is_limited, is_throttled
from stretto.queues.nodes.kernels.place import apply, place
from stretto.queues.nodes.kernels.priority import key_of
from stretto.queues.nodes.kernels.reserve import reserve
from stretto.queues.nodes.kernels.waiting import comes_before, place_of, remove, resort


@njit(**INNER)
def has_room(site, q, s, store, job):
    """Say whether the store has room for a job on all nodes."""
    kind = q.kind[job]
    most = site.capacity.shape[1] * (q.component_ptr[kind + 1] - q.component_ptr[kind])
    return s.counts[NUM_PLACES] + most <= store.node.shape[0]


@njit(**INNER)
def start_job(q, s, store, out, job, taken):
    """Note that a job starts on the nodes that stand behind the store's last entry."""
    now = s.clock[0]
    first = s.counts[NUM_PLACES]
    until = now + q.estimate[job]
    out.start[job] = now
    out.end[job] = now + q.run[job]
    out.first_place[job] = first
    out.num_places[job] = taken
    s.counts[NUM_PLACES] = first + taken
    push_timed(s.end_time, s.end_job, 0, s.counts[NUM_ENDS], out.end[job], job)
    s.counts[NUM_ENDS] += 1
    at = s.counts[NUM_RUNNING]
    s.running[at] = job
    s.expected[at] = until
    s.run_place[job] = at
    s.counts[NUM_RUNNING] += 1
    for entry in range(first, first + taken):
        s.avail[store.node[entry]] = np.nan
        occupy(s, store, entry, until)
    count_limits(q, s, job, 1)


@njit(**INNER)
def occupy(s, store, entry, until):
    """Give an entry a slot, and put that among those of its node."""
    node, slot = store.node[entry], s.counts[UNUSED_SLOT]
    if slot >= 0:
        s.counts[UNUSED_SLOT] = store.next[slot]
    else:
        slot = s.counts[NUM_SLOTS]
        s.counts[NUM_SLOTS] += 1
    store.slot[entry] = slot
    store.slot_tasks[slot] = store.tasks[entry]
    store.slot_shape[slot] = store.shape[entry]
    store.until[slot] = until
    before, after = -1, s.first[node]
    while after >= 0 and store.until[after] <= until:
        before, after = after, store.next[after]
    store.next[slot] = after
    store.before[slot] = before
    if after >= 0:
        store.before[after] = slot
    if before < 0:
        s.first[node] = slot
    else:
        store.next[before] = slot


@njit(**INNER)
def still_fails(site, shapes, q, s, store, kind):
    """Say whether a kind that did not fit cannot fit now either, by the nodes that were freed since."""
    freed, since = s.counts[NUM_FREED], s.kind[FAILED_AT, kind]
    if since == freed:
        return True
    shape = q.only_shape[kind]
    if shape < 0 or s.kind[FAILED_WITH, kind] < 0 or freed - since > site.capacity.shape[1]:
        return False
    in_set, exclusive, each = site.in_set[shapes.node_set[shape]], shapes.exclusive[shape], shapes.each[shape]
    need, capacity, free = shapes.need[shape], site.capacity, s.free
    could = s.kind[FAILED_WITH, kind]
    for i in range(since, freed):
        node = store.freed[i]
        if in_set[node]:
            if each > 0:
                could += holds(free, capacity, need, exclusive, node)
            else:
                could += tasks_on(
                    free, capacity, shapes.unit[shape], shapes.base[shape], exclusive, node, shapes.per_node[shape]
                )
    wanted = shapes.tasks[shape] // each if each > 0 else shapes.tasks[shape]
    if could >= wanted:
        return False
    s.kind[FAILED_AT, kind] = freed
    s.kind[FAILED_WITH, kind] = could
    return True


@njit(**INNER)
def fails(site, shapes, q, s, store, kind, could):
    """Note that a kind does not fit; return how many jobs that concerns.

    Heterogeneous jobs may fit yet, for their components are placed one by one; and where a closing is what forbids it,
    a shorter job may fit.
    """
    if q.component_ptr[kind + 1] - q.component_ptr[kind] > 1:
        return 0
    if site.closed_from.shape[0] > 0:
        taken, could = place(site, shapes, q, s, store, kind, s.free, (False, -np.inf, -np.inf, False))
        if taken > 0:
            apply(site, shapes, store, s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken, s.free, 1)
            return 0
    s.kind[IS_FAILED, kind] = 1
    s.kind[FAILED_AT, kind] = s.counts[NUM_FREED]
    shape = q.only_shape[kind]
    is_bound = shape >= 0 and (shapes.each[shape] > 0 or could < shapes.tasks[shape])
    s.kind[FAILED_WITH, kind] = could if is_bound else -1
    return s.kind[NUM_WAITING, kind]


@njit(**INNER)
def count_alive(site, shapes, q, s, store, island):
    """Return how many waiting jobs are of kinds that may fit now; drop kinds of which none wait from the list."""
    alive = 0
    first = q.kind_ptr[island]
    i = 0
    while i < s.island[NUM_ACTIVE, island]:
        kind = s.active[first + i]
        count = s.kind[NUM_WAITING, kind]
        if count == 0:
            s.island[NUM_ACTIVE, island] -= 1
            s.active[first + i] = s.active[first + s.island[NUM_ACTIVE, island]]
            s.kind[IS_ACTIVE, kind] = 0
            continue
        if s.kind[IS_FAILED, kind] == 1 and not still_fails(site, shapes, q, s, store, kind):
            s.kind[IS_FAILED, kind] = 0
        if s.kind[IS_FAILED, kind] == 0:
            alive += count
        i += 1
    return alive


@njit(**INNER)
def first_unthrottled(q, s, island, place):
    """Return the first job from a place on whose group may run another one, -1 = none."""
    for i in range(place, s.island[END, island]):
        if not is_throttled(q, s, s.waiting[i]):
            return s.waiting[i]
    return -1


@njit(**INNER)
def fits_in_order(site, shapes, q, s, store, out, job):
    """Start a job if it fits now."""
    now, kind = s.clock[0], q.kind[job]
    if s.kind[IS_FAILED, kind] == 1:
        return False, 0
    taken, could = place(site, shapes, q, s, store, kind, s.free, (False, now, now + q.estimate[job], False))
    if taken > 0:
        s.island[RESERVED_JOB, q.island[kind]] = -1  # it may have taken what was reserved
        start_job(q, s, store, out, job, taken)
        return True, 1
    return False, fails(site, shapes, q, s, store, kind, could)


@njit(**INNER)
def backfills(site, shapes, q, s, store, out, job, island):
    """Start a job behind the head if that is not delayed; return whether, and how many jobs need no more trying."""
    now, kind = s.clock[0], q.kind[job]
    end = now + q.estimate[job]
    has_closings = site.closed_from.shape[0] > 0
    head = s.island[HEAD, island]
    is_current = s.island[RESERVED_JOB, island] == head and s.island[RESERVED_EPOCH, island] == s.island[EPOCH, island]
    is_known = is_current and s.kind[FAILED_BESIDE, kind] == s.island[RESERVED_NUMBER, island]
    if is_known and end > s.reserved[island]:
        return False, give_up(s, kind, now, island)
    taken, could = place(site, shapes, q, s, store, kind, s.free, (False, now, end, False))
    if taken == 0:
        return False, fails(site, shapes, q, s, store, kind, could)
    if not is_current:  # the job is still to be seen by the reservation as one that waits
        apply(site, shapes, store, s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken, s.free, 1)
        reserve(site, shapes, q, s, store, out, head, island)
        taken, could = place(site, shapes, q, s, store, kind, s.free, (False, now, end, False))
    if end > s.reserved[island]:
        apply(site, shapes, store, s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken, s.free, 1)
        taken, could = place(site, shapes, q, s, store, kind, s.free, (True, now, end, False))
        if taken == 0:
            if has_closings or q.component_ptr[kind + 1] - q.component_ptr[kind] > 1:
                return False, 0
            s.kind[FAILED_BESIDE, kind] = s.island[RESERVED_NUMBER, island]
            return False, give_up(s, kind, now, island)
    start_job(q, s, store, out, job, taken)
    return True, 1


@njit(**INNER)
def give_up(s, kind, now, island):
    """Return how many jobs wait of a kind that cannot start beside the reservation; 0 where that was counted already.

    A job that would end before the head starts may start all the same, so the least estimate decides.
    """
    if s.kind[PASSED, kind] == s.counts[PASS] or now + s.least[kind] <= s.reserved[island]:
        return 0
    s.kind[PASSED, kind] = s.counts[PASS]
    return s.kind[NUM_WAITING, kind]


@njit(**INNER)
def pass_over(site, shapes, q, rules, s, store, out, island):
    """Start what may start now in an island; return False where the store has no room for another job."""
    is_static = rules.strategy < FIRST_DYNAMIC
    if is_static and s.island[PASS_EPOCH, island] == s.island[EPOCH, island] and s.island[NUM_NEW, island] == 1:
        status = try_newest(site, shapes, q, rules, s, store, out, island)
        if status != 2:
            return status == 1
    alive = count_alive(site, shapes, q, s, store, island)
    if alive == 0:
        s.island[HEAD, island] = first_unthrottled(q, s, island, s.island[BEGIN, island]) if is_static else UNSEEN
        seen(s, island)
        return True
    if not is_static:
        resort(q, rules, s, island)
    s.counts[PASS] += 1
    s.island[HEAD, island] = -1
    i = s.island[BEGIN, island]
    while i < s.island[END, island] and alive > 0:
        job = s.waiting[i]
        is_behind = s.island[HEAD, island] >= 0
        if (is_behind and s.kind[IS_FAILED, q.kind[job]] == 1) or is_throttled(q, s, job):
            i += 1
            continue
        if not has_room(site, q, s, store, job):
            return False
        if is_behind:
            is_started, less = backfills(site, shapes, q, s, store, out, job, island)
        else:
            is_started, less = fits_in_order(site, shapes, q, s, store, out, job)
        alive -= less
        if is_started:
            i = remove(q, s, island, i)
            continue
        if not is_behind:
            s.island[HEAD, island] = job
            if rules.backfill != EASY:
                break
        i += 1
    if s.island[HEAD, island] < 0:
        s.island[HEAD, island] = first_unthrottled(q, s, island, i)
    seen(s, island)
    return True


@njit(**INNER)
def seen(s, island):
    """Note that an island has been passed over."""
    s.island[PASS_EPOCH, island] = s.island[EPOCH, island]
    s.island[NUM_NEW, island] = 0
    s.island[IS_DIRTY, island] = 0


@njit(**INNER)
def try_newest(site, shapes, q, rules, s, store, out, island):
    """Try the one job that has joined a queue in which nothing else has changed.

    Returns 1 where that was all, 0 where the store is full, and 2 where the whole queue must be passed over: those who
    had to wait have to wait now, if the head of the queue is still the same.
    """
    job, head = s.island[NEWEST, island], s.island[HEAD, island]
    if head < 0 or is_limited(q, head):
        return 2
    if comes_before(q, job, key_of(q, rules, s, job), head, key_of(q, rules, s, head)):
        return 2
    kind = q.kind[job]
    if s.kind[IS_FAILED, kind] == 1 and not still_fails(site, shapes, q, s, store, kind):
        s.kind[IS_FAILED, kind] = 0
    if rules.backfill == EASY and s.kind[IS_FAILED, kind] == 0 and not is_throttled(q, s, job):
        if not has_room(site, q, s, store, job):
            return 0
        s.counts[PASS] += 1
        is_started, _ = backfills(site, shapes, q, s, store, out, job, island)
        if is_started:
            remove(q, s, island, place_of(s, island, job))
    seen(s, island)
    return 1
