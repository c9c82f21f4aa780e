"""How fast everything on a machine runs: shares of what is scarce, filled up progressively.

The speed of all tasks and foreign loads rises together until a resource is full; who uses it stays at that speed, the
others go on rising, up to full speed. No capacity is left that somebody could use, and who shares a
bottleneck is slowed alike.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit

#: Less than this share of a resource is not a use of it.
TINY = 1e-12


@njit(cache=True, nogil=True)
def fill_speeds(demand, is_on, first_res, last_res, speed, load):
    """Fill the speed of each row that is on, and the load of each resource, for one machine.

    Parameters
    ----------
    demand
        Shares at full speed; [rows, R].
    first_res, last_res
        The machine's resources.
    load
        Filled with the share in use of each of them; [R].
    """
    num_rows = demand.shape[0]
    is_open = np.empty(num_rows, np.bool_)
    num_open = 0
    for i in range(num_rows):
        is_open[i] = is_on[i]
        speed[i] = 0.0
        num_open += is_on[i]
    for r in range(first_res, last_res):
        load[r] = 0.0
    while num_open > 0:
        level = 1.0
        for r in range(first_res, last_res):
            rising = 0.0
            for i in range(num_rows):
                if is_open[i]:
                    rising += demand[i, r]
            if rising > TINY:
                level = min(level, max(0.0, 1.0 - load[r]) / rising)
        num_closed = 0
        if level < 1.0:
            num_closed = _close_at_bottlenecks(demand, is_open, first_res, last_res, load, level, speed)
        if num_closed == 0:  # full speed for the rest, or what is left of a rounding error
            for i in range(num_rows):
                if is_open[i]:
                    speed[i] = level
            break
        num_open -= num_closed
        for r in range(first_res, last_res):
            load[r] = 0.0
            for i in range(num_rows):
                if is_on[i] and not is_open[i]:
                    load[r] += demand[i, r] * speed[i]
    for r in range(first_res, last_res):
        load[r] = 0.0
        for i in range(num_rows):
            if is_on[i]:
                load[r] += demand[i, r] * speed[i]


@njit(cache=True, nogil=True)
def _close_at_bottlenecks(demand, is_open, first_res, last_res, load, level, speed):
    """Give the level to every open row that uses a resource which is full at it; return how many."""
    num_rows = demand.shape[0]
    is_stuck = np.zeros(num_rows, np.bool_)
    for r in range(first_res, last_res):
        rising = 0.0
        for i in range(num_rows):
            if is_open[i]:
                rising += demand[i, r]
        if rising > TINY and max(0.0, 1.0 - load[r]) / rising <= level * (1.0 + 1e-12):
            for i in range(num_rows):
                if is_open[i] and demand[i, r] > TINY:
                    is_stuck[i] = True
    num_closed = 0
    for i in range(num_rows):
        if is_stuck[i]:
            is_open[i] = False
            speed[i] = level
            num_closed += 1
    return num_closed
