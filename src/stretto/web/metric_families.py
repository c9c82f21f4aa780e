"""Metrics of Prometheus from plain mappings: labels to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from stretto.runlog.record import Json

Labels = TypeVar("Labels", bound=str | tuple[object, ...])


def counter(name: str, about: str, labels: Sequence[str], values: Mapping[Labels, float]) -> CounterMetricFamily:
    """Return a counter; the text format adds ``_total`` to its name."""
    family = CounterMetricFamily(name, about, labels=labels)
    for key, value in _ordered(values):
        family.add_metric(key, value)
    return family


def gauge(name: str, about: str, labels: Sequence[str], values: Mapping[Labels, float]) -> GaugeMetricFamily:
    """Return a gauge."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in _ordered(values):
        family.add_metric(key, value)
    return family


def histogram(name: str, about: str, labels: Sequence[str], values: Mapping[Labels, Json]) -> HistogramMetricFamily:
    """Return a histogram of what :class:`stretto.runlog.bucket_counts.BucketCounts` counted, as its JSON values."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, found in _ordered(values):
        bounds = [*(f"{bound:g}" for bound in found["bounds"]), "+Inf"]
        family.add_metric(key, list(zip(bounds, accumulate(found["counts"]), strict=True)), found["sum"])
    return family


def _ordered(values: Mapping[Labels, Json]) -> list[tuple[list[str], Json]]:
    # sorted() copies in one step: requests come and go while a thread counts.
    found = sorted(values.items(), key=lambda one: str(one[0]))
    return [([key] if isinstance(key, str) else [str(label) for label in key], value) for key, value in found]
