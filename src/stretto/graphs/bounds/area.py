"""The work that there is, divided among the devices as well as possible."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.nodes.packing import Packing
from stretto.core.problem import Problem
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.kernels.search.decode import tails

#: Up to here a linear program finds the best prices exactly in well under a second.
_MAX_LP = 12_000
_SAMPLE = 20_000
_STEPS = 400
_LAST_STEPS = 24
#: The same for the quick bound, which takes milliseconds.
_QUICK_SAMPLE, _QUICK_STEPS = 4_000, 60


def area(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the least time in which the devices can do all the work, tasks being divisible.

    Proof. Give each device a price per second such that one second of all devices together costs
    one. A schedule of length T spends at most T, and at least what each task costs on the device
    where it is cheapest; so the sum of these costs bounds T for any prices whatever.
    """
    prices = best_prices(relaxation.duration, relaxation.count)
    load = np.empty(len(prices))
    total = float(kernels.priced_area(relaxation.duration, prices, load))
    return float(relaxation.forward.release.min()) + total


def best_prices(duration: Floats, count: Floats) -> Floats:
    """Return prices of the columns, ``sum(count * price) == 1``, that make the priced area large.

    Exact by linear programming for small tables; by ascent on a sample, then on all tasks,
    for large ones, where a price slightly off costs next to nothing.
    """
    n, num_columns = duration.shape
    prices = related_prices(duration, count)
    if num_columns == 1:
        return prices
    if n * num_columns <= _MAX_LP:
        exact = _solve_lp(duration, count)
        return exact if exact is not None and _value(duration, exact) > _value(duration, prices) else prices
    if n > 2 * _SAMPLE:
        sample = np.ascontiguousarray(duration[:: n // _SAMPLE])
        kernels.ascend(sample, count, prices, _STEPS, 0.5)
        kernels.ascend(duration, count, prices, _LAST_STEPS, 0.05)
    else:
        kernels.ascend(duration, count, prices, _STEPS, 0.5)
    return prices


def _value(duration: Floats, prices: Floats) -> float:
    return float(kernels.priced_area(duration, prices, np.empty(len(prices))))


def related_prices(duration: Floats, count: Floats) -> Floats:
    """Return prices in proportion to mean speed: the best ones when devices differ by speed alone."""
    runs = np.isfinite(duration)
    per_task = np.where(runs, duration, 0.0).sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
    dearest = float(per_task.max())
    speed = 1.0 / np.where(per_task > 0, per_task, dearest if dearest > 0 else 1.0)
    prices: Floats = speed / float(count @ speed)
    return prices


def _solve_lp(duration: Floats, count: Floats) -> Floats | None:
    """Return optimal prices from the dual of the fractional assignment, or None when the solver gives up.

    Primal: minimise T, with shares of each task that sum to one and busy time of column c at most
    ``count[c] * T``; the prices are the multipliers of the columns.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    n, num_columns = duration.shape
    task, column = np.nonzero(np.isfinite(duration))
    num_shares = len(task)
    share = np.arange(num_shares)
    largest = float(duration[task, column].max())
    if largest == 0.0:
        return None
    busy = coo_matrix(
        (
            np.concatenate([duration[task, column] / largest, -count]),
            (
                np.concatenate([column, np.arange(num_columns)]),
                np.concatenate([share, np.full(num_columns, num_shares)]),
            ),
        ),
        shape=(num_columns, num_shares + 1),
    )
    once = coo_matrix((np.ones(num_shares), (task, share)), shape=(n, num_shares + 1))
    objective = np.zeros(num_shares + 1)
    objective[-1] = 1.0
    answer = linprog(objective, A_ub=busy, b_ub=np.zeros(num_columns), A_eq=once, b_eq=np.ones(n), method="highs")
    if answer.status != 0:
        return None
    prices = np.maximum(-np.asarray(answer.ineqlin.marginals, dtype=np.float64), 0.0)
    total = float(count @ prices)
    return prices / total if total > 0 else None


def least_area(problem: Problem, packing: Packing) -> float:
    """Return the busiest resource's work over all that there is of it, each task where it takes least.

    Proof. A schedule of length T offers the sum of capacities times T, and uses at least this much. A resource of which
    some device has no end says nothing.
    """
    arrays = problem.arrays
    least = arrays.duration.min(axis=1)
    total = packing.capacity.sum(axis=0)
    work = least @ packing.need
    return float(np.where(np.isfinite(total), work / np.where(total > 0, total, 1.0), 0.0).max(initial=0.0))


def quick(problem: Problem) -> float:
    """Return the larger of the longest path of best durations and the work at good prices.

    Proof. The first holds because transfers can be free at best; the second for any prices,
    see :func:`area`. Both are lowered by what adding up could have rounded away.
    """
    arrays = problem.arrays
    path = float(np.max(arrays.release + arrays.duration.min(axis=1) + tails(arrays)))
    if problem.packing is not None:
        return max(path, float(arrays.release.min()) + least_area(problem, problem.packing)) * (1 - 1e-9)
    count = np.bincount(arrays.device_class, minlength=arrays.duration.shape[1]).astype(np.float64)
    prices = related_prices(arrays.duration, count)
    if len(prices) > 1:
        step = max(1, problem.num_tasks // _QUICK_SAMPLE)
        kernels.ascend(np.ascontiguousarray(arrays.duration[::step]), count, prices, _QUICK_STEPS, 0.3)
    work = float(kernels.priced_area(arrays.duration, prices, np.empty(len(prices))))
    return max(path, float(arrays.release.min()) + work) * (1 - 1e-9)
