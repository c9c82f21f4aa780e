"""Replay jobs on nodes with promises: any order proposes starts, and the plan of promised starts refuses.

``queues.nodes.reference.promised`` defines what it does.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.nodes.kernels.arrays import (
    BEGIN,
    DONE,
    END,
    EPOCH,
    FAILED_BESIDE,
    HEAD,
    INNER,
    IS_DIRTY,
    IS_FAILED,
    IS_PENDING,
    NEXT_ROOT,
    NUM_ARRIVALS,
    NUM_DONE,
    NUM_ENDS,
    NUM_PLACES,
    NUM_RUNNING,
    NUM_SLOTS,
    OUTER,
    PASS,
    PAUSED,
    RESERVED_EPOCH,
    RESERVED_JOB,
    RESERVED_NUMBER,
    STORE_IS_FULL,
    STUCK,
    UNSEEN,
)
from stretto.queues.nodes.kernels.easy import count_alive, fails, seen, start_job
from stretto.queues.nodes.kernels.limits import is_throttled
from stretto.queues.nodes.kernels.loop import end_next, next_moment, reopen
from stretto.queues.nodes.kernels.place import place
from stretto.queues.nodes.kernels.plan import (
    join_plan,
    leave_plan,
    move,
    move_forward,
    read_slot,
    set_between,
    sort_plan,
)
from stretto.queues.nodes.kernels.plan_arrays import (
    NUM_ENDED,
    NUM_FORCED,
    NUM_JOINING,
    NUM_PASS_TESTS,
    NUM_PLANNED,
    NUM_UNUSED,
)
from stretto.queues.nodes.kernels.reserve import reserve
from stretto.queues.nodes.kernels.timeline import forget_before
from stretto.queues.nodes.kernels.trial import (
    REFUSED,
    adopt_trial,
    check_start,
    find_plan,
    forget_reservation,
    refuse,
    set_free,
    start_checked,
)
from stretto.queues.nodes.kernels.waiting import enqueue, place_of, remove, resort


@njit(**INNER)
def next_event(site, q, s, p):
    """Return when something happens next: an event of the replay, or a planned start."""
    time = next_moment(site, q, s)
    if p.numbers[NUM_PLANNED] > 0:
        time = min(time, p.kept.start[p.jobs[0]])
    return time


@njit(**INNER)
def happen(site, shapes, q, rules, s, store, out, p, time):
    """Let time go on to an event: ends, arrivals, nodes that reopen. The plan is still to be kept."""
    s.clock[0] = time
    while s.counts[NUM_ENDS] > 0 and s.end_time[0] == time:
        job = s.end_job[0]
        island, until = q.island[q.kind[job]], out.start[job] + q.estimate[job]
        if until > time:
            p.has_room[island] = True
            for k in range(out.first_place[job], out.first_place[job] + out.num_places[job]):
                entry = (store.node[k], store.tasks[k], store.shape[k])
                set_between(site, shapes, island, p.kept.lines, p.amount, entry, time, until, 1)
        end_next(site, shapes, q, rules, s, store, out)
        p.numbers[NUM_ENDED] += 1
    for node in range(p.kept.lines.head.shape[0]):
        forget_before(p.kept.lines, node, time)
    while s.counts[NEXT_ROOT] < q.roots.shape[0] and q.submit[q.roots[s.counts[NEXT_ROOT]]] == time:
        arrive(q, rules, s, p, q.roots[s.counts[NEXT_ROOT]])
        s.counts[NEXT_ROOT] += 1
    while s.counts[NUM_ARRIVALS] > 0 and s.arrival_time[0] == time:
        arrive(q, rules, s, p, s.arrival_job[0])
        drop_timed(s.arrival_time, s.arrival_job, 0, s.counts[NUM_ARRIVALS])
        s.counts[NUM_ARRIVALS] -= 1
    reopen(site, s)
    p.numbers[NUM_PASS_TESTS] = 0
    s.counts[IS_PENDING] = 1


@njit(**INNER)
def arrive(q, rules, s, p, job):
    """Put a job into its queue, and among those that join the plan, by index."""
    enqueue(q, rules, s, job)
    k = p.numbers[NUM_JOINING]
    while k > 0 and p.joining[k - 1] > job:
        p.joining[k] = p.joining[k - 1]
        k -= 1
    p.joining[k] = job
    p.numbers[NUM_JOINING] += 1


@njit(**INNER)
def has_capacity(site, q, s, store, p):
    """Say whether everything that may be written at one event has room: places, slots and steps."""
    most = 0
    for island in range(s.island.shape[1]):
        for i in range(s.island[BEGIN, island], s.island[END, island]):
            most += p.most[q.kind[s.waiting[i]]]
    num_nodes = site.capacity.shape[1]
    if s.counts[NUM_PLACES] + most + 2 * p.kept.node.shape[1] + 2 * num_nodes > store.node.shape[0]:
        return False
    if p.numbers[NUM_UNUSED] < p.numbers[NUM_JOINING]:
        return False
    needed = p.kept.lines.head.shape[0] + 4 * (s.counts[NUM_SLOTS] + most + p.kept.node.shape[1]) + 16
    return needed <= p.kept.lines.begin.shape[0]


@njit(**INNER)
def keep_plan(site, shapes, q, s, store, p):
    """Let planned jobs move forward where something has become free, and plan those that have arrived."""
    for island in range(s.island.shape[1]):
        if p.has_room[island]:
            move_forward(site, shapes, q, s, store, p, island)
    for i in range(p.numbers[NUM_JOINING]):
        join_plan(site, shapes, q, s, store, p, p.joining[i])
    p.numbers[NUM_JOINING] = 0
    for i in range(p.numbers[NUM_PLANNED]):
        if p.kept.start[p.jobs[i]] > s.clock[0]:
            break
        s.island[IS_DIRTY, q.island[q.kind[p.jobs[i]]]] = 1


@njit(**INNER)
def propose(site, shapes, q, rules, s, store, out, p, island, max_tests):
    """Offer the jobs of an island in order; the first that does not fit reserves as in EASY, and the plan refuses."""
    s.island[HEAD, island] = UNSEEN
    alive = count_alive(site, shapes, q, s, store, island)
    if alive == 0:
        seen(s, island)
        return
    if rules.strategy >= FIRST_DYNAMIC:
        resort(q, rules, s, island)
    s.counts[PASS] += 1
    head = -1
    i = s.island[BEGIN, island]
    while i < s.island[END, island] and alive > 0:
        job = s.waiting[i]
        is_failed = s.kind[IS_FAILED, q.kind[job]] == 1
        if is_throttled(q, s, job) or (is_failed and head >= 0):
            i += 1
            continue
        if is_failed:
            fits, less, spares = False, 0, False
        else:
            fits, less, spares = fits_beside(site, shapes, q, s, store, out, job, island, head)
        alive -= less
        if fits:
            if offer(site, shapes, q, s, store, out, p, job, spares, max_tests):
                if head < 0:
                    forget_reservation(s, island)
                i = remove(q, s, island, i)
                alive -= 1
                continue
        elif head < 0:
            head = job
        i += 1
    seen(s, island)


@njit(**INNER)
def fits_beside(site, shapes, q, s, store, out, job, island, head):
    """Say whether a job fits now, beside the reservation of the head if there is one.

    Returns also how many jobs need no more trying, and whether the head must keep the room on its nodes.
    """
    now, kind = s.clock[0], q.kind[job]
    end = now + q.estimate[job]
    taken, could = place(site, shapes, q, s, store, kind, s.free, (False, now, end, False))
    if taken == 0:
        return False, fails(site, shapes, q, s, store, kind, could), False
    set_free(site, shapes, s, store, taken, False, 1)
    if head < 0:
        return True, 0, False
    if s.island[RESERVED_JOB, island] != head or s.island[RESERVED_EPOCH, island] != s.island[EPOCH, island]:
        reserve(site, shapes, q, s, store, out, head, island)
    if end <= s.reserved[island]:
        return True, 0, False
    if s.kind[FAILED_BESIDE, kind] == s.island[RESERVED_NUMBER, island]:
        return False, 0, True
    taken, could = place(site, shapes, q, s, store, kind, s.free, (True, now, end, False))
    if taken == 0:
        if site.closed_from.shape[0] == 0 and q.component_ptr[kind + 1] - q.component_ptr[kind] == 1:
            s.kind[FAILED_BESIDE, kind] = s.island[RESERVED_NUMBER, island]
        return False, 0, True
    set_free(site, shapes, s, store, taken, True, 1)
    return True, 0, True


@njit(**INNER)
def offer(site, shapes, q, s, store, out, p, job, spares, max_tests):
    """Start a job that fits if every promise can still be met; return whether it did."""
    now = s.clock[0]
    ask = (spares, now, now + q.estimate[job], False)
    num_tests = p.numbers[NUM_PASS_TESTS]
    verdict = check_start(site, shapes, q, s, store, p, job, ask, num_tests < max_tests)
    if verdict == REFUSED:
        if p.numbers[NUM_PASS_TESTS] > num_tests:
            refuse(p, job)
        return False
    start_checked(site, shapes, q, s, store, out, p, job, spares, verdict)
    return True


@njit(**INNER)
def settle(site, shapes, q, s, store, out, p, island):
    """Put off the jobs that are planned for now and did not start, if all promises can be met; start the others."""
    now = s.clock[0]
    while True:
        job = -1
        for i in range(p.numbers[NUM_PLANNED]):
            other = p.jobs[i]
            if p.kept.start[other] > now:
                break
            if q.island[q.kind[other]] == island and (job < 0 or p.due[other] < p.due[job]):
                job = other
        if job < 0:
            return
        later = next_free(site, q, s, island)
        if later < np.inf:
            if move(site, shapes, q, s, store, p, job, later, np.nextafter(p.due[job], np.inf)):
                p.has_room[island] = True
                sort_plan(p)
                continue
            if find_plan(site, shapes, q, s, store, p, island, -1, later):
                adopt_trial(site, q, p, island, -1)
                p.has_room[island] = True
                return
        force(site, shapes, q, s, store, out, p, job, island)


@njit(**INNER)
def next_free(site, q, s, island):
    """Return when something of an island becomes free next by estimates, inf = never."""
    found = np.inf
    for i in range(s.counts[NUM_RUNNING]):
        if q.island[q.kind[s.running[i]]] == island:
            found = min(found, s.expected[i])
    for i in range(site.reopening.shape[0]):
        if site.reopening[i] > s.clock[0]:
            return min(found, site.reopening[i])
    return found


@njit(**INNER)
def force(site, shapes, q, s, store, out, p, job, island):
    """Start a job as it is planned."""
    taken = read_slot(p.kept, p.slot[job], store, s.counts[NUM_PLACES])
    set_free(site, shapes, s, store, taken, False, -1)
    leave_plan(p, job)
    start_job(q, s, store, out, job, taken)
    forget_reservation(s, island)
    remove(q, s, island, place_of(s, island, job))
    p.numbers[NUM_FORCED] += 1


@njit(**INNER)
def decide(site, shapes, q, rules, s, store, out, p, max_tests):
    """Make all starts of this moment."""
    for island in range(s.island.shape[1]):
        if s.island[IS_DIRTY, island] == 1:
            if s.island[BEGIN, island] < s.island[END, island]:
                propose(site, shapes, q, rules, s, store, out, p, island, max_tests)
                settle(site, shapes, q, s, store, out, p, island)
            s.island[IS_DIRTY, island] = 0
    s.counts[IS_PENDING] = 0


@njit(**INNER)
def run_promised(site, shapes, q, rules, s, store, out, p, max_tests, until):
    """Run until all jobs have ended; returns as ``run_nodes`` does."""
    while s.counts[NUM_DONE] < q.submit.shape[0]:
        if s.counts[IS_PENDING] == 0:
            time = next_event(site, q, s, p)
            if time == np.inf:
                return STUCK
            if time > until:
                return PAUSED
            happen(site, shapes, q, rules, s, store, out, p, time)
        if not has_capacity(site, q, s, store, p):
            return STORE_IS_FULL
        keep_plan(site, shapes, q, s, store, p)
        decide(site, shapes, q, rules, s, store, out, p, max_tests)
    return DONE


@njit(**INNER)
def try_job(site, shapes, q, s, store, out, p, job, is_asked):
    """Start one job now, or only say whether it may start (``is_asked``): it fits, and every promise can be met."""
    now, kind = s.clock[0], q.kind[job]
    island = q.island[kind]
    if is_throttled(q, s, job):
        return False
    ask = (False, now, now + q.estimate[job], False)
    taken, _ = place(site, shapes, q, s, store, kind, s.free, ask)
    if taken == 0:
        return False
    set_free(site, shapes, s, store, taken, False, 1)
    verdict = check_start(site, shapes, q, s, store, p, job, ask, True)
    if verdict == REFUSED or is_asked:
        return verdict != REFUSED
    start_checked(site, shapes, q, s, store, out, p, job, False, verdict)
    forget_reservation(s, island)
    remove(q, s, island, place_of(s, island, job))
    return True


# What ``lead`` does, and the value that it returns.
RUN = 0  # until all jobs have ended or up to the time ``value``; as ``run_nodes``
NEXT = 1  # nothing; when something happens next
HAPPEN = 2  # goes to the time ``value``
KEEP = 3  # keeps the plan; 0 = there is not enough room, give more and call again
PROPOSE = 4  # offers the jobs of all islands
SETTLE = 5  # ends the decisions of a moment
START = 6  # starts job ``number``, 0 = it may not
ASK = 7  # whether job ``number`` may start


@njit(**OUTER)
def lead(site, shapes, q, rules, s, store, out, p, max_tests, what, number, value):
    """Do one thing with a queue: the only way in, because every way in takes long to compile."""
    if what == RUN:
        return float(run_promised(site, shapes, q, rules, s, store, out, p, max_tests, value))
    if what == NEXT:
        return next_event(site, q, s, p)
    if what == HAPPEN:
        happen(site, shapes, q, rules, s, store, out, p, value)
    elif what == KEEP:
        if not has_capacity(site, q, s, store, p):
            return 0.0
        keep_plan(site, shapes, q, s, store, p)
    elif what == PROPOSE:
        for island in range(s.island.shape[1]):
            propose(site, shapes, q, rules, s, store, out, p, island, max_tests)
    elif what == SETTLE:
        for island in range(s.island.shape[1]):
            settle(site, shapes, q, s, store, out, p, island)
            s.island[IS_DIRTY, island] = 0
        s.counts[IS_PENDING] = 0
    else:
        return 1.0 if try_job(site, shapes, q, s, store, out, p, number, what == ASK) else 0.0
    return 1.0
