"""Bounds of projects (RCPSP): tasks that share renewable resources."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.graphs.bounds.interval import crowded, sweep
from stretto.graphs.bounds.relaxation import Relaxation, critical_path

_MAX_INTERVAL_WORK = 4e8


def project_area(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the work on the busiest resource over its capacity.

    Proof. In a schedule of length T a resource gives at most capacity times T unit-seconds,
    and the tasks take the sum of demand times duration.
    """
    work = relaxation.duration[:, 0] @ _rates(relaxation)
    return float(work.max(initial=0.0))


def project_combined(relaxation: Relaxation, time_limit_s: float | None = None) -> float:
    """Return the best over resources of area between heads and tails, and of energy in intervals.

    Proof. As for devices, one resource at a time: its capacity is the only price.
    """
    rates = _rates(relaxation)
    duration, head, tail = relaxation.duration, relaxation.head, relaxation.tail
    value = max(critical_path(relaxation), project_area(relaxation))
    num_sides = min(40, len(duration), int(math.sqrt(_MAX_INTERVAL_WORK / (24 * duration.size * rates.shape[1] + 1))))
    for resource in range(rates.shape[1]):
        uses = rates[:, resource] > 0
        if not uses.any():
            continue
        rate = rates[uses, resource]
        value = max(value, sweep(head[uses, 0], tail[uses, 0], rate * duration[uses, 0])[0])
        if num_sides >= 4:
            value = crowded(duration[uses], head[uses], tail[uses], rate[:, None], value, num_sides, relaxation.grid)
    return value


def _rates(relaxation: Relaxation) -> Floats:
    """Return the share of each resource that each task holds while it runs, [n, R]."""
    resources = relaxation.problem.graph.resources
    assert resources is not None, "only projects come here"
    capacity = np.maximum(resources.capacity, 1)
    share: Floats = resources.demand / capacity
    return share
