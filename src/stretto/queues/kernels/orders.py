"""Order the nodes that waiting jobs lack."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import BURST, NONE
from stretto.queues.kernels.nodes import capacity, headroom, order_procs
from stretto.queues.kernels.pools import can_ever, prefer, score


@njit(cache=True, nogil=True)
def order_nodes(q, p, rules, s):
    """Order for the waiting jobs in turn, until one cannot be given what it lacks; see the reference."""
    num_pools = p.pool.shape[0]
    grows = False
    for k in range(num_pools):
        grows = grows or p.pool[k].base < p.pool[k].nodes
    if not grows:
        return
    may_wait = rules.pool_rule >= BURST and rules.backfill != NONE
    for k in range(num_pools):
        s.pool[k].room = s.pool[k].free + p.pool[k].procs_per_node * s.pool[k].num_pending
    for i in range(s.moment[0].num_waiting):
        job = s.waiting[i]
        k = prefer(q, p, rules, s, job, s.ahead[i])
        if k < 0:
            k = prefer_growing(q, p, rules, s, job, s.ahead[i])
            if k < 0:
                if may_wait and can_ever(p, s, job, 0):
                    continue
                break
            s.pool[k].room += order_procs(p, s, k, p.width[job, k] - s.pool[k].room)
        s.pool[k].room -= p.width[job, k]
    order_for_head(p, rules, s, s.waiting[0])
    for k in range(num_pools):  # or nodes that a job counts on would go before the ordered ones come
        s.pool[k].keep = capacity(p, s, k) - s.pool[k].room


@njit(cache=True, nogil=True)
def prefer_growing(q, p, rules, s, job, ahead):
    """Return the best pool that fits a job after an order, -1 = none."""
    for k in range(p.pool.shape[0]):
        extra = headroom(p, s, k)
        # A pool that cannot grow is no answer here, whatever room it has.
        s.pool[k].room = s.pool[k].room + extra * p.pool[k].procs_per_node if extra > 0 else s.pool[k].room - NEVER
    found = prefer(q, p, rules, s, job, ahead)
    for k in range(p.pool.shape[0]):
        extra = headroom(p, s, k)
        s.pool[k].room = s.pool[k].room - extra * p.pool[k].procs_per_node if extra > 0 else s.pool[k].room + NEVER
    return found


#: More processors than any pool has.
NEVER = 1 << 48


@njit(cache=True, nogil=True)
def order_for_head(p, rules, s, job):
    """Make some pool large enough for the head, should none be."""
    best = -1
    best_a = 0.0
    best_b = 0.0
    for k in range(p.pool.shape[0]):
        if not can_ever(p, s, job, k):
            continue
        if p.width[job, k] <= capacity(p, s, k):
            return
        if p.pool[k].base == p.pool[k].nodes:
            continue
        a, b = score(p, rules, s, job, k)
        if best < 0 or a < best_a or (a == best_a and b < best_b):
            best = k
            best_a = a
            best_b = b
    if best >= 0:
        order_procs(p, s, best, p.width[job, best] - capacity(p, s, best))
