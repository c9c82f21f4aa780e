"""A quick forecast for each candidate of a decision: a list schedule of all known tasks after it, at believed speeds.

Jobs with the least work go first, and every task goes where it would end first. Nothing is random and nothing is
simulated, so a forecast takes microseconds; what it leaves out (contention to come, jobs to come) is left to learning.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.state import ARRIVED, BLOCKED, READY

#: More than any longest path in seconds.
_FAR = 1e12


@njit(cache=True, nogil=True)
def fill_order(w, s, b, work_left, order):
    """Fill the tasks that wait, those of jobs with the least work first, longest paths first; return how many."""
    i, num_jobs = s.instance[b], s.num[b, ARRIVED]
    place = np.empty(num_jobs)
    for rank, job in enumerate(np.argsort(work_left[:num_jobs], kind="mergesort")):
        place[job] = rank
    num = 0
    keys = np.empty(order.shape[0])
    tasks = np.empty(order.shape[0], np.int64)
    for task in range(order.shape[0]):
        job = w.job[i, task]
        if job >= num_jobs:
            break
        if s.status[b, task] == READY or s.status[b, task] == BLOCKED:
            tasks[num] = task
            keys[num] = place[job] * _FAR - w.rank_s[i, task]
            num += 1
    for rank, one in enumerate(np.argsort(keys[:num], kind="mergesort")):
        order[rank] = tasks[one]
    return num


@njit(cache=True, nogil=True)
def fill_known(w, s, b, free, ready_s, end_s):
    """Fill when the tasks that wait may start at the earliest by what runs, and when jobs end by what runs."""
    i = s.instance[b]
    ready_s[:] = 0.0
    end_s[:] = 0.0
    for p in range(free.shape[0]):
        task = s.task[b, p]
        if task >= 0:
            end_s[w.job[i, task]] = max(end_s[w.job[i, task]], free[p])
            for e in range(w.after_ptr[i, task], w.after_ptr[i, task + 1]):
                ready_s[w.after[i, e]] = max(ready_s[w.after[i, e]], free[p])


@njit(cache=True, nogil=True)
def forecast(kernel, job, after_ptr, after, order, runs, reconfigure_s, free, config, ready_s, end_s, first, place):
    """Return the seconds until all jobs are done, summed over them, when task ``first`` starts at once at ``place``.

    Without a first task (-1) the order alone decides. ``free``, ``config``, ``ready_s`` and ``end_s`` are used up.
    """
    for n in range(-1, order.shape[0]):
        task, best, best_end = first, place, 0.0
        if n >= 0:
            task = order[n]
            if task == first:
                continue
            best, best_end = _earliest(runs[kernel[task]], kernel[task], reconfigure_s, free, config, ready_s[task])
        elif first >= 0:
            best_end = free[place] + runs[kernel[task], place]
            if reconfigure_s[place] > 0 and config[place] != kernel[task]:
                best_end += reconfigure_s[place]
        else:
            continue
        free[best] = best_end
        config[best] = kernel[task]
        end_s[job[task]] = max(end_s[job[task]], best_end)
        for e in range(after_ptr[task], after_ptr[task + 1]):
            ready_s[after[e]] = max(ready_s[after[e]], best_end)
    return end_s.sum()


@njit(cache=True, nogil=True)
def _earliest(runs, k, reconfigure_s, free, config, ready_s):
    """Return the processor where a task would end first, and when."""
    best, best_end = 0, np.inf
    for p in range(free.shape[0]):
        end = max(free[p], ready_s) + runs[p]
        if end < best_end:
            if reconfigure_s[p] > 0 and config[p] != k:
                end += reconfigure_s[p]
            if end < best_end:
                best, best_end = p, end
    return best, best_end
