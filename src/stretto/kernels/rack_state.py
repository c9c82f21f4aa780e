"""The state of many racks at once, streams of jobs, and what happens between two decisions.

An environment stops where somebody has to decide: after an event, while an idle processor could run or be configured
for a kernel that waits. Actions are numbered: execute kernel k on processor p is k * P + p, configure the q-th FPGA for
k is K * P + k * Q + q, and the last one waits for the next event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.rack_rates import fill_speeds

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
    s.cost[b, :] = 0.0
    _set_flows(a, w, s, b)
    _arrive(w, s, b)


@njit(cache=True, nogil=True)
def _set_flows(a, w, s, b):
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
def _arrive(w, s, b):
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
                _make_ready(w, s, b, task)


@njit(cache=True, nogil=True)
def _make_ready(w, s, b, task):
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
def act(a, w, s, b, action):
    """Do what an action says; return whether it was a valid one (an invalid one does nothing)."""
    num_kernels, num_procs = a.duration_s.shape
    num_fpgas = a.fpgas.shape[0]
    i = s.instance[b]
    if action == num_kernels * (num_procs + num_fpgas):
        return True
    if action < 0 or action > num_kernels * (num_procs + num_fpgas):
        return False
    if action < num_kernels * num_procs:
        k, p = action // num_procs, action % num_procs
        if not can_execute(a, s, b, k, p):
            return False
        task = s.head[b, k]
        s.task[b, p] = task
        s.left_s[b, p] = a.duration_s[k, p] * w.scale[i, task]
        s.demand[b, p, :] = a.demand[k, p]
        s.status[b, task] = RUNNING
        s.proc[b, task] = p
        s.start_s[b, task] = s.now_s[b]
        s.num_ready[b, k] -= 1
        _find_head(w, s, b, k)
    else:
        rest = action - num_kernels * num_procs
        k, p = rest // num_fpgas, a.fpgas[rest % num_fpgas]
        if not can_configure(a, s, b, k, p):
            return False
        s.task[b, p] = CONFIGURING
        s.left_s[b, p] = a.reconfigure_s[p]
        s.demand[b, p, :] = 0.0
        s.config[b, p] = k
    s.is_on[b, p] = True
    s.is_stale[b, a.proc_machine[p]] = True
    return True


@njit(cache=True, nogil=True)
def _find_head(w, s, b, k):
    i = s.instance[b]
    head = -1
    if s.num_ready[b, k] > 0:
        for task in range(w.kernel.shape[1]):
            if s.status[b, task] == READY and w.kernel[i, task] == k and (head < 0 or is_before(w, i, task, head)):
                head = task
    s.head[b, k] = head


@njit(cache=True, nogil=True)
def can_execute(a, s, b, k, p):
    """Say whether the next task of kernel k may start on p now."""
    if s.task[b, p] != IDLE or s.head[b, k] < 0 or a.duration_s[k, p] == np.inf:
        return False
    return a.reconfigure_s[p] == 0.0 or s.config[b, p] == k


@njit(cache=True, nogil=True)
def can_configure(a, s, b, k, p):
    """Say whether FPGA p may be given kernel k now.

    It is idle, a task of k waits, and none of its present kernel does: or it could be reconfigured for ever.
    """
    if s.task[b, p] != IDLE or s.head[b, k] < 0 or a.duration_s[k, p] == np.inf:
        return False
    present = s.config[b, p]
    return present < 0 or (present != k and s.head[b, present] < 0)


@njit(cache=True, nogil=True)
def can_wait(s, b):
    """Say whether an event is to come."""
    if s.num[b, ARRIVED] < s.num[b, TOTAL]:
        return True
    for p in range(s.task.shape[1]):
        if s.task[b, p] != IDLE:
            return True
    return False


@njit(cache=True, nogil=True)
def fill_mask(a, s, b, mask):
    """Fill which actions are valid; return whether there is anything to decide besides waiting."""
    num_kernels, num_procs = a.duration_s.shape
    is_due = False
    for k in range(num_kernels):
        for p in range(num_procs):
            mask[k * num_procs + p] = can_execute(a, s, b, k, p)
            is_due = is_due or mask[k * num_procs + p]
        for q in range(a.fpgas.shape[0]):
            place = num_kernels * num_procs + k * a.fpgas.shape[0] + q
            mask[place] = can_configure(a, s, b, k, a.fpgas[q])
            is_due = is_due or mask[place]
    mask[mask.shape[0] - 1] = can_wait(s, b)
    return is_due


@njit(cache=True, nogil=True)
def refresh(a, s, b):
    """Fill speeds and loads of the machines where something has changed."""
    num_procs = a.proc_kind.shape[0]
    for m in range(a.proc_ptr.shape[0] - 1):
        if s.is_stale[b, m]:
            s.is_stale[b, m] = False
            first, last = a.proc_ptr[m], a.proc_ptr[m + 1]
            num_own = last - first
            num_rows = num_own + a.source_ptr[m + 1] - a.source_ptr[m]
            rows = np.empty((num_rows, a.demand.shape[2]))
            is_on = np.empty(num_rows, np.bool_)
            for x in range(num_rows):
                row = first + x if x < num_own else num_procs + a.source_ptr[m] + x - num_own
                is_on[x] = s.is_on[b, row]
                rows[x] = s.demand[b, row]
            speed = np.empty(num_rows)
            fill_speeds(rows, is_on, a.res_ptr[m], a.res_ptr[m + 1], speed, s.load[b])
            s.speed[b, first:last] = speed[:num_own]


@njit(cache=True, nogil=True)
def pass_time(a, w, s, b):
    """Go on to the next event; say DECIDE when somebody sees it, TICK for a change of foreign load, OVER at the end.

    The event itself happens in ``happen``, so that counters can be read for what ran until then.
    """
    i = s.instance[b]
    if s.num[b, FINISHED] == s.num[b, TOTAL]:
        return OVER
    refresh(a, s, b)
    num_procs = s.task.shape[1]
    step_s = np.inf
    for p in range(num_procs):
        if s.is_on[b, p] and s.speed[b, p] > 0:
            step_s = min(step_s, s.left_s[b, p] / s.speed[b, p])
    if s.num[b, ARRIVED] < s.num[b, TOTAL]:
        step_s = min(step_s, w.arrival_s[i, s.num[b, ARRIVED]] - s.now_s[b])
    if step_s == np.inf:  # nothing runs and nothing is to come
        return OVER
    seen_s = step_s
    for f in range(w.flow_s.shape[1]):
        place = s.flow_place[b, f] + 1
        if place < w.flow_s.shape[2]:
            step_s = min(step_s, w.flow_s[i, f, place] - s.now_s[b])
    step_s = max(step_s, 0.0)
    s.now_s[b] += step_s
    s.window_s[b] += step_s
    s.cost[b, 0] += step_s
    s.cost[b, 1] += step_s * (s.num[b, ARRIVED] - s.num[b, FINISHED])
    for r in range(s.load.shape[1]):
        s.load_sum[b, r] += step_s * s.load[b, r]
    for p in range(num_procs):
        if s.is_on[b, p]:
            s.left_s[b, p] -= step_s * s.speed[b, p]
    _set_flows(a, w, s, b)
    return DECIDE if seen_s <= step_s + SAME_S else TICK


@njit(cache=True, nogil=True)
def happen(a, w, s, b):
    """End what has ended by now, and let in who has arrived."""
    for p in range(s.task.shape[1]):
        if s.is_on[b, p] and s.left_s[b, p] <= 2.0 * SAME_S:
            _finish(a, w, s, b, p)
    _arrive(w, s, b)


@njit(cache=True, nogil=True)
def _finish(a, w, s, b, p):
    """End what runs on p, and make ready what waited for it."""
    i = s.instance[b]
    task = s.task[b, p]
    s.task[b, p] = IDLE
    s.is_on[b, p] = False
    s.left_s[b, p] = 0.0
    s.speed[b, p] = 0.0
    s.demand[b, p, :] = 0.0
    s.is_stale[b, a.proc_machine[p]] = True
    if task < 0:
        return
    s.status[b, task] = DONE
    s.end_s[b, task] = s.now_s[b]
    s.num_left[b, w.kernel[i, task]] -= 1
    job = w.job[i, task]
    s.job_left[b, job] -= 1
    if s.job_left[b, job] == 0:
        s.job_end_s[b, job] = s.now_s[b]
        s.num[b, FINISHED] += 1
    for e in range(w.after_ptr[i, task], w.after_ptr[i, task + 1]):
        later = w.after[i, e]
        s.missing[b, later] -= 1
        if s.missing[b, later] == 0:
            _make_ready(w, s, b, later)


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
    s.cost[dst] = s.cost[src]
