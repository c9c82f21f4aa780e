"""Who starts now by the scores of a network: as in EASY, but some room is kept for short jobs."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.mars.kernels.score import LONG_S
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.promises.kernels.starts import reserve, try_start

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
    """Offer jobs in the order of their keys; start those that fit, delay no reservation and break no promise."""
    m = s.moment[0]
    count = 0
    wide = -1
    wide_key = np.inf
    keys = np.empty(m.num_waiting)
    fitting = np.empty(m.num_waiting, np.int64)
    for i in range(m.num_waiting):
        job = s.waiting[i]
        if need_of(q, num_procs, net, t, job) <= m.free:
            keys[count] = s.key[job]
            fitting[count] = job
            count += 1
        elif wide < 0 or s.key[job] < wide_key:
            wide = job
            wide_key = s.key[job]
    by_key = np.argsort(keys[:count], kind="mergesort")
    head = -1
    shadow = np.inf
    extra = np.int64(0)
    num_tests = 0
    for at in by_key:
        job = fitting[at]
        if m.free <= 0:
            break
        need = need_of(q, num_procs, net, t, job)
        if head < 0:
            if wide >= 0 and (wide_key < keys[at] or (wide_key == keys[at] and wide < job)):
                head = wide
            elif need > m.free:
                head = job
            if head >= 0:
                shadow, extra = reserve(q, s, order, head)
        if need > m.free:
            continue
        length = min(q.estimate[job], s.length[job])
        ends_late = m.now + length > shadow
        if head >= 0 and ends_late and q.procs[job] > extra:
            continue
        started, tested = try_start(q, s, job, num_tests < order.max_tests)
        num_tests += tested
        if started and head >= 0 and ends_late:
            extra -= q.procs[job]
