"""What the counters of a window say about each resource: how likely its readings are at every utilization.

Samples of a counter scatter about its value v with a spread that is proportional to v, up to what is not known of that
spread: given an expectation worth ``PRIOR_NU`` degrees of freedom, mean and spread of the samples together have a
Student-t likelihood. The spread is worth as much as the mean here: a counter that reads little but scatters widely
counts something busy.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.kernels.compile import njit

# Places of the parameters: these are what a belief network learns.
THETA, NOISE, PRIOR_NU, FLOOR, SHARE, PERIOD_S, SPREAD, PROGRESS_NOISE, SCALE_SD = range(9)
NUM_PARAMS = 9
#: Values of a table; they lie at (j / (NUM_VALUES - 1)) ** 2, since noise is relative to the value.
NUM_VALUES = 41


@njit(cache=True, nogil=True)
def is_sane(readings, b, x):
    """Say whether a counter was read in this window and gave something that a counter can give."""
    return (
        readings.num[b, x] >= 2
        and math.isfinite(readings.mean[b, x])
        and math.isfinite(readings.sd[b, x])
        and abs(readings.mean[b, x]) < 20.0
        and 0.0 <= readings.sd[b, x] < 50.0
    )


@njit(cache=True, nogil=True)
def fill_evidence(a, c, b, m, readings, params, table, is_read):
    """Fill log-likelihoods by utilization for the resources of a machine, [R, NUM_VALUES], each with maximum 0."""
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        table[r, :] = 0.0
        is_read[r] = False
    nu = params[PRIOR_NU]
    value = np.empty((2, NUM_VALUES))
    guess = np.empty((2, NUM_VALUES))
    log_guess = np.empty((2, NUM_VALUES))
    for j in range(NUM_VALUES):
        load = (j / (NUM_VALUES - 1.0)) ** 2
        value[0, j] = load
        value[1, j] = load ** (params[THETA] - 1.0)
        for kind in range(2):
            guess[kind, j] = nu * ((params[NOISE] * value[kind, j]) ** 2 + params[FLOOR] ** 2)
            log_guess[kind, j] = 0.5 * nu * math.log(guess[kind, j])
    for x in range(c.ptr[m], c.ptr[m + 1]):
        if not is_sane(readings, b, x):
            continue
        r = c.resource[x]
        is_read[r] = True
        kind = 0 if c.exponent[x] == 1.0 else 1
        num = readings.num[b, x]
        within = (num - 1.0) * readings.sd[b, x] ** 2
        for j in range(NUM_VALUES):
            gap = readings.mean[b, x] - value[kind, j]
            square = guess[kind, j] + within + num * gap * gap
            table[r, j] += log_guess[kind, j] - 0.5 * (nu + num) * math.log(square)
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        table[r, :] -= table[r].max()


@njit(cache=True, nogil=True)
def likelihood(row, load):
    """Return the likelihood at a utilization, from one row of a table."""
    place = math.sqrt(min(max(load, 0.0), 1.0)) * (NUM_VALUES - 1)
    low = min(int(place), NUM_VALUES - 2)
    part = place - low
    return math.exp((1.0 - part) * row[low] + part * row[low + 1])
