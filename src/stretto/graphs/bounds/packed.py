"""Bounds on nodes that pack: the work on each resource, divided among the nodes as well as possible."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.core.nodes.packing import SLOT
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.area import best_prices
from stretto.graphs.bounds.interval import crowded, sweep
from stretto.graphs.bounds.relaxation import Relaxation, critical_path, least_heads

_MAX_INTERVAL_WORK = 4e8


def packed_area(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the least time in which the nodes can do all the work on the busiest resource, tasks being divisible.

    Proof. As for devices (``area.area``), one resource at a time: a task costs, per second, the share of its node
    that it holds times the price of the node, and all nodes together cost one per second.
    """
    first = float(relaxation.forward.release.min())
    shares = _shares(relaxation)
    return first + max((_priced(relaxation, share)[0] for share in shares), default=0.0)


def packed_combined(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the best over resources of area between heads and tails, and of energy in intervals.

    Proof. As for devices (``interval.combined``), with the costs of one resource.
    """
    value = max(critical_path(relaxation), packed_area(relaxation))
    head, tail = least_heads(relaxation)
    shares = _shares(relaxation)
    n, num_columns = relaxation.duration.shape
    num_sides = min(40, n, int(math.sqrt(_MAX_INTERVAL_WORK / (24 * n * num_columns * max(1, len(shares))))))
    for share in shares:
        _, prices = _priced(relaxation, share)
        value = max(value, sweep(head, tail, kernels.task_costs(_work(relaxation, share), prices))[0])
        if num_sides >= 4:
            price = np.ascontiguousarray(share * prices)
            value = crowded(
                relaxation.duration, relaxation.head, relaxation.tail, price, value, num_sides, relaxation.grid
            )
    return value


def _shares(relaxation: Relaxation) -> list[Floats]:
    """Return, for each resource, the share of a node of each column that each task holds, [n, C].

    A device that runs one task at a time is held whole by any of them.
    """
    problem = relaxation.problem
    packing = problem.packing
    assert packing is not None, "only clusters with nodes come here"
    num_columns = len(relaxation.count)
    one_by_one = ~np.array(packing.packs)
    found = []
    for r, name in enumerate(packing.names):
        if name == SLOT:
            continue
        capacity = np.zeros(num_columns)
        np.maximum.at(capacity, relaxation.column, packing.capacity[:, r])
        share = packing.need[:, r : r + 1] / np.where(capacity > 0, capacity, np.inf)
        whole = np.ones(num_columns, dtype=bool)
        np.logical_and.at(whole, relaxation.column, one_by_one)
        share[:, whole] = 1.0
        found.append(np.minimum(share, 1.0))
    return found


def _work(relaxation: Relaxation, share: Floats) -> Floats:
    """Return seconds of a whole node that each task costs, [n, C]; inf where it cannot run."""
    runs = np.isfinite(relaxation.duration)
    return np.ascontiguousarray(np.where(runs, np.where(runs, relaxation.duration, 0.0) * share, np.inf))


def _priced(relaxation: Relaxation, share: Floats) -> tuple[float, Floats]:
    """Return the work on one resource at the best prices of columns, and these prices."""
    work = _work(relaxation, share)
    prices = best_prices(work, relaxation.count)
    return float(kernels.priced_area(work, prices, np.empty(len(prices)))), prices
