"""Performance counters of a rack as a scheduler gets them: few samples, noise, and gaps from multiplexing.

A counter reads the load of one resource over the window since the last reading, as ``load ** exponent``: traffic
counters have exponent 1, occupancy counters (cycles with at least theta outstanding requests, over cycles with any)
grow late. Sampling error is relative to the value, with a floor; it has no bias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import uniform


class Counters(NamedTuple):
    """What can be read, C counters in the order of their machines, and how badly."""

    ptr: np.ndarray  # [M+1]
    resource: np.ndarray  # [C]
    exponent: np.ndarray  # [C] of the real machine, which a belief may get wrong
    noise: float  # standard deviation of one sample, relative to its value
    floor: float  # and at least this, as a share of the full scale
    num_samples: int  # in a window, when the counter had its turn
    miss: float  # how often it had not
    period_s: float  # a window is no longer than this
    progress_noise: float  # of a task's measured progress in a window, on a logarithmic scale


class Readings(NamedTuple):
    """The last reading of each counter in B racks."""

    mean: np.ndarray  # [B, C] of the last window in which it was read
    sd: np.ndarray  # [B, C] of its samples
    num: np.ndarray  # [B, C] samples in the last window; 0 says that the mean is an old one
    age_s: np.ndarray  # [B, C] since it was read
    total: np.ndarray  # [B, C] of the means of all windows since the last decision
    num_windows: np.ndarray  # [B, C] how many these are
    progress: np.ndarray  # [B, P] of the task there in the last window, over its model; 0 where it was not measured


@njit(cache=True, nogil=True)
def normal(state):
    """Return a standard normal number (Box and Muller)."""
    x = max(uniform(state), 1e-300)
    return math.sqrt(-2.0 * math.log(x)) * math.cos(2.0 * math.pi * uniform(state))


@njit(cache=True, nogil=True)
def read_counters(c, s, b, out, state):
    """Read all counters for the window that ends now, and begin a new one."""
    window_s = s.window_s[b]
    if window_s <= 0.0:
        return False
    for x in range(c.resource.shape[0]):
        out.age_s[b, x] += window_s
        if uniform(state) < c.miss:
            out.num[b, x] = 0
            continue
        load = s.load_sum[b, c.resource[x]] / window_s
        value = load ** c.exponent[x]
        sd = math.sqrt((c.noise * value) ** 2 + c.floor**2)
        total = 0.0
        square = 0.0
        for _ in range(c.num_samples):
            sample = value + sd * normal(state)
            total += sample
            square += sample * sample
        mean = total / c.num_samples
        out.mean[b, x] = mean
        out.sd[b, x] = math.sqrt(max(0.0, square - c.num_samples * mean * mean) / (c.num_samples - 1))
        out.num[b, x] = c.num_samples
        out.age_s[b, x] = 0.0
        out.total[b, x] += mean
        out.num_windows[b, x] += 1
    return True


@njit(cache=True, nogil=True)
def since_decision(readings, b, x):
    """Return the mean of what a counter read since the last decision, or its last reading when there was none."""
    num = readings.num_windows[b, x]
    return readings.total[b, x] / num if num > 0 else readings.mean[b, x]


@njit(cache=True, nogil=True)
def close_window(s, b):
    """Begin a new window."""
    s.window_s[b] = 0.0
    s.load_sum[b, :] = 0.0
    s.work_sum[b, :] = 0.0
