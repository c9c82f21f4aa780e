"""What a policy sees of a rack, as one row of numbers per environment.

Times are logarithms; estimated contention enters through ``pressure`` (zeros where it is not estimated).
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.counters import since_decision
from stretto.racks.kernels.rules import expected_speed, free_at
from stretto.racks.kernels.state import CONFIGURING, IDLE

NUM_PROC, NUM_KERNEL, NUM_PAIR = 3, 5, 4
#: Stands for the time of what cannot run.
_NEVER = 4.0


@njit(cache=True, nogil=True)
def fill_features(a, w, s, b, pressure, proc, kernel, pair):
    """Fill labels of processors [P, 3], kernels [K, 5] and pairs [K, P, 4]."""
    num_kernels, num_procs = a.duration_s.shape
    i = s.instance[b]
    free = np.empty(num_procs)
    for p in range(num_procs):
        free[p] = free_at(a, w, s, b, p, a.duration_s, pressure)
        proc[p, 0] = s.task[b, p] == IDLE
        proc[p, 1] = s.task[b, p] == CONFIGURING
        proc[p, 2] = math.log1p(free[p])
    for k in range(num_kernels):
        head = s.head[b, k]
        kernel[k, 0] = head >= 0
        kernel[k, 1] = math.log1p(s.num_ready[b, k])
        kernel[k, 2] = math.log1p(s.num_left[b, k])
        kernel[k, 3] = math.log1p(w.rank_s[i, head]) if head >= 0 else 0.0
        kernel[k, 4] = math.log1p(s.job_left[b, w.job[i, head]]) if head >= 0 else 0.0
        best_s = np.inf
        for p in range(num_procs):
            if a.duration_s[k, p] == np.inf:
                pair[k, p, 0] = _NEVER
                pair[k, p, 1] = 0.0
                pair[k, p, 2] = 0.0
                pair[k, p, 3] = np.inf
                continue
            speed = expected_speed(a, k, p, a.proc_machine[p], pressure)
            must_configure = a.reconfigure_s[p] > 0 and s.config[b, p] != k
            end_s = free[p] + a.duration_s[k, p] / speed + (a.reconfigure_s[p] if must_configure else 0.0)
            pair[k, p, 0] = math.log(a.duration_s[k, p])
            pair[k, p, 1] = -math.log(speed)
            pair[k, p, 2] = must_configure
            pair[k, p, 3] = end_s
            best_s = min(best_s, end_s)
        for p in range(num_procs):
            end_s = pair[k, p, 3]
            pair[k, p, 3] = _NEVER if end_s == np.inf else min(_NEVER, math.log(end_s / best_s))


@njit(cache=True, nogil=True)
def fill_rows(a, w, s, belief, readings, is_believing, out):
    """Fill a row per environment: pairs, processors, kernels, then beliefs about resources or raw counters."""
    num_kernels, num_procs = a.duration_s.shape
    num_res = s.load.shape[1]
    nothing = np.zeros(num_res)
    pair = np.empty((num_kernels, num_procs, NUM_PAIR))
    proc = np.empty((num_procs, NUM_PROC))
    kernel = np.empty((num_kernels, NUM_KERNEL))
    for b in range(out.shape[0]):
        fill_features(a, w, s, b, belief.pressure[b] if is_believing else nothing, proc, kernel, pair)
        at = num_kernels * num_procs * NUM_PAIR
        out[b, :at] = pair.ravel()
        out[b, at : at + proc.size] = proc.ravel()
        at += proc.size
        out[b, at : at + kernel.size] = kernel.ravel()
        at += kernel.size
        if is_believing:
            for r in range(num_res):
                out[b, at + 3 * r] = min(belief.pressure[b, r], 3.0)
                out[b, at + 3 * r + 1] = belief.load[b, r]
                out[b, at + 3 * r + 2] = min(belief.load_sd[b, r], 1.0)
        else:
            for x in range(readings.mean.shape[1]):
                out[b, at + 2 * x] = min(max(since_decision(readings, b, x), -3.0), 3.0)
                out[b, at + 2 * x + 1] = readings.num_windows[b, x] > 0
