"""Who starts now in pools with promises: any order and pool rule proposes, the plan of promised starts refuses."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.attempts import start_job
from stretto.queues.kernels.codes import BURST
from stretto.queues.kernels.general import close_gaps, insert, key_of
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.kernels.nodes import headroom, order_procs
from stretto.queues.kernels.orders import order_nodes
from stretto.queues.kernels.pools import count_backlog, prefer
from stretto.queues.kernels.promise import fits_somewhere, promise
from stretto.queues.kernels.state import span
from stretto.queues.pools.kernels.plan import adopt, find_plan, leave_plan
from stretto.queues.pools.kernels.profile import (
    fits_at,
    give_back,
    is_fixed,
    lead_time,
    most_used,
    plan_span,
    rebuild,
    steps_of,
    take,
)
from stretto.queues.promises.kernels.steps import add

#: Plans that are tested per pass; a start beyond them waits for the next moment.
MAX_TESTS = 16
#: A room in which no job fits.
_NO_ROOM = -1


@njit(cache=True, nogil=True)
def begin_job(q, p, rules, s, out, limit, draws, c, job, k):
    """Start a job that the plan allows; the caller takes it out of the queue."""
    start_job(q, p, rules, s, out, limit, draws, job, k)
    now = s.moment[0].now
    c.until[job] = now + plan_span(q, p, s, job, k)
    c.margin[job] = min(c.margin[job], c.due[job] - now)
    c.is_new[job] = True


@njit(cache=True, nogil=True)
def may_start(q, p, s, c, job, k, can_test):
    """Say whether every promise can be met with this job in a pool, and whether a plan was tested.

    If so, the plan is one that does, without the job.
    """
    is_planned = c.planned[job] < np.inf
    if is_planned:
        give_back(q, p, s, c, job)
    if not c.counted[k]:
        if is_planned:
            leave_plan(c, job)
        return True, False
    now, length = s.moment[0].now, plan_span(q, p, s, job, k)
    if fits_at(steps_of(c, k), p.width[job, k], length, now):
        add(steps_of(c, k), now, now + length, -p.width[job, k])
        if is_planned:
            leave_plan(c, job)
        return True, False
    tested = can_test and c.refused_at[job, k] != c.moment[0].num_stops
    if tested:
        c.moment[0].num_tests += 1
        if find_plan(q, p, s, c, job, k, now):
            adopt(c, job)
            return True, True
        c.refused_at[job, k] = c.moment[0].num_stops
        c.moment[0].num_refused += 1
    if is_planned:
        take(q, p, s, c, job)
    return False, tested


@njit(cache=True, nogil=True)
def offer(q, p, rules, s, out, limit, draws, c, job, ahead, num_tests):
    """Start a job in the best pool in whose ``room`` it fits and that the plan allows.

    Return that pool, -1 = it was refused, -2 = it fits none; and how many plans have been tested so far.
    """
    k = prefer(q, p, rules, s, job, ahead)
    if k < 0:
        return -2, num_tests
    while k >= 0:
        allowed, tested = may_start(q, p, s, c, job, k, num_tests < MAX_TESTS)
        num_tests += tested
        if allowed:
            begin_job(q, p, rules, s, out, limit, draws, c, job, k)
            return k, num_tests
        s.pool[k].room = _NO_ROOM
        k = prefer(q, p, rules, s, job, ahead)
    return -1, num_tests


@njit(cache=True, nogil=True)
def free_rooms(p, s):
    """Let the room of every pool be what is free."""
    for k in range(p.pool.shape[0]):
        s.pool[k].room = s.pool[k].free


@njit(cache=True, nogil=True)
def offer_heads(q, p, rules, s, out, limit, draws, c):
    """Offer jobs from the head of the queue until one does not fit; return its place, -1 = all fit; and the tests."""
    num_tests = 0
    head = -1
    kept = 0  # refused before the head
    for i in range(s.moment[0].num_waiting):
        free_rooms(p, s)
        if rules.pool_rule >= BURST:
            count_backlog(p, rules, s)
        k, num_tests = offer(q, p, rules, s, out, limit, draws, c, s.waiting[i], 0.0, num_tests)
        if k == -2:
            head = kept
            break
        if k == -1:
            kept += 1
        else:
            s.waiting[i] = -1
    close_gaps(s)
    return head, num_tests


@njit(cache=True, nogil=True)
def offer_others(q, p, rules, s, out, limit, draws, c, head, num_tests):
    """Offer the jobs behind the head that do not delay it, as EASY does."""
    place, time, extra = promise(q, p, rules, s, s.waiting[head])
    if place >= 0:
        s.pool[place].keep = max(s.pool[place].keep, p.width[s.waiting[head], place])
    now = s.moment[0].now
    for i in range(head + 1, s.moment[0].num_waiting):
        job = s.waiting[i]
        if not fits_somewhere(p, s, job):
            continue
        free_rooms(p, s)
        late = place >= 0 and now + span(p, s, job, place) > time
        if late:
            s.pool[place].room = min(s.pool[place].free, extra)
        k, num_tests = offer(q, p, rules, s, out, limit, draws, c, job, s.ahead[i], num_tests)
        if k >= 0:
            if late and k == place:
                extra -= p.width[job, k]
            s.waiting[i] = -1
    close_gaps(s)


@njit(cache=True, nogil=True)
def propose(q, p, rules, s, out, limit, draws, c, all_procs):
    """Make one pass: order, heads, nodes, backfilling."""
    if rules.strategy >= FIRST_DYNAMIC:
        for i in range(s.moment[0].num_waiting):
            job = s.waiting[i]
            insert(s, i, job, key_of(q, rules, s, out, job, all_procs))
    head, num_tests = offer_heads(q, p, rules, s, out, limit, draws, c)
    count = s.moment[0].num_waiting
    if count == 0:
        return
    if rules.pool_rule >= BURST:
        for i in range(count):
            job = s.waiting[i]
            work = span(p, s, job, 0) * p.width[job, 0] if p.width[job, 0] >= 0 else 0.0
            s.ahead[i + 1] = s.ahead[i] + work
    order_nodes(q, p, rules, s)
    if head >= 0:
        offer_others(q, p, rules, s, out, limit, draws, c, head, num_tests)


@njit(cache=True, nogil=True)
def next_change(p, s, c):
    """Return when more processors are expected in a pool that promises count on, inf = never."""
    now = s.moment[0].now
    then = np.inf
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if c.counted[s.job[job].place]:
            then = min(then, c.until[job])
    for k in range(p.pool.shape[0]):
        if c.counted[k]:
            if s.pool[k].num_pending > 0:
                then = min(then, s.pending[k, s.pool[k].pending_first])
            if headroom(p, s, k) > 0:
                then = min(then, now + lead_time(p, k))
    return then if then > now else now + ONE_TICK_S


#: Nodes that take no time to come up are there in the next moment of the same time; the plan waits for a second.
ONE_TICK_S = 1.0


@njit(cache=True, nogil=True)
def settle(q, p, rules, s, out, limit, draws, c):
    """Put off the jobs that are planned for now and did not start, or start those that cannot wait."""
    now = s.moment[0].now
    while c.moment[0].num_planned > 0 and c.planned[c.plan[0]] <= now:
        then = next_change(p, s, c)
        if then < np.inf and find_plan(q, p, s, c, -1, -1, then):
            adopt(c, -1)
            return
        urgent = -1
        for i in range(c.moment[0].num_planned):
            job = c.plan[i]
            if c.planned[job] > now:
                break
            if urgent < 0 or c.latest[job] < c.latest[urgent]:
                urgent = job
        k = c.where[urgent]
        leave_plan(c, urgent)
        begin_job(q, p, rules, s, out, limit, draws, c, urgent, k)
        for i in range(s.moment[0].num_waiting):
            if s.waiting[i] == urgent:
                s.waiting[i] = -1
        close_gaps(s)
        c.moment[0].num_forced += 1


@njit(cache=True, nogil=True)
def rent(q, p, s, c):
    """Order the nodes that the plan needs after their lead time, and let none go that it needs before."""
    rebuild(q, p, s, c)  # the pass has ordered nodes by its own rule
    for k in range(p.pool.shape[0]):
        if c.counted[k] and not is_fixed(p, k):
            keep, there = most_used(p, s, k, steps_of(c, k))
            missing = there - (s.pool[k].num_up + s.pool[k].num_pending) * p.pool[k].procs_per_node
            if missing > 0:
                order_procs(p, s, k, missing)
            s.pool[k].keep = max(s.pool[k].keep, max(keep, there))
