"""Replay a queue with promises, in the order of a network or of a strategy, until so many jobs have arrived.

Beside the real queue runs a second one: the same arrivals under the operator's policy, without promises. It says of a
waiting job since when it would have been running. Of a job that has not ended in the real queue, the second one takes
the forecast as its run time.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.mars.kernels.offer import offer
from stretto.queues.mars.kernels.score import fill_scores, refresh
from stretto.queues.promises.kernels.loop import advance, can_start, happen, next_event
from stretto.queues.promises.kernels.starts import GIVEN, fill_keys, propose, settle


@njit(cache=True, nogil=True)
def play(q, num_procs, s, order, f, net, t, pause, num_jobs):
    """Replay until so many jobs have arrived; more than there are = to the end. Return the number of events."""
    m = s.moment[0]
    fill_keys(q, s, order)
    num_events = 0
    then = next_event(q, s)
    while then < np.inf and m.num_arrived < num_jobs:
        happen(q, s, order, f, then)
        refresh(q, num_procs, s, f, net, t, pause, order.quantile >= 0)
        decide(q, num_procs, s, order, net, t)
        num_events += 1
        then = next_event(q, s)
    return num_events


@njit(cache=True, nogil=True)
def decide(q, num_procs, s, order, net, t):
    """Start what the order proposes and the promises allow."""
    if can_start(q, s):
        if order.code == GIVEN:
            fill_scores(q, s, net, t)
            offer(q, num_procs, s, order, net, t)
        else:
            propose(q, num_procs, s, order)
        settle(q, s)


@njit(cache=True, nogil=True)
def play_beside(q, num_procs, s, order, f, net, t, pause, num_jobs, believed_jobs, beside, policy, nothing):
    """Replay the real queue with the queue of the operator's policy beside it; see the top of this file.

    Parameters
    ----------
    believed_jobs
        The same jobs with run times that the second queue believes.
    beside
        A ``PromiseState`` whose starts are the references of ``t``.
    policy
        The operator's order.
    nothing
        A ``ForecastState`` that is not looked at.
    """
    m = s.moment[0]
    fill_keys(q, s, order)
    num_events = 0
    then = next_event(q, s)
    while then < np.inf and m.num_arrived < num_jobs:
        for i in range(m.num_running):
            job = s.running[i]
            if s.start[job] + q.run[job] <= then:
                believed_jobs.run[job] = q.run[job]
        first = m.num_arrived
        happen(q, s, order, f, then)
        refresh(q, num_procs, s, f, net, t, pause, True)
        for job in range(first, m.num_arrived):
            believed_jobs.run[job] = max(1.0, s.length[job])
        advance(believed_jobs, num_procs, beside, policy, nothing, then)
        decide(q, num_procs, s, order, net, t)
        num_events += 1
        then = next_event(q, s)
    return num_events
