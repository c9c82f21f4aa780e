"""Belief about foreign load and utilisation: an extended filter through the contention model, robust to wild readings.

Hidden are the levels of the sources of foreign load. The links from them to utilisation are deterministic: what runs is
known, the rest follows by filling up (``rack_rates``), linear where nothing is full and differentiated numerically
where something is. A reading of N samples is a Student-t about the truth; it enters as a Gaussian whose variance
grows with its own surprise (the t as a mixture of scales), one counter after the other, so that each costs F^2 only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.rack_rates import fill_speeds

# Places of the parameters: these are what a belief network learns.
THETA, NOISE, PRIOR_NU, MEMORY_S, FLOOR, JUMP, SPREAD = range(7)
NUM_PARAMS = 7
_STEP = 1e-4


class Belief(NamedTuple):
    """What is believed in B racks."""

    level: np.ndarray  # [B, F] of foreign load
    cov: np.ndarray  # [B, F, F] zero between machines
    load: np.ndarray  # [B, R] utilisation
    load_sd: np.ndarray  # [B, R]
    pressure: np.ndarray  # [B, R] demand over capacity, above one where it is more than there is
    prior_mean: np.ndarray  # [F] of the levels
    prior_sd: np.ndarray  # [F]


@njit(cache=True, nogil=True)
def forget_all(belief, b):
    """Go back to the prior."""
    belief.level[b] = belief.prior_mean
    belief.cov[b, :, :] = 0.0
    for f in range(belief.level.shape[1]):
        belief.cov[b, f, f] = belief.prior_sd[f] ** 2
    belief.load[b, :] = 0.0
    belief.load_sd[b, :] = 0.0
    belief.pressure[b, :] = 0.0


@njit(cache=True, nogil=True)
def predict_load(a, s, b, m, level, load):
    """Fill the loads of one machine for given levels of its foreign load and what runs now; say whether any is full."""
    first, last = a.proc_ptr[m], a.proc_ptr[m + 1]
    fill_pressure(a, s, b, m, level, load)
    is_full = False
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        is_full = is_full or load[r] > 1.0
    if not is_full:
        return False
    num_own = last - first
    num_rows = num_own + a.source_ptr[m + 1] - a.source_ptr[m]
    rows = np.zeros((num_rows, load.shape[0]))
    is_on = np.zeros(num_rows, np.bool_)
    for x in range(num_own):
        is_on[x] = s.task[b, first + x] >= 0
        rows[x] = s.demand[b, first + x]
    for x in range(num_own, num_rows):
        f = a.source_ptr[m] + x - num_own
        is_on[x] = level[f] > 0.0
        rows[x] = a.source_demand[f] * max(level[f], 0.0)
    fill_speeds(rows, is_on, a.res_ptr[m], a.res_ptr[m + 1], np.empty(num_rows), load)
    return True


@njit(cache=True, nogil=True)
def fill_slopes(a, s, b, m, level, load, slope):
    """Fill the loads of a machine and their derivatives by the levels of its sources; slope is [R, F]."""
    is_full = predict_load(a, s, b, m, level, load)
    trial = level.copy()
    moved = np.empty(load.shape[0])
    for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
        if is_full:
            trial[f] = max(level[f], 0.0) + _STEP
            predict_load(a, s, b, m, trial, moved)
            trial[f] = level[f]
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            slope[r, f] = (moved[r] - load[r]) / _STEP if is_full else a.source_demand[f, r]


@njit(cache=True, nogil=True)
def update_belief(a, c, s, b, readings, belief, params, dt_s, load, slope):
    """Take in the readings of a window of ``dt_s`` in which what runs did not change; load and slope are scratch.

    Noise grows with the value that is measured, which is what is to be found: so all readings are taken in twice, the
    second time with the noise that belongs to the values found in the first.
    """
    decay = math.exp(-dt_s / params[MEMORY_S])
    at = np.empty(load.shape[0])
    for m in range(a.proc_ptr.shape[0] - 1):
        first, last = a.source_ptr[m], a.source_ptr[m + 1]
        for f in range(first, last):
            mean = belief.prior_mean[f]
            belief.level[b, f] = mean + decay * (belief.level[b, f] - mean)
            for g in range(first, last):
                belief.cov[b, f, g] *= decay * decay
            belief.cov[b, f, f] += (1.0 - decay * decay) * belief.prior_sd[f] ** 2
        fill_slopes(a, s, b, m, belief.level[b], load, slope)
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            at[r] = load[r]
        surprise = 0.0
        num_read = 0
        for x in range(c.ptr[m], c.ptr[m + 1]):
            if _is_sane(readings, b, x):
                surprise += _surprise(c, readings, belief, params, b, x, first, last, load, slope, at)
                num_read += 1
        if num_read == 0:
            continue
        if surprise / num_read > params[JUMP]:
            for f in range(first, last):  # a load has jumped: what was known of it is old
                belief.cov[b, f, f] += belief.prior_sd[f] ** 2
        level = belief.level[b, first:last].copy()
        cov = belief.cov[b, first:last, first:last].copy()
        for x in range(c.ptr[m], c.ptr[m + 1]):
            if _is_sane(readings, b, x):
                _take_in(c, readings, belief, params, b, x, first, last, load, slope, at)
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            at[r] = min(max(load[r], 0.0), 1.0)
        belief.level[b, first:last] = level
        belief.cov[b, first:last, first:last] = cov
        predict_load(a, s, b, m, belief.level[b], load)
        for x in range(c.ptr[m], c.ptr[m + 1]):
            if _is_sane(readings, b, x):
                _take_in(c, readings, belief, params, b, x, first, last, load, slope, at)
        for f in range(first, last):
            belief.level[b, f] = max(belief.level[b, f], 0.0)


@njit(cache=True, nogil=True)
def _is_sane(readings, b, x):
    """Say whether a counter was read in this window and gave something that a counter can give."""
    return (
        readings.num[b, x] >= 2
        and math.isfinite(readings.mean[b, x])
        and math.isfinite(readings.sd[b, x])
        and abs(readings.mean[b, x]) < 20.0
        and 0.0 <= readings.sd[b, x] < 50.0
    )


@njit(cache=True, nogil=True)
def _expected(c, params, x, load):
    """Return what counter x should read at a load, and the derivative of that."""
    if c.exponent[x] == 1.0:
        return load, 1.0
    power = params[THETA] - 1.0
    inside = min(max(load, 0.02), 1.5)
    value = inside**power
    return value, power * value / inside


@njit(cache=True, nogil=True)
def _moments(c, readings, belief, params, b, x, first, last, load, slope, at):
    """Return a reading's innovation, the variance of its prediction, and its own variance before any surprise."""
    r = c.resource[x]
    value, steepness = _expected(c, params, x, load[r])
    variance = 0.0
    for f in range(first, last):
        for g in range(first, last):
            variance += slope[r, f] * belief.cov[b, f, g] * slope[r, g]
    variance *= steepness * steepness
    num = readings.num[b, x]
    nu = num - 1.0
    probable, _ = _expected(c, params, x, at[r])
    guess = (params[NOISE] * max(probable, 0.0)) ** 2 + params[FLOOR] ** 2
    sample = (nu * readings.sd[b, x] ** 2 + params[PRIOR_NU] * guess) / (nu + params[PRIOR_NU])
    return readings.mean[b, x] - value, variance, sample / num, nu + params[PRIOR_NU], steepness


@njit(cache=True, nogil=True)
def _surprise(c, readings, belief, params, b, x, first, last, load, slope, at):
    gap, variance, error, _, _ = _moments(c, readings, belief, params, b, x, first, last, load, slope, at)
    return min(gap * gap / (variance + error), 9.0)


@njit(cache=True, nogil=True)
def _take_in(c, readings, belief, params, b, x, first, last, load, slope, at):
    """Condition the levels on one reading; load and slope follow to first order."""
    gap, variance, error, nu, steepness = _moments(c, readings, belief, params, b, x, first, last, load, slope, at)
    # The scale of a Student-t: the more surprising the reading, the less it counts.
    error *= (nu + gap * gap / (variance + error)) / (nu + 1.0)
    r = c.resource[x]
    total = variance + error
    num = last - first
    gain = np.empty(num)
    for f in range(num):
        gain[f] = 0.0
        for g in range(num):
            gain[f] += belief.cov[b, first + f, first + g] * slope[r, first + g] * steepness
    for f in range(num):
        shift = gain[f] / total * gap
        belief.level[b, first + f] += shift
        for q in range(load.shape[0]):
            load[q] += slope[q, first + f] * shift
    for f in range(num):
        for g in range(num):
            belief.cov[b, first + f, first + g] -= gain[f] * gain[g] / total


@njit(cache=True, nogil=True)
def fill_belief(a, s, b, belief, params, load, slope):
    """Fill mean and spread of utilisation for what runs now."""
    for m in range(a.proc_ptr.shape[0] - 1):
        first, last = a.source_ptr[m], a.source_ptr[m + 1]
        fill_slopes(a, s, b, m, belief.level[b], load, slope)
        for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
            belief.load[b, r] = min(max(load[r], 0.0), 1.0)
            variance = 0.0
            for f in range(first, last):
                for g in range(first, last):
                    variance += slope[r, f] * belief.cov[b, f, g] * slope[r, g]
            belief.load_sd[b, r] = params[SPREAD] * math.sqrt(max(variance, 0.0))
        fill_pressure(a, s, b, m, belief.level[b], belief.pressure[b])


@njit(cache=True, nogil=True)
def fill_pressure(a, s, b, m, level, pressure):
    """Fill how much is asked of each resource of a machine, whether it can be had or not."""
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        pressure[r] = 0.0
        for p in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
            pressure[r] += s.demand[b, p, r]
        for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
            pressure[r] += a.source_demand[f, r] * max(level[f], 0.0)
