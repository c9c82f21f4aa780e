"""Figures of the server for Prometheus."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

import stretto
from stretto.runlog import RunLog
from stretto.web.jobs import JobTable

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)
Labels = TypeVar("Labels", bound=str | tuple[object, ...])


class Requests:
    """Counts answers by route and status."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.count: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; methods that clients invent are counted together, so that they cannot fill the memory."""
        method = method if method in _METHODS else "other"
        self.count[method, route, status] += 1
        self.seconds[method, route] += seconds


class ServerMetrics(Collector):
    """Reads the figures when Prometheus asks for them; a registry of its own leaves out those of the process."""

    def __init__(self, requests: Requests, jobs: JobTable, log: RunLog) -> None:
        self.requests, self.jobs, self.log = requests, jobs, log

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield every metric."""
        yield _filled(
            GaugeMetricFamily("stretto_info", "Version of Stretto.", labels=["version"]), {stretto.__version__: 1}
        )
        uptime_s = time.monotonic() - self.requests.began_s
        yield GaugeMetricFamily("stretto_uptime_seconds", "Time since the server started.", uptime_s)
        names = ["method", "route", "status"]
        yield _filled(
            CounterMetricFamily("stretto_http_requests", "Requests answered.", labels=names), self.requests.count
        )
        seconds = CounterMetricFamily("stretto_http_request_seconds", "Time spent on requests.", labels=names[:2])
        yield _filled(seconds, self.requests.seconds)
        ended = CounterMetricFamily("stretto_jobs", "Jobs that have ended.", labels=["kind", "outcome"])
        yield _filled(ended, self.jobs.ended)
        took = CounterMetricFamily("stretto_job_seconds", "Time from request to end of jobs.", labels=["kind"])
        yield _filled(took, self.jobs.seconds)
        yield GaugeMetricFamily("stretto_jobs_waiting", "Jobs without a worker.", self.jobs.num_waiting)
        yield GaugeMetricFamily("stretto_workers_busy", "Busy workers.", self.jobs.pool.num_busy)
        yield GaugeMetricFamily("stretto_workers", "Workers.", self.jobs.pool.size)
        runs = GaugeMetricFamily("stretto_runs", "Runs in the log.", labels=["kind", "status"])
        yield _filled(runs, self.log.tally())

    def exposition(self) -> bytes:
        """Return all figures in Prometheus's text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


def _filled(family: Family, samples: Mapping[Labels, float]) -> Family:
    # sorted() copies in one step: requests come and go while a thread counts.
    for labels, value in sorted(samples.items(), key=lambda one: str(one[0])):
        family.add_metric([labels] if isinstance(labels, str) else [str(label) for label in labels], value)
    return family
