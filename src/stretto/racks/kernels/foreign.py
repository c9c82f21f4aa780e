"""What levels of foreign load do to the loads of a machine beside what runs there: linear until something is full."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.rates import fill_speeds

#: States of a source of foreign load: off, then levels in ascending order, equally far apart.
NUM_STATES = 11
#: Where something is full, loads are worked out for every so many-th level only.
_KNOT = 3


@njit(cache=True, nogil=True)
def fill_pressure(a, s, b, m, level, pressure):
    """Fill how much is asked of each resource of a machine, whether it can be had or not."""
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        pressure[r] = 0.0
        for p in range(a.proc_ptr[m], a.proc_ptr[m + 1]):
            pressure[r] += s.demand[b, p, r]
        for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
            pressure[r] += a.source_demand[f, r] * level[f]


@njit(cache=True, nogil=True)
def predict_outcome(a, s, b, m, level, outcome):
    """Fill what given levels of foreign load lead to beside what runs now; say whether any resource is full.

    ``outcome`` holds the loads of all resources, then the speeds of all processors; those of machine ``m`` are filled.
    """
    num_res = a.demand.shape[2]
    load = outcome[:num_res]
    first, last = a.proc_ptr[m], a.proc_ptr[m + 1]
    fill_pressure(a, s, b, m, level, load)
    is_full = False
    for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
        is_full = is_full or load[r] > 1.0
    outcome[num_res + first : num_res + last] = 1.0
    if not is_full:
        return False
    num_own = last - first
    num_rows = num_own + a.source_ptr[m + 1] - a.source_ptr[m]
    rows = np.zeros((num_rows, num_res))
    is_on = np.zeros(num_rows, np.bool_)
    for x in range(num_own):
        is_on[x] = s.task[b, first + x] >= 0
        rows[x] = s.demand[b, first + x]
    for x in range(num_own, num_rows):
        f = a.source_ptr[m] + x - num_own
        is_on[x] = level[f] > 0.0
        rows[x] = a.source_demand[f] * level[f]
    speed = np.empty(num_rows)
    fill_speeds(rows, is_on, a.res_ptr[m], a.res_ptr[m + 1], speed, load)
    for x in range(num_own):
        if is_on[x]:
            outcome[num_res + first + x] = speed[x]
    return True


@njit(cache=True, nogil=True)
def fill_changes(a, s, b, m, levels, level, base, change):
    """Fill the outcome at mean levels, and how each state of each source of the machine changes it.

    ``levels`` are those of the states, [F, S]; ``level`` the means; ``change`` is [F, S, R + P].
    """
    num_res = a.demand.shape[2]
    first_speed, last_speed = num_res + a.proc_ptr[m], num_res + a.proc_ptr[m + 1]
    is_full = predict_outcome(a, s, b, m, level, base)
    trial = level.copy()
    moved = np.empty(base.shape[0])
    for f in range(a.source_ptr[m], a.source_ptr[m + 1]):
        trial[f] = levels[f, NUM_STATES - 1]
        is_bent = is_full or predict_outcome(a, s, b, m, trial, moved)
        for j in range(NUM_STATES):
            trial[f] = levels[f, j]
            is_knot = is_bent and (j == 0 or j % _KNOT == 1)
            if is_knot:
                predict_outcome(a, s, b, m, trial, moved)
            for r in range(a.res_ptr[m], a.res_ptr[m + 1]):
                gap = moved[r] - base[r] if is_knot else a.source_demand[f, r] * (trial[f] - level[f])
                change[f, j, r] = gap
            for r in range(first_speed, last_speed):
                change[f, j, r] = moved[r] - base[r] if is_knot else 0.0
        if is_bent:
            _fill_between(change[f], a.res_ptr[m], a.res_ptr[m + 1])
            _fill_between(change[f], first_speed, last_speed)
        trial[f] = level[f]


@njit(cache=True, nogil=True)
def _fill_between(change, first, last):
    """Fill the states between knots, whose levels are equally far apart, by straight lines."""
    for low in range(1, NUM_STATES - 1, _KNOT):
        for j in range(low + 1, low + _KNOT):
            part = (j - low) / _KNOT
            for r in range(first, last):
                change[j, r] = (1.0 - part) * change[low, r] + part * change[low + _KNOT, r]
