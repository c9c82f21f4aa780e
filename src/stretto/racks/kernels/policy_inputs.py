"""What Symphony's network is told of each candidate of a decision; nothing here depends on which rack it is.

A candidate is a valid action. Kernels, processors and parts enter by their features, never by their number, so the
same weights serve racks with other parts, processors and kernels. Times enter as logarithms of ratios.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.oracle import has_twin
from stretto.racks.kernels.policy_plan import fill_known, fill_order, forecast
from stretto.racks.kernels.state import ARRIVED, CONFIGURING, DONE, FINISHED, IDLE, READY, RUNNING

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
(
    JOB_TASKS,  # log1p of the tasks that the job has left
    JOB_RUNNING,  # log1p of the tasks of the job that run
    JOB_READY,  # log1p of the tasks of the job that are ready
    SHORT,  # log of the time here over the mean of the ready kernels in their best places
    ALIKE,  # log1p of the idle processors that are about as fast for the kernel
    DEMANDED,  # log1p of the ready work of other kernels that this processor is good for, over the time here
    UPCOMING,  # the same for tasks whose last missing predecessor runs
    FREE_SOON,  # log1p of the time until the best place is free, over the time here
    EVICTS,  # log1p of the tasks left of the kernel that an FPGA would lose
    KERNEL_LEFT,  # log1p of the tasks left of the kernel
    CONFIGURED,  # log1p of the FPGAs that have the kernel
    RANK,  # log1p of the jobs that have less work left
    LATE,  # when the task would end after the best place, over the mean of the ready kernels
    NEXT_END,  # log1p of the time until the next processor is free, over the mean of the ready kernels
    FORECAST,  # seconds that jobs end later by a list schedule than after the best candidate, over that mean
) = range(21, 36)
NUM_INPUTS = 36
#: A processor is good for a kernel that takes at most this many times longer there than in the best place.
_GOOD = 1.3
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
def _fill_times(a, w, s, b, pressure, free, takes, runs, speed):
    """Fill when processors are free, how long each kernel takes on each, with and without reconfiguration, and speeds.

    As ``free_at`` and ``expected_speed`` of the rules; calls with so many arrays would take most of the time here.
    """
    num_kernels, num_procs = a.duration_s.shape
    duration, demand, kernel = a.duration_s, a.demand, w.kernel[s.instance[b]]
    running, num_left, config, start_s = s.task[b], s.num_left[b], s.config[b], s.start_s[b]
    for p in range(num_procs):
        m = a.proc_machine[p]
        first, last = a.res_ptr[m], a.res_ptr[m + 1]
        task = running[p]
        free[p] = s.left_s[b, p] if task == CONFIGURING else 0.0
        if task >= 0:
            k = kernel[task]
            worst = _worst(demand[k, p], pressure, first, last, 0.0)
            free[p] = max(duration[k, p] * worst - (s.now_s[b] - start_s[task]), 0.05 * duration[k, p])
        for k in range(num_kernels):
            takes[k, p] = runs[k, p] = np.inf
            speed[k, p] = 1.0
            if num_left[k] > 0 and duration[k, p] < np.inf:
                worst = _worst(demand[k, p], pressure, first, last, 1.0)
                speed[k, p] = 1.0 / worst
                takes[k, p] = runs[k, p] = duration[k, p] * worst
                if a.reconfigure_s[p] > 0 and config[p] != k:
                    takes[k, p] += a.reconfigure_s[p]


@njit(cache=True, nogil=True)
def _worst(demand, pressure, first, last, own):
    """Return the slowdown by the fullest of the parts in use; ``own`` counts the demand itself, once or not at all."""
    worst = 1.0
    for r in range(first, last):
        if demand[r] > 0:
            worst = max(worst, pressure[r] + own * demand[r])
    return worst


@njit(cache=True, nogil=True)
def _fill_jobs(w, s, b, best_s, work_left, path_left, tally):
    """Fill, for each job in the rack, its work left at best speed, its longest path left, its tasks by status."""
    i = s.instance[b]
    work_left[:] = 0.0
    path_left[:] = 0.0
    tally[:, :] = 0
    for task in range(w.kernel.shape[1]):
        job = w.job[i, task]
        if job >= s.num[b, ARRIVED]:
            break
        if s.status[b, task] != DONE:
            work_left[job] += best_s[w.kernel[i, task]]
            path_left[job] = max(path_left[job], w.rank_s[i, task])
            tally[job, s.status[b, task]] += 1


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
def _fill_demands(a, w, s, b, free, takes, best_s, ready_s, coming_s):
    """Fill the seconds of ready and of soon ready work that each kernel has for each processor which is good for it.

    Return when the next busy processor is free, and the mean duration of the ready kernels in their best places.
    """
    num_kernels, num_procs = a.duration_s.shape
    i = s.instance[b]
    coming = np.zeros(num_kernels)
    soonest = np.inf
    for p in range(num_procs):
        if free[p] > 0.0:
            soonest = min(soonest, free[p])
        task = s.task[b, p]
        if task >= 0:
            for e in range(w.after_ptr[i, task], w.after_ptr[i, task + 1]):
                coming[w.kernel[i, w.after[i, e]]] += s.missing[b, w.after[i, e]] == 1
    total, num = 0.0, 0
    for k in range(num_kernels):
        ready_s[k, :] = 0.0
        coming_s[k, :] = 0.0
        if s.head[b, k] >= 0:
            total += best_s[k] * s.num_ready[b, k]
            num += s.num_ready[b, k]
        if s.head[b, k] < 0 and coming[k] == 0.0:
            continue
        num_good = 0
        for p in range(num_procs):
            num_good += a.duration_s[k, p] <= _GOOD * best_s[k]
        for p in range(num_procs):
            if a.duration_s[k, p] <= _GOOD * best_s[k]:
                ready_s[k, p] = s.num_ready[b, k] * a.duration_s[k, p] / num_good
                coming_s[k, p] = coming[k] * a.duration_s[k, p] / num_good
    mean_s = total / max(num, 1)
    return min(soonest, 100.0 * mean_s), mean_s


@njit(cache=True, nogil=True)
def _fill_forecasts(a, w, s, b, actions, free, runs, work_left, soonest, forecast_s):
    """Fill the forecast of each candidate; who waits has all processors from the next end on."""
    i = s.instance[b]
    order = np.empty(w.kernel.shape[1], np.int64)
    order = order[: fill_order(w, s, b, work_left, order)]
    ready_s, end_s = np.empty(w.kernel.shape[1]), np.empty(s.num[b, ARRIVED])
    fill_known(w, s, b, free, ready_s, end_s)
    for c in range(forecast_s.shape[0]):
        k, p = split_action(a, actions[c])
        then = free.copy() if k >= 0 else np.maximum(free, soonest)
        forecast_s[c] = forecast(
            w.kernel[i],
            w.job[i],
            w.after_ptr[i],
            w.after[i],
            order,
            runs,
            a.reconfigure_s,
            then,
            s.config[b].copy(),
            ready_s.copy(),
            end_s.copy(),
            s.head[b, k] if k >= 0 else -1,
            p,
        )


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
def _fill_rivals(a, s, b, k, p, takes, ready_s, coming_s, work_left, job, row):
    """Fill what else could use the processor, which others could serve the kernel, and the job's place by work left."""
    num_kernels, num_procs = a.duration_s.shape
    num_alike, num_configured = 0, 0
    for q in range(num_procs):
        num_alike += s.task[b, q] == IDLE and takes[k, q] <= 1.1 * takes[k, p]
        num_configured += a.reconfigure_s[q] > 0 and s.config[b, q] == k
    row[ALIKE] = math.log1p(num_alike)
    row[CONFIGURED] = math.log1p(num_configured)
    ready, coming = 0.0, 0.0
    for other in range(num_kernels):
        if other != k:
            ready += ready_s[other, p]
            coming += coming_s[other, p]
    row[DEMANDED] = math.log1p(ready / takes[k, p])
    row[UPCOMING] = math.log1p(coming / takes[k, p])
    num_before = 0
    for other in range(s.num[b, ARRIVED]):
        num_before += 0.0 < work_left[other] < work_left[job]
    row[RANK] = math.log1p(num_before)


@njit(cache=True, nogil=True)
def _fill_ends(w, s, b, free, takes, work_left, first, second, where):
    """Fill the two earliest ends of each ready kernel; return their number, least tasks and work, and longest path."""
    num_kernels, num_procs = takes.shape
    i = s.instance[b]
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
    return num_ready, least_tasks, least_work, longest


@njit(cache=True, nogil=True)
def fill_inputs(a, w, s, b, pressure, load_sd, actions, num, x):
    """Fill the numbers of each candidate; [num, NUM_INPUTS]."""
    num_kernels, num_procs = a.duration_s.shape
    i = s.instance[b]
    free, runs = np.empty(num_procs), np.empty((num_kernels, num_procs))
    takes, speed = np.empty((num_kernels, num_procs)), np.empty((num_kernels, num_procs))
    _fill_times(a, w, s, b, pressure, free, takes, runs, speed)
    best_s = np.empty(num_kernels)
    for k in range(num_kernels):
        best_s[k] = a.duration_s[k].min()
    work_left, path_left = np.empty(w.arrival_s.shape[1]), np.empty(w.arrival_s.shape[1])
    tally = np.empty((w.arrival_s.shape[1], DONE), np.int64)
    _fill_jobs(w, s, b, best_s, work_left, path_left, tally)
    ready_s, coming_s = np.empty((num_kernels, num_procs)), np.empty((num_kernels, num_procs))
    soonest, mean_s = _fill_demands(a, w, s, b, free, takes, best_s, ready_s, coming_s)
    first_kernel, last_end = np.empty(num_procs, np.int64), np.empty(num_kernels)
    _plan(w, s, b, free, takes, work_left, first_kernel, last_end)
    first, second, where = np.full(num_kernels, np.inf), np.full(num_kernels, np.inf), np.full(num_kernels, -1)
    num_ready, least_tasks, least_work, longest = _fill_ends(w, s, b, free, takes, work_left, first, second, where)
    num_idle = 0
    for p in range(num_procs):
        num_idle += s.task[b, p] == IDLE
    gap, late = _MOST, _MOST
    forecast_s = np.empty(num)
    _fill_forecasts(a, w, s, b, actions, free, runs, work_left, soonest, forecast_s)
    least = forecast_s.min()
    for c in range(num):
        k, p = split_action(a, actions[c])
        x[c, :] = 0.0
        x[c, BACKLOG] = math.log1p(num_ready / num_procs)
        x[c, IDLE_SHARE] = num_idle / num_procs
        x[c, JOBS] = math.log1p(s.num[b, ARRIVED] - s.num[b, FINISHED])
        x[c, NEXT_END] = math.log1p(soonest / mean_s)
        x[c, FORECAST] = min((forecast_s[c] - least) / mean_s, 2.0 * _MOST)
        if k < 0:
            x[c, IS_WAIT] = 1.0
            x[c, WAIT_GAP] = gap
            x[c, LATE] = late
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
        x[c, JOB_TASKS] = math.log1p(s.job_left[b, job])
        x[c, JOB_RUNNING] = math.log1p(tally[job, RUNNING])
        x[c, JOB_READY] = math.log1p(tally[job, READY])
        x[c, SHORT] = min(math.log(takes[k, p] / mean_s), _MOST)
        x[c, FREE_SOON] = math.log1p(free[where[k]] / takes[k, p])
        x[c, LATE] = min((end - first[k]) / mean_s, _MOST)
        x[c, KERNEL_LEFT] = math.log1p(s.num_left[b, k])
        if a.reconfigure_s[p] > 0 and s.config[b, p] != k and s.config[b, p] >= 0:
            x[c, EVICTS] = math.log1p(s.num_left[b, s.config[b, p]])
        _fill_rivals(a, s, b, k, p, takes, ready_s, coming_s, work_left, job, x[c])
        gap = min(gap, x[c, BEHIND])
        late = min(late, x[c, LATE])
