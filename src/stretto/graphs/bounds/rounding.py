"""Float bounds that stay below the truth, and the grid on which all times of a problem lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.problem import Problem

_EPSILON = float(np.finfo(np.float64).eps)
_MAX_EXACT_TICKS = 2**40
_MAX_COSTS = 2_000_000


@dataclass(frozen=True)
class Ticks:
    """Seconds as integers.

    Attributes
    ----------
    per_s
        Ticks per second.
    is_exact
        True when every duration, transfer and release is a whole number of ticks; otherwise
        times are rounded down, so that what is proven about ticks holds for seconds.
    """

    per_s: float
    is_exact: bool

    def floor(self, seconds: float) -> int:
        """Return whole ticks, never more than the time."""
        return round(seconds * self.per_s) if self.is_exact else math.floor(seconds * self.per_s)

    def seconds(self, ticks: float) -> float:
        return ticks / self.per_s


def below(value_s: float, num_tasks: int, *, is_exact: bool) -> float:
    """Lower a value by what rounding may have added to it over a chain of all tasks.

    Sums of integers are exact and stay as they are.
    """
    return value_s if is_exact else value_s * (1.0 - 4.0 * _EPSILON * (num_tasks + 4))


def on_grid(value_s: float, ticks: Ticks | None, num_tasks: int) -> float:
    """Raise a lower bound to the next tick when all times are whole ticks, safely for floats.

    Some best schedule starts every task as early as it can, hence at a sum of durations and
    transfers, hence on the grid; no schedule is shorter than that one.
    """
    if ticks is None:
        return below(value_s, num_tasks, is_exact=False)
    whole = ticks.per_s == 1.0
    value = below(value_s, num_tasks, is_exact=False) * ticks.per_s
    up = math.ceil(value - 1e-6)
    return below(up / ticks.per_s, num_tasks, is_exact=whole)


def find_grid(problem: Problem) -> Ticks | None:
    """Return the coarsest decimal grid that holds all times of a problem, or None.

    Only the steps 1 s, 0.1 s … 1 µs and their common multiples are tried.
    """
    values = _all_times(problem)
    if values is None:
        return None
    for per_s in (1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6):
        scaled = values * per_s
        if len(scaled) and float(scaled.sum()) > _MAX_EXACT_TICKS:
            return None
        # Seconds must be whole as they stand; 0.1 s never is, and may be off by what floats are.
        tolerance = 0.0 if per_s == 1.0 else 4.0 * _EPSILON
        if bool(np.all(np.abs(scaled - np.rint(scaled)) <= tolerance * scaled)):
            return Ticks(per_s, True)
    return None


def coarsest(problem: Problem, grid: Ticks) -> Ticks:
    """Return the grid of the greatest common divisor of all times: small numbers search faster."""
    values = _all_times(problem)
    assert values is not None, "a grid was found, so the times are known"
    step = int(np.gcd.reduce(np.rint(values * grid.per_s).astype(np.int64))) if len(values) else 1
    return Ticks(grid.per_s / max(step, 1), True)


def _all_times(problem: Problem) -> Floats | None:
    """Return every distinct time that a schedule adds up, or None when there are too many."""
    arrays = problem.arrays
    times = np.concatenate([arrays.duration[np.isfinite(arrays.duration)], arrays.release])
    if problem.is_free_to_move or problem.graph.resources is not None:
        return np.unique(times)
    links = np.unique(np.stack([arrays.latency.ravel(), arrays.inv_bandwidth.ravel()]), axis=1)
    sizes = np.unique(arrays.object_size[arrays.object_size > 0])
    if links.shape[1] * len(sizes) > _MAX_COSTS:
        return None
    costs = links[0][:, None] + links[1][:, None] * sizes[None, :]
    return np.unique(np.concatenate([times, costs.ravel()]))
