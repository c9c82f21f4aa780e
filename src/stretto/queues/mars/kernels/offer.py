"""Who starts now by the scores of a network: as in EASY, but some room is kept for short jobs."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.mars.kernels.score import LONG_S
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.promises.kernels.starts import start_by_key

#: See ``MarsParameters``.
ROOMY = P.roomy


@njit(cache=True, nogil=True)
def need_of(q, num_procs, net, t, job):
    """Return how many processors must be free for a job to start: long ones leave room for short ones."""
    procs = q.procs[job]
    if net.reserve[0] <= 0.0 or t.mean[job] <= LONG_S:
        return procs
    kept = np.int64(np.ceil(net.reserve[0] * t.width[0]))
    return max(procs, min(procs + kept, np.int64(np.ceil(ROOMY * num_procs))))


@njit(cache=True, nogil=True)
def offer(q, num_procs, s, order, net, t):
    """Offer the waiting jobs in the order of their scores."""
    count = s.moment[0].num_waiting
    key, need = np.empty(count), np.empty(count, np.int64)
    for i in range(count):
        key[i] = s.key[s.waiting[i]]
        need[i] = need_of(q, num_procs, net, t, s.waiting[i])
    start_by_key(q, s, order, key, need)
