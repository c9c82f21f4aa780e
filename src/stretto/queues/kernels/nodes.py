"""Nodes of elastic pools: ordered, up, idle, gone, and what they cost."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def pay(p, out, k, begin, end):
    """Bill one node from begin to end, in granules begun, at the prices of the time."""
    paid = np.ceil((end - begin) / p.pool[k].billing) * p.pool[k].billing
    out.node_s[k] += paid
    last = p.pool[k].last_step
    for i in range(p.pool[k].first_step, last):
        until = p.step[i + 1].time if i + 1 < last else np.inf
        overlap = min(until, begin + paid) - max(p.step[i].time, begin)
        if overlap > 0.0:
            out.usd[k] += overlap / 3600.0 * p.step[i].price


@njit(cache=True, nogil=True)
def capacity(p, s, k):
    """Return the processors of nodes that are up or on their way."""
    return (s.pool[k].num_up + s.pool[k].num_pending) * p.pool[k].procs_per_node


@njit(cache=True, nogil=True)
def headroom(p, s, k):
    """Return how many nodes can still be ordered; a pool of fixed size has all that it can have."""
    if p.pool[k].base == p.pool[k].nodes:
        return 0
    return p.pool[k].nodes - s.pool[k].num_up - s.pool[k].num_pending


@njit(cache=True, nogil=True)
def order_count(p, s, k, count):
    """Order nodes; they come up after the pool's provisioning time."""
    most = s.pending.shape[1]
    for _ in range(count):
        s.pending[k, (s.pool[k].pending_first + s.pool[k].num_pending) % most] = s.moment[0].now + p.pool[k].provision
        s.pool[k].num_pending += 1


@njit(cache=True, nogil=True)
def order_procs(p, s, k, procs):
    """Order as many nodes as hold the processors; return how many processors they have."""
    count = (procs + p.pool[k].procs_per_node - 1) // p.pool[k].procs_per_node
    order_count(p, s, k, count)
    return count * p.pool[k].procs_per_node


@njit(cache=True, nogil=True)
def come_up(p, s, k):
    """Let ordered nodes whose time has come join the pool."""
    most = s.pending.shape[1]
    while s.pool[k].num_pending > 0 and s.pending[k, s.pool[k].pending_first] <= s.moment[0].now:
        s.pool[k].pending_first = (s.pool[k].pending_first + 1) % most
        s.pool[k].num_pending -= 1
        s.up[k, (s.pool[k].up_first + s.pool[k].num_up) % most] = s.moment[0].now
        s.pool[k].num_up += 1
        s.pool[k].free += p.pool[k].procs_per_node


@njit(cache=True, nogil=True)
def pay_oldest(p, s, out, k, end):
    """Let the node that has been up longest go."""
    pay(p, out, k, s.up[k, s.pool[k].up_first], end)
    s.pool[k].up_first = (s.pool[k].up_first + 1) % s.up.shape[1]
    s.pool[k].num_up -= 1


@njit(cache=True, nogil=True)
def close_pool(p, s, out, k):
    """Take all nodes away; the pool's jobs must have left."""
    while s.pool[k].num_up > 0:
        pay_oldest(p, s, out, k, s.moment[0].now)
    s.pool[k].num_pending = 0
    s.pool[k].num_idle = 0
    s.pool[k].free = 0


@njit(cache=True, nogil=True)
def sync_idle(p, s):
    """Count idle nodes at the end of a moment; the one idle for the shortest time is used first."""
    most = s.idle.shape[1]
    for k in range(p.pool.shape[0]):
        if p.pool[k].base == p.pool[k].nodes:
            continue
        count = s.pool[k].free // p.pool[k].procs_per_node
        while s.pool[k].num_idle < count:
            s.idle[k, (s.pool[k].idle_first + s.pool[k].num_idle) % most] = s.moment[0].now
            s.pool[k].num_idle += 1
        s.pool[k].num_idle = count


@njit(cache=True, nogil=True)
def expire_idle(p, s, out, then):
    """Let nodes go that reach their idle time by ``then``; nothing else happens before it."""
    for k in range(p.pool.shape[0]):
        if p.pool[k].base == p.pool[k].nodes:
            continue
        while s.pool[k].num_idle > 0:
            end = s.idle[k, s.pool[k].idle_first] + p.pool[k].idle
            if (
                end > then
                or s.pool[k].num_up <= p.pool[k].base
                or capacity(p, s, k) - p.pool[k].procs_per_node < s.pool[k].keep
            ):
                break
            s.pool[k].idle_first = (s.pool[k].idle_first + 1) % s.idle.shape[1]
            s.pool[k].num_idle -= 1
            pay_oldest(p, s, out, k, max(end, s.moment[0].now))
            s.pool[k].free -= p.pool[k].procs_per_node
