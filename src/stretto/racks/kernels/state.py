"""The state of many racks at once, and the streams of jobs that they run.

An environment stops where somebody has to decide: after an event, while an idle processor could run or be configured
for a kernel that waits. ``rack_moves`` is what can be done then, ``rack_time`` what happens in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit

# Status of a task.
BLOCKED, READY, RUNNING, DONE = range(4)
# What a processor does when it runs no task.
IDLE, CONFIGURING = -1, -2
# Why ``advance`` stopped.
DECIDE, OVER, TICK = range(3)
#: Times this close are one moment.
SAME_S = 1e-9


class Streams(NamedTuple):
    """Instances of a workload: I of them, n tasks and J jobs each (fewer are padded with jobs that never arrive)."""

    kernel: np.ndarray  # [I, n]
    scale: np.ndarray  # [I, n] duration over that of the kernel
    job: np.ndarray  # [I, n]
    num_before: np.ndarray  # [I, n] predecessors
    after_ptr: np.ndarray  # [I, n+1]
    after: np.ndarray  # [I, E]
    rank_s: np.ndarray  # [I, n] longest way to the end of the job, in mean seconds
    arrival_s: np.ndarray  # [I, J] ascending
    job_size: np.ndarray  # [I, J] tasks
    flow_s: np.ndarray  # [I, F, S] when a foreign load changes, ascending, first 0
    flow_level: np.ndarray  # [I, F, S] to what


class RackState(NamedTuple):
    """All that is the case in B racks."""

    now_s: np.ndarray  # [B]
    instance: np.ndarray  # [B]
    task: np.ndarray  # [B, P] or IDLE, CONFIGURING
    left_s: np.ndarray  # [B, P] at full speed
    speed: np.ndarray  # [B, P]
    demand: np.ndarray  # [B, P+F, R] of what runs, and of foreign loads at their present level
    is_on: np.ndarray  # [B, P+F]
    load: np.ndarray  # [B, R] share in use
    config: np.ndarray  # [B, P] kernel of each FPGA, -1 none
    is_stale: np.ndarray  # [B, M] speeds must be filled anew
    flow_place: np.ndarray  # [B, F]
    status: np.ndarray  # [B, n]
    missing: np.ndarray  # [B, n]
    head: np.ndarray  # [B, K] next ready task of each kernel, -1 none
    num_ready: np.ndarray  # [B, K]
    num_left: np.ndarray  # [B, K] tasks of arrived jobs that are not done
    proc: np.ndarray  # [B, n] where it ran
    start_s: np.ndarray  # [B, n]
    end_s: np.ndarray  # [B, n]
    job_left: np.ndarray  # [B, J]
    job_end_s: np.ndarray  # [B, J]
    num: np.ndarray  # [B, 3] arrived jobs, finished jobs, jobs in all
    window_s: np.ndarray  # [B] since the last look at the counters
    load_sum: np.ndarray  # [B, R] load times seconds since then
    work_sum: np.ndarray  # [B, P] speed times seconds since then
    cost: np.ndarray  # [B, 2] since the last decision: seconds, job-seconds


ARRIVED, FINISHED, TOTAL = range(3)


@njit(cache=True, nogil=True)
def begin(a, w, s, b, instance):
    """Put an empty rack before the first job of an instance."""
    s.now_s[b] = 0.0
    s.instance[b] = instance
    s.task[b, :] = IDLE
    s.left_s[b, :] = 0.0
    s.speed[b, :] = 0.0
    s.demand[b, :, :] = 0.0
    s.is_on[b, :] = False
    s.load[b, :] = 0.0
    s.config[b, :] = -1
    s.is_stale[b, :] = True
    s.flow_place[b, :] = -1
    s.status[b, :] = BLOCKED
    s.missing[b, :] = w.num_before[instance]
    s.head[b, :] = -1
    s.num_ready[b, :] = 0
    s.num_left[b, :] = 0
    s.proc[b, :] = -1
    s.start_s[b, :] = np.nan
    s.end_s[b, :] = np.nan
    s.job_left[b, :] = w.job_size[instance]
    s.job_end_s[b, :] = np.nan
    s.num[b, :] = 0
    for job in range(w.arrival_s.shape[1]):
        s.num[b, TOTAL] += w.arrival_s[instance, job] < np.inf
    s.window_s[b] = 0.0
    s.load_sum[b, :] = 0.0
    s.work_sum[b, :] = 0.0
    s.cost[b, :] = 0.0
    set_flows(a, w, s, b)
    arrive(w, s, b)


@njit(cache=True, nogil=True)
def set_flows(a, w, s, b):
    """Bring foreign loads to their level of this moment."""
    num_procs = a.proc_kind.shape[0]
    i = s.instance[b]
    for m in range(a.proc_ptr.shape[0] - 1):
        for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
            place = s.flow_place[b, f]
            while place + 1 < w.flow_s.shape[2] and w.flow_s[i, f, place + 1] <= s.now_s[b] + SAME_S:
                place += 1
            if place != s.flow_place[b, f]:
                s.flow_place[b, f] = place
                level = w.flow_level[i, f, place]
                s.is_on[b, num_procs + f] = level > 0
                s.demand[b, num_procs + f, :] = a.source_demand[f] * level
                s.is_stale[b, m] = True


@njit(cache=True, nogil=True)
def arrive(w, s, b):
    """Let in the jobs that have arrived by now."""
    i = s.instance[b]
    first = s.num[b, ARRIVED]
    while s.num[b, ARRIVED] < s.num[b, TOTAL] and w.arrival_s[i, s.num[b, ARRIVED]] <= s.now_s[b] + SAME_S:
        s.num[b, ARRIVED] += 1
    if s.num[b, ARRIVED] == first:
        return
    for task in range(w.kernel.shape[1]):
        if first <= w.job[i, task] < s.num[b, ARRIVED]:
            s.num_left[b, w.kernel[i, task]] += 1
            if s.missing[b, task] == 0:
                make_ready(w, s, b, task)


@njit(cache=True, nogil=True)
def make_ready(w, s, b, task):
    i = s.instance[b]
    kernel = w.kernel[i, task]
    s.status[b, task] = READY
    s.num_ready[b, kernel] += 1
    head = s.head[b, kernel]
    if head < 0 or is_before(w, i, task, head):
        s.head[b, kernel] = task


@njit(cache=True, nogil=True)
def is_before(w, i, x, y):
    """Say whether task x goes before y: earlier job, longer way to go, lower index."""
    if w.job[i, x] != w.job[i, y]:
        return w.job[i, x] < w.job[i, y]
    if w.rank_s[i, x] != w.rank_s[i, y]:
        return w.rank_s[i, x] > w.rank_s[i, y]
    return x < y


@njit(cache=True, nogil=True)
def copy_row(s, src, dst):
    """Make rack ``dst`` of a batch what ``src`` is."""
    s.now_s[dst] = s.now_s[src]
    s.instance[dst] = s.instance[src]
    s.task[dst] = s.task[src]
    s.left_s[dst] = s.left_s[src]
    s.speed[dst] = s.speed[src]
    s.demand[dst] = s.demand[src]
    s.is_on[dst] = s.is_on[src]
    s.load[dst] = s.load[src]
    s.config[dst] = s.config[src]
    s.is_stale[dst] = s.is_stale[src]
    s.flow_place[dst] = s.flow_place[src]
    s.status[dst] = s.status[src]
    s.missing[dst] = s.missing[src]
    s.head[dst] = s.head[src]
    s.num_ready[dst] = s.num_ready[src]
    s.num_left[dst] = s.num_left[src]
    s.proc[dst] = s.proc[src]
    s.start_s[dst] = s.start_s[src]
    s.end_s[dst] = s.end_s[src]
    s.job_left[dst] = s.job_left[src]
    s.job_end_s[dst] = s.job_end_s[src]
    s.num[dst] = s.num[src]
    s.window_s[dst] = s.window_s[src]
    s.load_sum[dst] = s.load_sum[src]
    s.work_sum[dst] = s.work_sum[src]
    s.cost[dst] = s.cost[src]
