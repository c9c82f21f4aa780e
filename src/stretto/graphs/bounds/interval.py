"""Work that must fall between a head and a tail: crowded stretches of the schedule."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.area import area, best_prices
from stretto.graphs.bounds.relaxation import Relaxation, critical_path, least_heads
from stretto.graphs.bounds.rounding import Ticks

_THRESHOLDS = 128
_ROUNDS = 3
#: Operations that the search over intervals may take, about one second.
_MAX_INTERVAL_WORK = 4e8
_BISECTIONS = 24
#: Doublings and halvings of an interval; what has been found by then is a bound, too. Whatever the numbers, it ends.
_MAX_STEPS = 200


def combined(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the best of area between heads and tails, and of energy in intervals.

    Proof. Tasks whose heads are at least h and tails at least q all run between h and T - q,
    so T is at least h + q + their area. For the rest see :func:`crowded`.
    """
    value = max(critical_path(relaxation), area(relaxation))
    value, prices = _rectangles(relaxation, value)
    n, num_columns = relaxation.duration.shape
    per_pass = n * num_columns * _BISECTIONS
    num_sides = min(40, n, int(math.sqrt(_MAX_INTERVAL_WORK / per_pass)))
    if num_sides < 4:
        return value
    price = np.broadcast_to(prices, relaxation.duration.shape)
    return crowded(relaxation.duration, relaxation.head, relaxation.tail, price, value, num_sides, relaxation.grid)


def _rectangles(relaxation: Relaxation, value: float) -> tuple[float, Floats]:
    """Return the best area between a head and a tail, and the prices that showed it."""
    head, tail = least_heads(relaxation)
    prices = best_prices(relaxation.duration, relaxation.count)
    best_at_prices = prices
    for _ in range(_ROUNDS):
        found, low, high = sweep(head, tail, kernels.task_costs(relaxation.duration, prices))
        if found > value:
            value, best_at_prices = found, prices
        inside = (head >= low) & (tail >= high)
        if inside.all() or len(prices) == 1:
            break
        # The crowd in the rectangle may prefer other devices than all tasks do.
        prices = best_prices(np.ascontiguousarray(relaxation.duration[inside]), relaxation.count)
        inner = low + high + float(kernels.task_costs(relaxation.duration[inside], prices).sum())
        if inner > value:
            value, best_at_prices = inner, prices
    return value, best_at_prices


def sweep(head: Floats, tail: Floats, cost: Floats) -> tuple[float, float, float]:
    """Return the largest ``h + q + cost of {head >= h, tail >= q}``, with its h and q."""
    lows, highs = thresholds(head), thresholds(tail)
    row = np.searchsorted(lows, head, side="right") - 1
    column = np.searchsorted(highs, tail, side="right") - 1
    flat = np.bincount(row * len(highs) + column, weights=cost, minlength=len(lows) * len(highs))
    table = flat.reshape(len(lows), len(highs))
    above = table[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    total = np.where(above > 0, above + lows[:, None] + highs[None, :], 0.0)
    at = np.unravel_index(int(total.argmax()), total.shape)
    return float(total[at]), float(lows[at[0]]), float(highs[at[1]])


def thresholds(values: Floats, limit: int = _THRESHOLDS) -> Floats:
    """Return up to ``limit`` of the distinct values, spread evenly over the tasks, the least included."""
    distinct = np.unique(values)
    if len(distinct) <= limit:
        return distinct
    at = np.linspace(0, len(values) - 1, limit).astype(np.int64)
    spread: Floats = np.unique(np.concatenate([distinct[:1], np.sort(values)[at]]))
    return spread


def crowded(
    duration: Floats,
    head: Floats,
    tail: Floats,
    price: Floats,
    value: float,
    num_sides: int,
    grid: Ticks | None,
) -> float:
    """Return the largest horizon found to be too short because some interval is overloaded.

    Proof. If all ends by T, a task on a column lies between its head and T minus its tail, so
    a part of it lies in [a, b] wherever it is put; at prices under which the interval can hold
    ``b - a``, the cheapest such parts must not cost more. The parts shrink as T grows, hence what
    is too short stays so for every smaller T, and bisection is safe (after Fernández and Bussell).
    """
    runs = np.isfinite(duration)
    begins = thresholds(np.where(runs, head, np.inf).min(axis=1), num_sides)
    ends = thresholds(np.where(runs, tail, np.inf).min(axis=1), num_sides)
    slack = 1e-9 * max(value, 1e-300)

    def overloaded(horizon: float) -> bool:
        return bool(kernels.first_overload(duration, head, tail, price, horizon, begins, ends, slack) >= 0)

    # On a grid the question is whether the next tick is out of reach, not how far between two.
    step = 1.0 / grid.per_s if grid is not None else value * 1e-6
    known, width = value, step
    for _ in range(_MAX_STEPS):
        if not (width < value and overloaded(known + width * (1.0 - 1e-7 if grid is not None else 1.0))):
            break
        width *= 2.0
    low, high = known + (width / 2.0 if width > step else 0.0), known + width
    for _ in range(_MAX_STEPS):
        if not high - low > step / 2.0:
            break
        middle = (low + high) / 2.0
        if overloaded(middle):
            low = middle
        else:
            high = middle
    return low
