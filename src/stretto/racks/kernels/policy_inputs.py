"""What Symphony's network is told of each candidate of a decision; nothing here depends on which rack it is.

A candidate is a valid action. Kernels, processors and parts enter by their features, never by their number, so the
same weights serve racks with other parts, processors and kernels. Times enter as logarithms of ratios.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.oracle import has_twin
from stretto.racks.kernels.rules import expected_speed, free_at
from stretto.racks.kernels.state import ARRIVED, DONE, FINISHED, IDLE, READY

# Places of the numbers that describe a candidate.
(
    BEHIND,  # log of when the task would end over when it would end in the best place, now or later
    SLOWER,  # log of the duration here over the best duration
    CROWDED,  # log of the slowdown by believed load
    UNSURE,  # largest standard deviation of a used part's load, times the demand
    CONFIGURES,  # log1p of the reconfiguration over the duration
    INFLICTED,  # slowdowns that it would cause to what runs on the machine, summed
    WANTED,  # log of what another waiting kernel would lose if this processor were taken
    KEEN,  # log of what this kernel would lose without this processor
    TASKS_LEFT,  # log1p of the tasks that the job has left, over the least of the ready
    WORK_LEFT,  # log1p of the seconds that the job has left, over the least of the ready
    PATH,  # log1p of the longest path from the task, below the longest of the ready
    SLACK,  # log of the longest path of the job over that of the task
    AGE,  # log1p of the job's time in the rack
    WAITING,  # log1p of the ready tasks of the kernel
    PLANNED,  # whether a list schedule of all ready tasks starts this one here first
    BEHIND_LAST,  # log of the end over that of the last ready task of the kernel in the list schedule
) = range(16)
# Numbers of the moment, the same for all candidates.
BACKLOG, IDLE_SHARE, JOBS, IS_WAIT, WAIT_GAP = range(16, 21)
NUM_INPUTS = 21
NUM_KERNEL_INPUTS = 8
#: Logarithms of ratios are cut here.
_MOST = 4.0


@njit(cache=True, nogil=True)
def fill_candidates(a, s, b, mask, actions):
    """Fill the valid actions, one of processors that cannot be told apart; wait comes last; return how many."""
    num_kernels, num_procs = a.duration_s.shape
    num = 0
    for action in range(mask.shape[0]):
        if mask[action]:
            k, p = action // num_procs, action % num_procs
            if action >= num_kernels * num_procs or not has_twin(a, s, b, k, p):
                actions[num] = action
                num += 1
    return num


@njit(cache=True, nogil=True)
def split_action(a, action):
    """Return kernel and processor of an action, -1 and -1 of waiting."""
    num_kernels, num_procs = a.duration_s.shape
    num_fpgas = a.fpgas.shape[0]
    if action < num_kernels * num_procs:
        return action // num_procs, action % num_procs
    rest = action - num_kernels * num_procs
    if rest < num_kernels * num_fpgas:
        return rest // num_fpgas, a.fpgas[rest % num_fpgas]
    return -1, -1


@njit(cache=True, nogil=True)
def _fill_times(a, w, s, b, pressure, free, takes, speed):
    """Fill when processors are free, how long each ready kernel takes on each, and its predicted speed there."""
    num_kernels, num_procs = a.duration_s.shape
    for p in range(num_procs):
        free[p] = free_at(a, w, s, b, p, a.duration_s, pressure)
    for k in range(num_kernels):
        for p in range(num_procs):
            takes[k, p] = np.inf
            speed[k, p] = 1.0
            if s.head[b, k] >= 0 and a.duration_s[k, p] < np.inf:
                speed[k, p] = expected_speed(a, k, p, a.proc_machine[p], pressure)
                takes[k, p] = a.duration_s[k, p] / speed[k, p]
                if a.reconfigure_s[p] > 0 and s.config[b, p] != k:
                    takes[k, p] += a.reconfigure_s[p]


@njit(cache=True, nogil=True)
def _fill_jobs(a, w, s, b, best_s, work_left, path_left):
    """Fill, for each job in the rack, its work left at best speed and its longest path left."""
    i = s.instance[b]
    work_left[:] = 0.0
    path_left[:] = 0.0
    for task in range(w.kernel.shape[1]):
        job = w.job[i, task]
        if job < s.num[b, ARRIVED] and s.status[b, task] != DONE:
            work_left[job] += best_s[w.kernel[i, task]]
            path_left[job] = max(path_left[job], w.rank_s[i, task])


@njit(cache=True, nogil=True)
def _plan(w, s, b, free, takes, work_left, first_kernel, last_end):
    """List schedule of all ready tasks: jobs with the least work first, each where it would end first.

    Fills the kernel that each idle processor would start first, and when the last ready task of each kernel would end.
    """
    i = s.instance[b]
    then = free.copy()
    first_kernel[:] = -1
    last_end[:] = 0.0
    num = 0
    tasks = np.empty(w.kernel.shape[1], np.int64)
    keys = np.empty(w.kernel.shape[1])
    for task in range(w.kernel.shape[1]):
        if s.status[b, task] == READY:
            tasks[num] = task
            keys[num] = work_left[w.job[i, task]]
            num += 1
    for place in np.argsort(keys[:num], kind="mergesort"):
        k = w.kernel[i, tasks[place]]
        best, best_end = -1, np.inf
        for p in range(free.shape[0]):
            if then[p] + takes[k, p] < best_end - 1e-12:
                best, best_end = p, then[p] + takes[k, p]
        if best >= 0:
            if then[best] == 0.0:
                first_kernel[best] = k
            then[best] = best_end
            last_end[k] = max(last_end[k], best_end)


@njit(cache=True, nogil=True)
def _inflicted(a, w, s, b, k, p, pressure):
    """Return by how much the tasks that run on p's machine would be slowed down, summed over them."""
    m = a.proc_machine[p]
    total = 0.0
    for q in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
        task = s.task[b, q]
        if task < 0:
            continue
        other = w.kernel[s.instance[b], task]
        before, after = 1.0, 1.0
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            if a.demand[other, q, r] > 0:
                before = max(before, pressure[r])
                after = max(after, pressure[r] + a.demand[k, p, r])
        total += after / before - 1.0
    return total


@njit(cache=True, nogil=True)
def fill_inputs(a, w, s, b, pressure, load_sd, actions, num, x):
    """Fill the numbers of each candidate; [num, NUM_INPUTS]."""
    num_kernels, num_procs = a.duration_s.shape
    i = s.instance[b]
    free, takes, speed = np.empty(num_procs), np.empty((num_kernels, num_procs)), np.empty((num_kernels, num_procs))
    _fill_times(a, w, s, b, pressure, free, takes, speed)
    best_s = np.empty(num_kernels)
    for k in range(num_kernels):
        best_s[k] = a.duration_s[k].min()
    work_left, path_left = np.empty(w.arrival_s.shape[1]), np.empty(w.arrival_s.shape[1])
    _fill_jobs(a, w, s, b, best_s, work_left, path_left)
    first_kernel, last_end = np.empty(num_procs, np.int64), np.empty(num_kernels)
    _plan(w, s, b, free, takes, work_left, first_kernel, last_end)
    first, second, where = np.full(num_kernels, np.inf), np.full(num_kernels, np.inf), np.full(num_kernels, -1)
    least_tasks, least_work, longest = np.inf, np.inf, 0.0
    num_ready = 0
    for k in range(num_kernels):
        head = s.head[b, k]
        if head < 0:
            continue
        num_ready += s.num_ready[b, k]
        job = w.job[i, head]
        least_tasks = min(least_tasks, math.log1p(s.job_left[b, job]))
        least_work = min(least_work, math.log1p(work_left[job]))
        longest = max(longest, math.log1p(w.rank_s[i, head]))
        for p in range(num_procs):
            end = free[p] + takes[k, p]
            if end < first[k]:
                second[k] = first[k]
                first[k], where[k] = end, p
            elif end < second[k]:
                second[k] = end
    num_idle = 0
    for p in range(num_procs):
        num_idle += s.task[b, p] == IDLE
    gap = _MOST
    for c in range(num):
        k, p = split_action(a, actions[c])
        x[c, :] = 0.0
        x[c, BACKLOG] = math.log1p(num_ready / num_procs)
        x[c, IDLE_SHARE] = num_idle / num_procs
        x[c, JOBS] = math.log1p(s.num[b, ARRIVED] - s.num[b, FINISHED])
        if k < 0:
            x[c, IS_WAIT] = 1.0
            x[c, WAIT_GAP] = gap
            continue
        head = s.head[b, k]
        job = w.job[i, head]
        end = free[p] + takes[k, p]
        x[c, BEHIND] = min(math.log(end / first[k]), _MOST)
        x[c, SLOWER] = min(math.log(a.duration_s[k, p] / best_s[k]), _MOST)
        x[c, CROWDED] = -math.log(speed[k, p])
        m = a.proc_machine[p]
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            x[c, UNSURE] = max(x[c, UNSURE], min(load_sd[r], 1.0) * min(a.demand[k, p, r], 1.0))
        if a.reconfigure_s[p] > 0 and s.config[b, p] != k:
            x[c, CONFIGURES] = math.log1p(a.reconfigure_s[p] / a.duration_s[k, p])
        x[c, INFLICTED] = min(_inflicted(a, w, s, b, k, p, pressure), _MOST)
        for other in range(num_kernels):
            if where[other] == p:
                loss = min(math.log(second[other] / first[other]), _MOST) if second[other] < np.inf else _MOST
                if other != k:
                    x[c, WANTED] = max(x[c, WANTED], loss)
                else:
                    x[c, KEEN] = loss
        x[c, TASKS_LEFT] = math.log1p(s.job_left[b, job]) - least_tasks
        x[c, WORK_LEFT] = math.log1p(work_left[job]) - least_work
        x[c, PATH] = longest - math.log1p(w.rank_s[i, head])
        x[c, SLACK] = min(math.log(max(path_left[job], 1e-9) / max(w.rank_s[i, head], 1e-9)), _MOST)
        x[c, AGE] = math.log1p(s.now_s[b] - w.arrival_s[i, job])
        x[c, WAITING] = math.log1p(s.num_ready[b, k])
        x[c, PLANNED] = first_kernel[p] == k
        x[c, BEHIND_LAST] = min(max(math.log(end / max(last_end[k], 1e-9)), -_MOST), _MOST)
        gap = min(gap, x[c, BEHIND])
