"""What a job is expected to cost from now on, if spot availability is a two-state Markov chain.

One table per hypothesis about the chain. ``value[i, j, m, z]`` is the expected cost with ``i`` ticks of work left and
``j`` ticks of slack (time to the deadline, less the work), on an instance of market ``m``, with spot available (``z``
= 1) or not. Times are in ticks, prices relative to on demand. Every entry keeps the reserve: slack below the changeover
allows nothing but on demand.
"""

from __future__ import annotations

import math

from stretto.core.csr import Floats
from stretto.core.kernels.compile import njit

#: Where a job runs.
IDLE = 0
SPOT = 1
ON_DEMAND = 2


@njit(cache=True, nogil=True)
def at_slack(value: Floats, i: int, slack: float, m: int, z: int) -> float:
    """Return a table's entry, linear between ticks of slack."""
    last = value.shape[1] - 1
    j = min(int(slack), last)
    part = slack - j
    if part <= 0.0 or j == last:
        return float(value[i, j, m, z])
    return float((1.0 - part) * value[i, j, m, z] + part * value[i, j + 1, m, z])


@njit(cache=True, nogil=True)
def after_tick(value: Floats, i: int, slack: float, m: int, z: int, change: float) -> float:
    """Return the expected cost after one more tick, in which spot availability changes with a probability."""
    same = m if m != SPOT or z == 1 else IDLE
    other = m if m != SPOT or z == 0 else IDLE
    return (1.0 - change) * at_slack(value, i, slack, same, z) + change * at_slack(value, i, slack, other, 1 - z)


@njit(cache=True, nogil=True)
def action_cost(
    value: Floats, i: int, slack: float, m: int, z: int, action: int, lost: float, found: float, d: float, price: float
) -> float:
    """Return the expected cost of an action; infinite where it is not possible or breaks the reserve.

    ``lost`` and ``found`` are the chances per tick that spot goes and comes, ``d`` the changeover in ticks.
    """
    change = lost if z == 1 else found
    if action == ON_DEMAND:
        if m == ON_DEMAND:
            return 1.0 + after_tick(value, i - 1, slack, ON_DEMAND, z, change)
        if slack < d:
            return i + d
        return 1.0 + d + after_tick(value, i - 1, slack - d, ON_DEMAND, z, change)
    if action == IDLE:
        if slack - 1.0 < d:
            return math.inf
        return after_tick(value, i, slack - 1.0, IDLE, z, change)
    if z == 0:
        return math.inf
    if m == SPOT:
        return price + after_tick(value, i - 1, slack, SPOT, z, change)
    if slack < 2.0 * d:
        return math.inf
    starts = (1.0 - lost) ** d
    cost = price * d + starts * (price + after_tick(value, i - 1, slack - d, SPOT, z, change))
    if starts < 1.0:
        cost += (1.0 - starts) * at_slack(value, i, slack - d, IDLE, 0)
    return cost


@njit(cache=True, nogil=True)
def fill_values(value: Floats, lost: float, found: float, d: float, price: float) -> None:
    """Fill a table: backward over the work left, and over slack."""
    for j in range(value.shape[1]):
        for m in range(3):
            for z in range(2):
                value[0, j, m, z] = 0.0
    for i in range(1, value.shape[0]):
        for j in range(value.shape[1]):
            for z in range(2):  # without spot first: what a failed start leads to
                for m in range(3):
                    if m == SPOT and z == 0:
                        continue
                    best = math.inf
                    for action in range(3):
                        best = min(best, action_cost(value, i, float(j), m, z, action, lost, found, d, price))
                    value[i, j, m, z] = best
                if z == 0:
                    value[i, j, SPOT, 0] = value[i, j, IDLE, 0]
