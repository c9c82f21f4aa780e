"""Histograms that are counted while something runs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any


class BucketCounts:
    """How many values fell into each bucket, and their sum.

    Parameters
    ----------
    bounds
        Upper ends of the buckets, ascending; a value equal to a bound belongs below it. The last bucket has no end.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {"bounds": list(self.bounds), "counts": list(self.counts), "sum": self.sum}
