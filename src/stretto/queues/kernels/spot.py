"""Spot markets: prices in steps, closings above the bid, and the next interruption of a job."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.codes import NUM_DRAWS
from stretto.queues.kernels.state import nodes_of


@njit(cache=True, nogil=True)
def advance_prices(p, s):
    """Let every pool's current price step be the one of now."""
    for k in range(p.pool.shape[0]):
        while s.pool[k].step + 1 < p.pool[k].last_step and p.step[s.pool[k].step + 1].time <= s.moment[0].now:
            s.pool[k].step += 1


@njit(cache=True, nogil=True)
def next_flip(p, s, k):
    """Return when a pool closes or opens next; the current moment, if it is due."""
    for i in range(s.pool[k].step, p.pool[k].last_step):
        if (p.step[i].price > p.pool[k].bid) != s.pool[k].closed:
            return p.step[i].time
    return np.inf


@njit(cache=True, nogil=True)
def next_interruption(p, s, out, draws, job, k):
    """Return when a job that starts now in a pool will be interrupted, inf = never."""
    count = out.interruptions[job]
    if draws.shape[0] == 0 or count >= NUM_DRAWS:
        return np.inf
    left = draws[job, count]
    last = p.pool[k].last_step
    for i in range(s.pool[k].step, last):
        begin = max(p.step[i].time, s.moment[0].now)
        until = p.step[i + 1].time if i + 1 < last else np.inf
        rate = p.step[i].hazard * nodes_of(p, job, k) / 3600.0
        if until <= begin or rate == 0.0:
            continue
        if begin + left / rate < until:
            return begin + left / rate
        left -= (until - begin) * rate
    return np.inf
