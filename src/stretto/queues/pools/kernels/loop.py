"""Replay jobs in pools from moment to moment, with or without promises; it stops after any arrival and goes on."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import DONE, PROMISE, STUCK
from stretto.queues.kernels.estimates import raise_predictions
from stretto.queues.kernels.general import (
    end_jobs,
    insert,
    key_of,
    next_moment,
    pool_news,
    schedule,
    take_arrivals,
)
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.kernels.nodes import expire_idle, pay_oldest, sync_idle
from stretto.queues.kernels.spot import advance_prices
from stretto.queues.pools.kernels.plan import join_plan, move_forward, plan_anew
from stretto.queues.pools.kernels.profile import is_fixed, lead_time, rebuild
from stretto.queues.pools.kernels.starts import propose, rent, settle

#: What the loop returns beside DONE and STUCK: so many jobs have arrived.
PAUSED = 2
#: A job that outlives its estimate is expected to run for so much more of what it has run, and so long at least.
RAISED_SHARE = 0.2
RAISED_S = 60.0


@njit(cache=True, nogil=True)
def next_planned(p, s, c):
    """Return when the plan needs attention: a planned start, an order of nodes, an estimate that is outlived."""
    now = s.moment[0].now
    if c.moment[0].num_planned == 0:
        return np.inf
    then = np.inf
    for i in range(c.moment[0].num_planned):
        job = c.plan[i]
        then = min(then, c.planned[job])
        k = c.where[job]
        if not is_fixed(p, k) and c.planned[job] - lead_time(p, k) > now:
            then = min(then, c.planned[job] - lead_time(p, k))
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if c.counted[s.job[job].place]:
            then = min(then, c.until[job])
    return max(then, now)


@njit(cache=True, nogil=True)
def accrue(p, s, c, then):
    """Add what rented nodes cost from the last moment on; nodes that are always up are not rented."""
    for k in range(p.pool.shape[0]):
        rented = s.pool[k].num_up - p.pool[k].base
        if rented <= 0:
            continue
        last = p.pool[k].last_step
        for i in range(s.pool[k].step, last):
            if p.step[i].time >= then:
                break
            end = min(then, p.step[i + 1].time if i + 1 < last else np.inf)
            overlap = end - max(p.step[i].time, c.moment[0].until)
            if overlap > 0.0:
                c.moment[0].accrued += rented * overlap / 3600.0 * p.step[i].price
    c.moment[0].until = then


@njit(cache=True, nogil=True)
def raise_outlived(s, c):
    """Expect jobs that have outlived their estimate to run for some more time; say whether there are any."""
    now = s.moment[0].now
    found = False
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if c.until[job] <= now and c.counted[s.job[job].place]:
            c.until[job] = now + max(RAISED_S, RAISED_SHARE * (now - s.job[job].began))
            c.moment[0].num_raised += 1
            found = True
    return found


@njit(cache=True, nogil=True)
def promise_new(q, p, s, c):
    """Promise a start to the jobs that have begun to wait in this moment, by lower job."""
    count = 0
    for i in range(s.moment[0].num_waiting):
        job = s.waiting[i]
        if c.is_new[job]:
            to = count
            while to > 0 and c.trial[to - 1] > job:
                c.trial[to] = c.trial[to - 1]
                to -= 1
            c.trial[to] = job
            count += 1
    for i in range(count):
        join_plan(q, p, s, c, c.trial[i])


@njit(cache=True, nogil=True)
def update_plan(q, p, s, c, has_freed):
    """Bring the plan to this moment: outlived estimates, room that has become free, and new promises."""
    is_raised = raise_outlived(s, c)
    rebuild(q, p, s, c)
    if c.moment[0].num_planned > 0:
        if is_raised:
            plan_anew(q, p, s, c)
        elif has_freed:
            move_forward(q, p, s, c)
    promise_new(q, p, s, c)


@njit(cache=True, nogil=True)
def sort_waiting(q, rules, s, out, all_procs):
    """Let the queue stand by the keys of an order that may be another one than before."""
    if rules.strategy < FIRST_DYNAMIC:
        for i in range(s.moment[0].num_waiting):
            job = s.waiting[i]
            insert(s, i, job, key_of(q, rules, s, out, job, all_procs))


@njit(cache=True, nogil=True)
def count_up(s):
    """Return how many nodes are up."""
    total = 0
    for k in range(s.pool.shape[0]):
        total += s.pool[k].num_up
    return total


@njit(cache=True, nogil=True)
def advance_pools(q, p, rules, limit, draws, s, out, c, roots, num_jobs, until):
    """Replay until so many jobs have arrived, or to the end; return DONE, STUCK or PAUSED.

    Parameters
    ----------
    q, p, rules, limit, draws, s
        As for ``run_general``; the order and the pool rule may be others than in the last call, and run times of jobs
        that have not started may have changed.
    c
        A ``PoolPlan``.
    roots
        The jobs without parents.
    num_jobs
        More than there are = to the end.
    until
        Stop before the first moment after this time; inf = do not.
    """
    n = q.submit.shape[0]
    all_procs = 0
    for k in range(p.pool.shape[0]):
        all_procs += p.pool[k].nodes * p.pool[k].procs_per_node
    sort_waiting(q, rules, s, out, all_procs)
    sync_idle(p, s)
    has_promises = rules.backfill == PROMISE
    m = c.moment[0]
    while m.num_done < n:
        then = next_moment(q, p, s, roots, m.next_root)
        if has_promises:
            then = min(then, next_planned(p, s, c))
        if then == np.inf:
            return STUCK
        if (m.num_arrived >= num_jobs and then > s.moment[0].now) or then > until:
            return PAUSED
        accrue(p, s, c, then)
        expire_idle(p, s, out, then)
        s.moment[0].now = then
        num_up = count_up(s)
        ended, stopped = end_jobs(q, p, rules, s, out, limit, all_procs)
        m.num_done += ended
        pool_news(q, p, rules, s, out, all_procs)
        has_freed = stopped or count_up(s) != num_up
        m.num_stops += has_freed
        before = m.next_root
        m.next_root = take_arrivals(q, rules, s, out, roots, m.next_root, all_procs)
        note_arrivals(c, roots, before)
        advance_prices(p, s)
        raise_predictions(q, p, rules, s)
        for k in range(p.pool.shape[0]):
            s.pool[k].keep = 0
        if s.moment[0].num_waiting > 0:
            if has_promises:
                update_plan(q, p, s, c, has_freed)
                propose(q, p, rules, s, out, limit, draws, c, all_procs)
                settle(q, p, rules, s, out, limit, draws, c)
                rent(q, p, s, c)
            else:
                schedule(q, p, rules, s, out, limit, draws, all_procs)
        sync_idle(p, s)
    for k in range(p.pool.shape[0]):
        while s.pool[k].num_up > 0:
            pay_oldest(p, s, out, k, s.moment[0].now)
    return DONE


@njit(cache=True, nogil=True)
def note_arrivals(c, roots, before):
    """Note what had been paid when jobs arrived."""
    m = c.moment[0]
    for i in range(before, m.next_root):
        c.usd_at[roots[i]] = m.accrued
    m.num_arrived += m.next_root - before
