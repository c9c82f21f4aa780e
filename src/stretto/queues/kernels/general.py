"""Replay jobs in pools: any order, backfilling, estimates, dependencies, elastic and spot pools. The general loop.

``queues.reference.replay`` defines what it does; this is the same in compiled form. The plain cases have faster
loops: ``queue_run`` and ``queue_conservative``.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed
from stretto.queues.kernels.attempts import finish, interrupt, start_job
from stretto.queues.kernels.codes import BURST, CONSERVATIVE, DONE, MULTIFACTOR, NONE, SLACK, STUCK
from stretto.queues.kernels.estimates import predict, raise_predictions
from stretto.queues.kernels.fairshare import multifactor_key
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.kernels.nodes import close_pool, come_up, expire_idle, order_count, pay_oldest, sync_idle
from stretto.queues.kernels.orders import order_nodes
from stretto.queues.kernels.plan import plan_all
from stretto.queues.kernels.pools import count_backlog, prefer
from stretto.queues.kernels.promise import backfill, fits_somewhere, promise
from stretto.queues.kernels.spot import advance_prices, next_flip
from stretto.queues.kernels.state import IS_INTERRUPTED, believed, span


@njit(cache=True, nogil=True)
def run_general(q, p, rules, limit, draws, s, out):
    """Fill the outcome; return DONE, or STUCK where jobs wait for what never comes.

    Parameters
    ----------
    q, p, rules
        The jobs as ``QueueArrays``, the pools as ``PoolArrays``, and ``Rules``.
    limit
        [n] the wall limits, at speed 1.
    s
        A new ``State``.
    draws
        [n, NUM_DRAWS] unit exponentials, or [0, 0] where no pool has a hazard.
    """
    n = q.submit.shape[0]
    all_procs = 0
    for k in range(p.pool.shape[0]):
        all_procs += p.pool[k].nodes * p.pool[k].procs_per_node
    roots = np.flatnonzero(q.num_parents == 0)
    next_root = 0
    num_done = 0
    sync_idle(p, s)
    while num_done < n:
        then = next_moment(q, p, s, roots, next_root)
        if then == np.inf:
            return STUCK
        expire_idle(p, s, out, then)
        s.moment[0].now = then
        arrivals_only = rules.one_event and arrival_time(q, s, roots, next_root) == then
        if not arrivals_only:
            ended, stopped = end_jobs(q, p, rules, s, out, limit, all_procs)
            num_done += ended
            if not (rules.one_event and stopped):
                pool_news(q, p, rules, s, out, all_procs)
        if arrivals_only or not rules.one_event:
            next_root = take_arrivals(q, rules, s, out, roots, next_root, all_procs)
        advance_prices(p, s)
        raise_predictions(q, p, rules, s)
        for k in range(p.pool.shape[0]):
            s.pool[k].keep = 0
        if s.moment[0].num_waiting > 0:
            schedule(q, p, rules, s, out, limit, draws, all_procs)
        sync_idle(p, s)
    for k in range(p.pool.shape[0]):
        while s.pool[k].num_up > 0:
            pay_oldest(p, s, out, k, s.moment[0].now)
    return DONE


@njit(cache=True, nogil=True)
def arrival_time(q, s, roots, next_root):
    """Return when the next job arrives."""
    time = q.submit[roots[next_root]] if next_root < roots.shape[0] else np.inf
    return min(time, s.later[0]) if s.moment[0].num_later > 0 else time


@njit(cache=True, nogil=True)
def next_moment(q, p, s, roots, next_root):
    """Return when something happens next."""
    time = arrival_time(q, s, roots, next_root)
    for i in range(s.moment[0].num_running):
        time = min(time, s.job[s.running[i]].stop)
    for k in range(p.pool.shape[0]):
        if s.pool[k].num_pending > 0:
            time = min(time, s.pending[k, s.pool[k].pending_first])
        time = min(time, next_flip(p, s, k))
    return time


@njit(cache=True, nogil=True)
def end_jobs(q, p, rules, s, out, limit, all_procs):
    """End the attempts that stop now, by lower job, or only the first; return the jobs ended, and if any stopped."""
    ended = 0
    stopped = False
    while True:
        first = -1
        for i in range(s.moment[0].num_running):
            job = s.running[i]
            if s.job[job].stop == s.moment[0].now and (first < 0 or job < first):
                first = job
        if first < 0:
            return ended, stopped
        stopped = True
        if s.job[first].ending == IS_INTERRUPTED:
            interrupt(q, p, rules, s, out, first)
            enqueue(q, rules, s, out, first, all_procs)
        else:
            finish(q, p, rules, s, out, limit, first)
            ended += 1
        if rules.one_event:
            return ended, stopped


@njit(cache=True, nogil=True)
def pool_news(q, p, rules, s, out, all_procs):
    """Close and open pools whose price crosses the bid; let ordered nodes come up."""
    for k in range(p.pool.shape[0]):
        if next_flip(p, s, k) == s.moment[0].now:
            s.pool[k].closed = not s.pool[k].closed
            if s.pool[k].closed:
                interrupt_all(q, p, rules, s, out, k, all_procs)
                close_pool(p, s, out, k)
            else:
                order_count(p, s, k, p.pool[k].base)
        come_up(p, s, k)


@njit(cache=True, nogil=True)
def interrupt_all(q, p, rules, s, out, k, all_procs):
    """Interrupt the jobs of a pool, by lower job."""
    while True:
        first = -1
        for i in range(s.moment[0].num_running):
            job = s.running[i]
            if s.job[job].place == k and (first < 0 or job < first):
                first = job
        if first < 0:
            return
        interrupt(q, p, rules, s, out, first)
        enqueue(q, rules, s, out, first, all_procs)


@njit(cache=True, nogil=True)
def take_arrivals(q, rules, s, out, roots, next_root, all_procs):
    """Let the jobs arrive whose time is now, by lower job, or only the first; return the next one without parents."""
    now = s.moment[0].now
    while arrival_time(q, s, roots, next_root) == now:
        is_root = next_root < roots.shape[0] and q.submit[roots[next_root]] == now
        is_later = s.moment[0].num_later > 0 and s.later[0] == now
        if is_root and not (is_later and s.later_job[0] < roots[next_root]):
            job = roots[next_root]
            next_root += 1
        else:
            job = s.later_job[0]
            drop_timed(s.later, s.later_job, 0, s.moment[0].num_later)
            s.moment[0].num_later -= 1
        out.ready[job] = now
        s.job[job].predicted = predict(q, rules, s, job)
        enqueue(q, rules, s, out, job, all_procs)
        if rules.one_event:
            break
    return next_root


@njit(cache=True, nogil=True)
def key_of(q, rules, s, out, job, all_procs):
    """Return a job's key at this moment."""
    wait = s.moment[0].now - out.ready[job]
    if rules.strategy == MULTIFACTOR:
        return multifactor_key(q, rules, s, job, wait, all_procs)
    if rules.strategy >= FIRST_DYNAMIC:
        return dynamic_key(rules.strategy, s.moment[0].now, out.ready[job], believed(s, job), q.procs[job])
    return static_key(rules.strategy, job, q.submit[job], believed(s, job), q.procs[job], q.deadline[job])


@njit(cache=True, nogil=True)
def insert(s, at, job, key):
    """Put a job into the sorted part of the queue that ends before ``at``."""
    while at > 0 and (s.key[at - 1] > key or (s.key[at - 1] == key and s.waiting[at - 1] > job)):
        s.key[at] = s.key[at - 1]
        s.waiting[at] = s.waiting[at - 1]
        at -= 1
    s.key[at] = key
    s.waiting[at] = job


@njit(cache=True, nogil=True)
def enqueue(q, rules, s, out, job, all_procs):
    """Add a job to the queue; keys that change with time are computed in the pass."""
    key = key_of(q, rules, s, out, job, all_procs) if rules.strategy < FIRST_DYNAMIC else np.inf
    insert(s, s.moment[0].num_waiting, job, key)
    s.moment[0].num_waiting += 1


@njit(cache=True, nogil=True)
def schedule(q, p, rules, s, out, limit, draws, all_procs):
    """Make one pass."""
    if rules.strategy >= FIRST_DYNAMIC:
        for i in range(s.moment[0].num_waiting):
            job = s.waiting[i]
            insert(s, i, job, key_of(q, rules, s, out, job, all_procs))
    start_heads(q, p, rules, s, out, limit, draws)
    count = s.moment[0].num_waiting
    if count == 0:
        return
    if rules.pool_rule >= BURST:
        for i in range(count):
            job = s.waiting[i]
            work = span(p, s, job, 0) * p.width[job, 0] if p.width[job, 0] >= 0 else 0.0
            s.ahead[i + 1] = s.ahead[i] + work
    order_nodes(q, p, rules, s)
    if rules.backfill == CONSERVATIVE:
        note_promise(q, p, rules, s)
        plan_all(q, p, rules, s, out, limit, draws)
    elif rules.backfill == NONE:
        note_promise(q, p, rules, s)
        return
    elif rules.backfill == SLACK or is_growing(p) or can_backfill(p, s):
        place, time, extra = promise(q, p, rules, s, s.waiting[0])
        if place >= 0:
            keep_for_head(p, s, place)
        backfill(q, p, rules, s, out, limit, draws, place, time, extra)
    close_gaps(s)


@njit(cache=True, nogil=True)
def can_backfill(p, s):
    """Say whether some job behind the head has enough free processors somewhere."""
    for i in range(1, s.moment[0].num_waiting):
        if fits_somewhere(p, s, s.waiting[i]):
            return True
    return False


@njit(cache=True, nogil=True)
def is_growing(p):
    """Say whether a pool is elastic."""
    for k in range(p.pool.shape[0]):
        if p.pool[k].base < p.pool[k].nodes:
            return True
    return False


@njit(cache=True, nogil=True)
def note_promise(q, p, rules, s):
    """Keep the nodes that the head needs, where nodes can go."""
    if is_growing(p):
        place, _, _ = promise(q, p, rules, s, s.waiting[0])
        if place >= 0:
            keep_for_head(p, s, place)


@njit(cache=True, nogil=True)
def keep_for_head(p, s, place):
    """Let no node go that the promised head needs."""
    s.pool[place].keep = max(s.pool[place].keep, p.width[s.waiting[0], place])


@njit(cache=True, nogil=True)
def start_heads(q, p, rules, s, out, limit, draws):
    """Start jobs from the head of the queue while they fit."""
    head = 0
    while head < s.moment[0].num_waiting:
        for k in range(p.pool.shape[0]):
            s.pool[k].room = s.pool[k].free
        if rules.pool_rule >= BURST:
            count_backlog(p, rules, s)
        k = prefer(q, p, rules, s, s.waiting[head], 0.0)
        if k < 0:
            break
        start_job(q, p, rules, s, out, limit, draws, s.waiting[head], k)
        s.waiting[head] = -1
        head += 1
    if head > 0:
        close_gaps(s)


@njit(cache=True, nogil=True)
def close_gaps(s):
    """Close the places of jobs that started."""
    to = 0
    for i in range(s.moment[0].num_waiting):
        if s.waiting[i] >= 0:
            s.waiting[to] = s.waiting[i]
            s.key[to] = s.key[i]
            to += 1
    s.moment[0].num_waiting = to
