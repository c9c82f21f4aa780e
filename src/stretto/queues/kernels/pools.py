"""Which pool a job prefers, and when processors of a pool are expected to be free."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.core.kernels.pair_sort import sort_pairs
from stretto.queues.kernels.codes import BURST, FASTEST, FIRST_FIT, OWNED, PACK
from stretto.queues.kernels.state import expects, nodes_of, span


@njit(cache=True, nogil=True)
def usd_of(p, rules, s, job, k):
    """Return what a job would cost in a pool, by its prediction and today's price.

    Under ``PACK`` that is its part of nodes that are up and have room, and of new ones also what they idle afterwards,
    an hour at most.
    """
    price, seconds = p.step[s.pool[k].step].price, span(p, s, job, k)
    if rules.pool_rule != PACK:
        return price * nodes_of(p, job, k) * seconds / 3600.0
    if p.width[job, k] <= s.pool[k].free:
        return price * (p.width[job, k] / p.pool[k].procs_per_node) * seconds / 3600.0
    return price * nodes_of(p, job, k) * (seconds + min(p.pool[k].idle, 3600.0)) / 3600.0


@njit(cache=True, nogil=True)
def score(p, rules, s, job, k):
    """Return how much a job dislikes a pool: two numbers, the first decides."""
    if rules.pool_rule == FIRST_FIT:
        return 0.0, 0.0
    if rules.pool_rule == FASTEST:
        return span(p, s, job, k), usd_of(p, rules, s, job, k)
    return usd_of(p, rules, s, job, k), span(p, s, job, k)


@njit(cache=True, nogil=True)
def can_ever(p, s, job, k):
    """Say whether a pool is open and large enough."""
    return not s.pool[k].closed and p.width[job, k] >= 0


@njit(cache=True, nogil=True)
def is_worth(q, p, rules, s, job, k, ahead):
    """Say whether leaving pool 0 saves the deadline, or more than it costs."""
    now = s.moment[0].now
    here = (s.moment[0].backlog + ahead) / (p.pool[0].nodes * p.pool[0].procs_per_node) + span(p, s, job, 0)
    delay = 0.0 if p.width[job, k] <= s.pool[k].free else p.pool[k].provision
    there = delay + span(p, s, job, k)
    deadline = q.deadline[job]
    if now + here > deadline and now + there <= deadline:
        return True
    gain = rules.wait_usd_per_hour * (here - there) / 3600.0
    return gain > usd_of(p, rules, s, job, k) - usd_of(p, rules, s, job, 0)


@njit(cache=True, nogil=True)
def is_usable(q, p, rules, s, job, k, ahead):
    """Say whether the rule lets a job use a pool, when it cannot start in pool 0 now."""
    if not can_ever(p, s, job, k):
        return False
    if rules.pool_rule < BURST or k == 0 or not can_ever(p, s, job, 0):
        return True
    return rules.pool_rule != OWNED and is_worth(q, p, rules, s, job, k, ahead)


@njit(cache=True, nogil=True)
def prefer(q, p, rules, s, job, ahead):
    """Return the best pool in whose ``room`` a job fits, -1 = none."""
    num_pools = p.pool.shape[0]
    if num_pools == 1:
        return 0 if can_ever(p, s, job, 0) and p.width[job, 0] <= s.pool[0].room else -1
    best = -1
    best_a = 0.0
    best_b = 0.0
    for k in range(num_pools):
        if not can_ever(p, s, job, k) or p.width[job, k] > s.pool[k].room:
            continue
        if rules.pool_rule >= BURST:
            if k == 0:
                return 0
            if not is_usable(q, p, rules, s, job, k, ahead):
                continue
        a, b = score(p, rules, s, job, k)
        if best < 0 or a < best_a or (a == best_a and b < best_b):
            best = k
            best_a = a
            best_b = b
    return best


@njit(cache=True, nogil=True)
def count_backlog(p, rules, s):
    """Sum the work that is running in pool 0, in order of start."""
    total = 0.0
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if s.job[job].place == 0:
            total += (expects(rules, s, job) - s.moment[0].now) * p.width[job, 0]
    s.moment[0].backlog = total


@njit(cache=True, nogil=True)
def gather_releases(p, rules, s, k):
    """Fill ``release`` with the times at which processors of a pool are expected, sorted; return how many."""
    count = 0
    for i in range(s.moment[0].num_running):
        job = s.running[i]
        if s.job[job].place == k:
            s.release[count] = expects(rules, s, job)
            s.release_procs[count] = p.width[job, k]
            count += 1
    for i in range(s.pool[k].num_pending):
        s.release[count] = s.pending[k, (s.pool[k].pending_first + i) % s.pending.shape[1]]
        s.release_procs[count] = p.pool[k].procs_per_node
        count += 1
    sort_pairs(s.release, s.release_procs, count)
    return count
