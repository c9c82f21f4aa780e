"""The least cost of one job on spot and on-demand instances, if the availability of spot is known beforehand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.compile import njit
from stretto.graphs.rental.kernels.spot_values import IDLE, ON_DEMAND, SPOT

Bools = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def hindsight_cost(available: Bools, work: int, d: int, price: float, cost: Floats, ahead: Floats) -> float:
    """Return the least cost, in units of time on demand; the deadline is the end of ``available``.

    A dynamic program, backward in time. The state is the time that was lost so far (waiting and changeovers) and where
    the job runs; ``cost`` and ``ahead`` are work space, [time that may be lost + 1, 3].
    """
    size = len(available)
    slack = size - work
    ahead[:] = 0.0
    for k in range(size - 1, -1, -1):
        for lost in range(slack + 1):
            if k - lost >= work:
                cost[lost, :] = 0.0
                continue
            for m in range(3):
                best = ahead[lost + 1, IDLE] if lost < slack else math.inf
                then = lost if m == ON_DEMAND else lost + d
                if then <= slack:
                    best = min(best, 1.0 + ahead[then, ON_DEMAND])
                then = lost if m == SPOT else lost + d
                if available[k] and then <= slack:
                    best = min(best, price + ahead[then, SPOT])
                cost[lost, m] = best
            if not available[k]:
                cost[lost, SPOT] = cost[lost, IDLE]
        ahead, cost = cost, ahead
    return float(ahead[0, IDLE])
