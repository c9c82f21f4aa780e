"""A queue at one moment, from what is recorded of it: forecasts as they were when jobs arrived, and scores now."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.forecasts.kernels.online import remember
from stretto.queues.mars.kernels.score import fill_scores, look
from stretto.queues.promises.kernels.starts import GIVEN, fill_keys, key_now


@njit(cache=True, nogil=True)
def foresee_all(q, num_procs, s, f, net, t, by_end, end):
    """Forecast all jobs as of their arrival, then learn from all that have ended.

    Parameters
    ----------
    by_end, end
        Jobs that have ended, in that order, and when.
    """
    m = s.moment[0]
    done = 0
    for job in range(q.submit.shape[0]):
        while done < by_end.shape[0] and end[by_end[done]] <= q.submit[job]:
            remember(f, by_end[done], q.run[by_end[done]], end[by_end[done]])
            done += 1
        m.now = q.submit[job]
        look(q, num_procs, s, f, net, t, job)
    for i in range(done, by_end.shape[0]):
        remember(f, by_end[i], q.run[by_end[i]], end[by_end[i]])


@njit(cache=True, nogil=True)
def order_now(q, num_procs, s, order, f, net, t, now, free):
    """Return the waiting jobs of the state in an order, first to last; equal ones by submission."""
    m = s.moment[0]
    m.now = now
    m.free = free
    for i in range(m.num_waiting):
        look(q, num_procs, s, f, net, t, s.waiting[i])
    key = np.empty(m.num_waiting)
    fill_keys(q, s, order)
    if order.code == GIVEN:
        fill_scores(q, s, net, t)
    for i in range(m.num_waiting):
        job = s.waiting[i]
        key[i] = s.key[job] if order.code == GIVEN else key_now(q, num_procs, s, order, job)
    return s.waiting[: m.num_waiting][np.argsort(key, kind="mergesort")]
