"""Steps of whole batches of queue environments, one call for all of them.

In *queue* environments somebody picks the next job at each decision; in *strategy* environments the
order of the queue for a while. An episode that is over begins anew at the next step, whatever the action.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.episode import (
    advance,
    any_fits,
    backfill,
    begin_episode,
    close_up,
    finish_episode,
    pass_queue,
    slowdown,
    sort_queue,
    start_job,
    submit_of,
)

#: Wait, estimate, share of the machine, whether it fits, slowdown if it started now.
NUM_JOB_FEATURES = 5
#: Free share, length of the queue, work in the queue, time to the next expected end, share of jobs started.
NUM_MACHINE_FEATURES = 5

#: What counts as one on the logarithmic scales: thirty days, ten thousand jobs, a slowdown of a million.
LONG_S = 30 * 86400.0
MANY_JOBS = 10_000.0
MUCH_SLOWDOWN = 1e6


@njit(cache=True, nogil=True)
def next_decision(q, s, b, rules):
    """Go on until some waiting job fits, or all have started; leave the queue sorted."""
    e = s.now[b]
    while e.num_started < rules.num_jobs:
        if any_fits(q, s, b):
            sort_queue(q, s, b, False)
            return
        advance(q, s, b, rules)


@njit(cache=True, nogil=True)
def pick_job(q, s, b, rules, place, num_visible):
    """Take the job at a place of the queue: start it, or let it block the queue until the next event.

    Where there is no such job, the head is taken.
    """
    e = s.now[b]
    if place < 0 or place >= min(e.num_waiting, num_visible):
        place = 0
    job = s.waiting[b, place]
    if q.procs[e.first + job] <= e.free:
        start_job(q, s, b, job)
        close_up(s, b)
    else:
        if rules.easy:
            backfill(q, s, b, place)
            close_up(s, b)
        advance(q, s, b, rules)
    next_decision(q, s, b, rules)


@njit(cache=True, nogil=True)
def next_choice(q, s, b, rules):
    """Go on by the order in force until a choice is due and matters, or all jobs have started."""
    e = s.now[b]
    while e.num_started < rules.num_jobs:
        advance(q, s, b, rules)
        # One job waits for nobody, and on a full machine all orders start nothing.
        if e.now >= e.next_choice and e.num_waiting > 1 and e.free > 0:
            sort_queue(q, s, b, False)
            return
        sort_queue(q, s, b, False)
        pass_queue(q, s, b, rules.easy)


@njit(cache=True, nogil=True)
def choose_order(q, s, b, rules, order):
    """Follow an order from now on."""
    e = s.now[b]
    e.order = order
    e.next_choice = e.now + rules.interval
    sort_queue(q, s, b, True)
    pass_queue(q, s, b, rules.easy)
    next_choice(q, s, b, rules)


@njit(cache=True, nogil=True)
def settle(q, s, b, rules):
    """End an episode whose jobs have all started; return the reward since the last step, or since the beginning."""
    e = s.now[b]
    if e.num_started == rules.num_jobs:
        finish_episode(q, s, b, rules)
    reward = e.reward
    e.reward = 0.0
    return reward


@njit(cache=True, nogil=True)
def step_queues(q, s, rules, action, first, reward, jobs, mask, machine):
    """Step queue environments, and begin those that are over.

    Parameters
    ----------
    q, s, rules
        The trace as ``QueueArrays``, the state as ``Episodes``, and ``EpisodeRules``.
    action
        [B] a place among the visible jobs, which stand in the order of the queue.
    first
        [B] where an episode begins in the trace, should it begin now.
    reward
        [B] out.
    jobs, mask, machine
        [B, W, NUM_JOB_FEATURES], [B, W] and [B, NUM_MACHINE_FEATURES], out.
    """
    for b in range(action.shape[0]):
        if s.now[b].is_over:
            begin_episode(s, b, rules, first[b])
            next_decision(q, s, b, rules)
            reward[b] = 0.0
        else:
            pick_job(q, s, b, rules, action[b], mask.shape[1])
            reward[b] = settle(q, s, b, rules)
        observe(q, s, b, rules, jobs[b], mask[b], machine[b])


@njit(cache=True, nogil=True)
def step_strategies(q, s, rules, orders, action, first, reward, jobs, mask, machine):
    """Step strategy environments: an action is an index of ``orders``. See ``step_queues`` for the rest."""
    for b in range(action.shape[0]):
        if s.now[b].is_over:
            begin_episode(s, b, rules, first[b])
            next_choice(q, s, b, rules)
            reward[b] = 0.0
        else:
            choose_order(q, s, b, rules, orders[action[b]])
            reward[b] = settle(q, s, b, rules)
        observe(q, s, b, rules, jobs[b], mask[b], machine[b])


@njit(cache=True, nogil=True)
def on_log(value, one):
    """Return where a value lies between zero and one on a logarithmic scale."""
    return min(1.0, np.log1p(value) / np.log1p(one))


@njit(cache=True, nogil=True)
def observe(q, s, b, rules, jobs, mask, machine):
    """Write what a decider may know: no run times, only estimates."""
    e = s.now[b]
    jobs[:] = 0.0
    mask[:] = 0
    for k in range(min(e.num_waiting, mask.shape[0])):
        job = s.waiting[b, k]
        i = e.first + job
        wait = e.now - submit_of(q, e, job)
        mask[k] = 1
        jobs[k, 0] = on_log(wait, LONG_S)
        jobs[k, 1] = on_log(q.estimate[i], LONG_S)
        jobs[k, 2] = q.procs[i] / rules.num_procs
        jobs[k, 3] = 1.0 if q.procs[i] <= e.free else 0.0
        jobs[k, 4] = on_log(slowdown(wait, q.estimate[i]) - 1.0, MUCH_SLOWDOWN)
    work = 0.0
    for k in range(e.num_waiting):
        i = e.first + s.waiting[b, k]
        work += q.estimate[i] * q.procs[i]
    soonest = np.inf
    for k in range(e.num_running):
        job = s.running[b, k]
        soonest = min(soonest, s.start[b, job] + q.estimate[e.first + job])
    machine[0] = e.free / rules.num_procs
    machine[1] = on_log(e.num_waiting, MANY_JOBS)
    machine[2] = on_log(work / rules.num_procs, LONG_S)
    machine[3] = on_log(soonest - e.now, LONG_S) if soonest < np.inf else 0.0
    machine[4] = e.num_started / rules.num_jobs
