"""Quantities that change in steps over time, and their mean and maximum in bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats


@dataclass(frozen=True, eq=False)
class Changes:
    """The value after each change; before the first it is zero."""

    time_s: Floats  # [C] ascending
    value: Floats  # [C]


@dataclass(frozen=True, eq=False)
class StepCurve:
    """What bins of equal length hold of a quantity."""

    edge_s: Floats  # [B+1]
    mean: Floats  # [B]
    most: Floats  # [B]


def changes(begin_s: Floats, end_s: Floats, amount: Floats) -> Changes:
    """Return the sum of amounts that are there from a begin to an end each."""
    times, index = np.unique(np.concatenate([begin_s, end_s]), return_inverse=True)
    steps = np.bincount(index, weights=np.concatenate([amount, -amount]), minlength=len(times))
    return Changes(times, np.cumsum(steps))


def binned(curve: Changes, end_s: float, num_bins: int) -> StepCurve:
    """Return means and maxima between zero and an end."""
    edges = np.linspace(0.0, max(end_s, np.finfo(np.float64).tiny), num_bins + 1)
    # The integral up to each edge: whole steps before it, and a part of the one it cuts.
    area = np.concatenate([[0.0], np.cumsum(curve.value[:-1] * np.diff(curve.time_s))])
    step = np.searchsorted(curve.time_s, edges, side="right") - 1
    inside = np.maximum(step, 0)
    upto = np.where(step >= 0, area[inside] + curve.value[inside] * (edges - curve.time_s[inside]), 0.0)
    at_edge = np.where(step >= 0, curve.value[inside], 0.0)
    most = at_edge[:-1].copy()
    place = np.clip(np.searchsorted(edges, curve.time_s, side="right") - 1, 0, num_bins - 1)
    np.maximum.at(most, place, curve.value)
    return StepCurve(edges, np.diff(upto) / np.diff(edges), most)
