"""A bound in milliseconds, for graphs so large that the better ones would outlast the planner."""

from __future__ import annotations

import numpy as np

from stretto.core.problem import Problem
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.area import related_prices
from stretto.graphs.kernels.search.decode import tails

_SAMPLE = 4_000
_STEPS = 60


def quick(problem: Problem) -> float:
    """Return the larger of the longest path of best durations and the work at good prices.

    Proof. The first holds because transfers can be free at best; the second for any prices,
    see ``graphs.bounds.area``. Both are lowered by what adding up could have rounded away.
    """
    arrays = problem.arrays
    path = float(np.max(arrays.release + arrays.duration.min(axis=1) + tails(arrays)))
    count = np.bincount(arrays.device_class, minlength=arrays.duration.shape[1]).astype(np.float64)
    prices = related_prices(arrays.duration, count)
    if len(prices) > 1:
        step = max(1, problem.num_tasks // _SAMPLE)
        kernels.ascend(np.ascontiguousarray(arrays.duration[::step]), count, prices, _STEPS, 0.3)
    work = float(kernels.priced_area(arrays.duration, prices, np.empty(len(prices))))
    return max(path, float(arrays.release.min()) + work) * (1 - 1e-9)
