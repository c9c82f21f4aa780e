"""Futures drawn from what is believed: foreign load, work of tasks, what is left of running ones, jobs to come.

A future is a row of streams and a state for it, so that the simulator itself can play it. Nothing is taken from the
true stream but what a scheduler knows: jobs that have arrived, what runs since when, and the belief.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.racks.kernels.counters import normal
from stretto.racks.kernels.evidence import PERIOD_S, SHARE
from stretto.racks.kernels.foreign import NUM_STATES
from stretto.racks.kernels.state import ARRIVED, BLOCKED, DONE, TOTAL, set_flows

#: Jobs to come that a future holds.
NUM_NEW = 2
#: Draws of a running task's size before it is taken to end now.
_DRAWS = 8


@njit(cache=True, nogil=True)
def draw_future(a, w, s, b, chance, level, params, pressure, scale_sd, future, f, racks, state):
    """Fill row ``f`` of the future streams and rack 0 of ``racks``, which then stands where rack b does."""
    num_tasks = _copy_known(w, s, b, future, f, racks)
    _draw_sizes(a, w, s, b, pressure, scale_sd, future, f, num_tasks, racks, state)
    _draw_jobs(w, s, b, future, f, num_tasks, racks, state)
    _draw_flows(chance, level, params, s.now_s[b], future, f, state)
    racks.flow_place[0, :] = -1
    racks.is_stale[0, :] = True
    set_flows(a, future, racks, 0)


@njit(cache=True, nogil=True)
def _copy_known(w, s, b, future, f, racks):
    """Copy the jobs that have arrived and the state of the rack; return how many tasks that are."""
    i = s.instance[b]
    num_jobs = s.num[b, ARRIVED]
    num = 0
    while num < w.kernel.shape[1] and w.job[i, num] < num_jobs:
        num += 1
    future.kernel[f, :num] = w.kernel[i, :num]
    future.job[f, :] = future.arrival_s.shape[1]
    future.job[f, :num] = w.job[i, :num]
    future.num_before[f, :num] = w.num_before[i, :num]
    future.after_ptr[f, : num + 1] = w.after_ptr[i, : num + 1]
    future.after[f, : w.after_ptr[i, num]] = w.after[i, : w.after_ptr[i, num]]
    future.rank_s[f, :num] = w.rank_s[i, :num]
    future.arrival_s[f, :] = np.inf
    future.arrival_s[f, :num_jobs] = w.arrival_s[i, :num_jobs]
    future.job_size[f, :] = 0
    future.job_size[f, :num_jobs] = w.job_size[i, :num_jobs]
    racks.now_s[0] = s.now_s[b]
    racks.instance[0] = f
    racks.task[0] = s.task[b]
    racks.demand[0] = s.demand[b]
    racks.is_on[0] = s.is_on[b]
    racks.config[0] = s.config[b]
    racks.status[0, :] = BLOCKED
    racks.status[0, :num] = s.status[b, :num]
    racks.missing[0, :num] = s.missing[b, :num]
    racks.head[0] = s.head[b]
    racks.num_ready[0] = s.num_ready[b]
    racks.num_left[0] = s.num_left[b]
    racks.start_s[0, :num] = s.start_s[b, :num]
    racks.job_left[0, :num_jobs] = s.job_left[b, :num_jobs]
    racks.job_end_s[0, :num_jobs] = s.job_end_s[b, :num_jobs]
    racks.job_end_s[0, num_jobs:] = np.nan
    racks.num[0] = s.num[b]
    racks.window_s[0] = 0.0
    racks.cost[0, :] = 0.0
    return num


@njit(cache=True, nogil=True)
def _draw_sizes(a, w, s, b, pressure, scale_sd, future, f, num_tasks, racks, state):
    """Draw the sizes of tasks to come, and what is left of those that run, given how long they have been running."""
    for task in range(num_tasks):
        future.scale[f, task] = math.exp(scale_sd * normal(state))
    for p in range(s.task.shape[1]):
        task = s.task[b, p]
        racks.left_s[0, p] = s.left_s[b, p] if task < 0 else 0.0  # a reconfiguration takes a known time
        if task < 0:
            continue
        full_s = a.duration_s[w.kernel[s.instance[b], task], p]
        ran_s = s.now_s[b] - s.start_s[b, task]
        slow = _slowdown(a, w, s, b, p, task, pressure)
        left_s = 0.0
        for _ in range(_DRAWS):
            left_s = full_s * math.exp(scale_sd * normal(state)) - ran_s / slow
            if left_s > 0.0:
                break
        racks.left_s[0, p] = max(left_s, 0.02 * full_s)


@njit(cache=True, nogil=True)
def _slowdown(a, w, s, b, p, task, pressure):
    """Return by how much a running task is believed to be slowed down now."""
    k, m = w.kernel[s.instance[b], task], a.proc_machine[p]
    worst = 1.0
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        if a.demand[k, p, r] > 0:
            worst = max(worst, pressure[r])
    return worst


@njit(cache=True, nogil=True)
def _draw_jobs(w, s, b, future, f, num_tasks, racks, state):
    """Append jobs like those that have arrived, at the mean gap between arrivals so far."""
    i, known = s.instance[b], s.num[b, ARRIVED]
    age_s = s.now_s[b] - w.arrival_s[i, 0]
    gap_s = (w.arrival_s[i, known - 1] - w.arrival_s[i, 0] + age_s) / max(2.0 * (known - 1), 1.0)
    at_s = s.now_s[b]
    for job in range(known, known + NUM_NEW):
        like = below(state, known)
        at_s += -math.log(max(1.0 - uniform(state), 1e-12)) * max(gap_s, 1e-3)
        num_tasks = _append_job(w, i, like, future, f, job, num_tasks, at_s, racks)
    racks.num[0, TOTAL] = known + NUM_NEW


@njit(cache=True, nogil=True)
def _append_job(w, i, like, future, f, job, first, at_s, racks):
    """Append a copy of a job of the stream; return the number of tasks after it."""
    source = 0
    while w.job[i, source] < like:
        source += 1
    size = w.job_size[i, like]
    edges = future.after_ptr[f, first]
    for task in range(size):
        here = first + task
        future.kernel[f, here] = w.kernel[i, source + task]
        future.job[f, here] = job
        future.scale[f, here] = future.scale[f, source + task]
        future.num_before[f, here] = w.num_before[i, source + task]
        future.rank_s[f, here] = w.rank_s[i, source + task]
        racks.missing[0, here] = w.num_before[i, source + task]
        for e in range(w.after_ptr[i, source + task], w.after_ptr[i, source + task + 1]):
            future.after[f, edges] = w.after[i, e] - source + first
            edges += 1
        future.after_ptr[f, here + 1] = edges
    future.arrival_s[f, job] = at_s
    future.job_size[f, job] = size
    racks.job_left[0, job] = size
    return first + size


@njit(cache=True, nogil=True)
def _draw_flows(chance, level, params, now_s, future, f, state):
    """Draw the present level of every source by its chances, then how it comes and goes."""
    share, period_s = params[SHARE], params[PERIOD_S]
    for source in range(chance.shape[0]):
        x = uniform(state)
        j = 0
        while j < NUM_STATES - 1 and x >= chance[source, j]:
            x -= chance[source, j]
            j += 1
        at_s = 0.0
        for phase in range(future.flow_s.shape[2]):
            future.flow_s[f, source, phase] = at_s
            future.flow_level[f, source, phase] = level[source, j]
            mean_s = period_s * (share if j > 0 else 1.0 - share)
            at_s = max(at_s, now_s) - math.log(max(1.0 - uniform(state), 1e-12)) * mean_s
            j = 0 if j > 0 else 1 + below(state, NUM_STATES - 1)


@njit(cache=True, nogil=True)
def rough_rest(w, racks, b):
    """Return job-seconds that unfinished jobs would take at least, by their longest paths, also of those to come.

    Otherwise a candidate would look cheap only because it is done before a job arrives.
    """
    i = racks.instance[b]
    longest = np.zeros(w.arrival_s.shape[1])
    for task in range(w.kernel.shape[1]):
        job = w.job[i, task]
        if job < racks.num[b, TOTAL] and racks.status[b, task] != DONE:
            longest[job] = max(longest[job], w.rank_s[i, task])
    return longest.sum()
