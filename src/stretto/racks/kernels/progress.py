"""Slowdowns of running tasks as evidence: a task that is slower than its model tells of the parts on its path.

What is measured is the share of its work that a task has done in a window, over what its model says at full speed:
speed over ``scale``, the task's own size over that of its kernel. The scale is unknown and stays the same while the
task runs, so that it is estimated along: a logarithm with mean and variance by processor. A task whose pace *changes*
says more than a task that has been slow from the beginning.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import uniform
from stretto.racks.kernels.counters import normal
from stretto.racks.kernels.evidence import NUM_VALUES, PROGRESS_NOISE, SCALE_SD

#: Random numbers of progress are a stream of their own: who watches changes nothing for those who do not.
_STREAM = np.uint64(0x9E3779B97F4A7C15)
#: No task is slower than this.
_SLOWEST = 0.02


@njit(cache=True, nogil=True)
def read_progress(c, w, s, b, out, state):
    """Measure the progress of every running task in the window that ends now; 0 where there is none."""
    own = np.empty(1, np.uint64)
    own[0] = state[0] ^ _STREAM
    for p in range(s.task.shape[1]):
        task = s.task[b, p]
        out.progress[b, p] = 0.0
        if task < 0 or uniform(own) < c.miss:
            continue
        pace = s.work_sum[b, p] / s.window_s[b] / w.scale[s.instance[b], task]
        out.progress[b, p] = pace * math.exp(c.progress_noise * normal(own))


@njit(cache=True, nogil=True)
def fill_progress(a, s, b, m, readings, belief, params, table, is_read):
    """Fill log-likelihoods by speed for the processors of a machine, in the rows after those of the resources."""
    num_res = a.demand.shape[2]
    for p in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
        if s.task[b, p] != belief.pace_task[b, p]:
            belief.pace_task[b, p] = s.task[b, p]
            belief.pace[b, p, 0] = 0.0
            belief.pace[b, p, 1] = params[SCALE_SD] ** 2
        measured = readings.progress[b, p]
        is_read[num_res + p] = s.task[b, p] >= 0 and math.isfinite(measured) and 1e-3 < measured < 1e3
        if is_read[num_res + p]:
            variance = params[PROGRESS_NOISE] ** 2 + belief.pace[b, p, 1]
            at = math.log(measured) + belief.pace[b, p, 0]
            for j in range(NUM_VALUES):
                gap = at - math.log(max((j / (NUM_VALUES - 1.0)) ** 2, _SLOWEST))
                table[num_res + p, j] = -0.5 * gap * gap / variance


@njit(cache=True, nogil=True)
def update_pace(readings, belief, params, b, p, speed, variance):
    """Take in what a task's progress says about its scale, for a speed that everything else leads to expect."""
    speed = min(max(speed, _SLOWEST), 1.0)
    seen = math.log(speed / readings.progress[b, p])
    noise = params[PROGRESS_NOISE] ** 2 + variance / speed**2
    gain = belief.pace[b, p, 1] / (belief.pace[b, p, 1] + noise)
    belief.pace[b, p, 0] += gain * (seen - belief.pace[b, p, 0])
    belief.pace[b, p, 1] *= 1.0 - gain
