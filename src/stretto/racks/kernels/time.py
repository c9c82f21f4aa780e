"""What happens in a rack between two decisions: speeds, events, ends and arrivals."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.rates import fill_speeds
from stretto.racks.kernels.state import (
    ARRIVED,
    DECIDE,
    DONE,
    FINISHED,
    IDLE,
    OVER,
    SAME_S,
    TICK,
    TOTAL,
    arrive,
    make_ready,
    set_flows,
)


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
def pass_time(a, w, s, b, most_s):
    """Go on to the next event; say DECIDE when somebody sees it, TICK for a change of foreign load, OVER at the end.

    After ``most_s`` seconds without an event it stops with TICK. The event itself happens in ``happen``, so that
    counters can be read for what ran until then.
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
    step_s = max(min(step_s, most_s), 0.0)
    s.now_s[b] += step_s
    s.window_s[b] += step_s
    s.cost[b, 0] += step_s
    s.cost[b, 1] += step_s * (s.num[b, ARRIVED] - s.num[b, FINISHED])
    for r in range(s.load.shape[1]):
        s.load_sum[b, r] += step_s * s.load[b, r]
    for p in range(num_procs):
        if s.is_on[b, p]:
            s.left_s[b, p] -= step_s * s.speed[b, p]
            s.work_sum[b, p] += step_s * s.speed[b, p]
    set_flows(a, w, s, b)
    return DECIDE if seen_s <= step_s + SAME_S else TICK


@njit(cache=True, nogil=True)
def happen(a, w, s, b):
    """End what has ended by now, and let in who has arrived."""
    for p in range(s.task.shape[1]):
        if s.is_on[b, p] and s.left_s[b, p] <= 2.0 * SAME_S:
            _finish(a, w, s, b, p)
    arrive(w, s, b)


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
            make_ready(w, s, b, later)
