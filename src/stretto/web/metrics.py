"""Figures of the server, and of what runs live beside it, for Prometheus."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import stretto
from stretto.runlog import RunLog
from stretto.web.jobs import JobTable
from stretto.web.metric_families import counter, gauge, histogram
from stretto.web.metrics_live import live_metrics

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
#: Kinds of runs that can be live; their counts are zero rather than absent, so that alerts can be set on them.
_LIVE_KINDS = ("run", "steer", "train")


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

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        uptime_s = time.monotonic() - self.requests.began_s
        yield gauge("stretto_info", "Version of Stretto.", ["version"], {stretto.__version__: 1})
        yield gauge("stretto_uptime_seconds", "Time since the server started.", [], {(): uptime_s})
        yield from self._requests()
        yield from self._jobs()
        runs = Counter(dict.fromkeys([(kind, "running") for kind in _LIVE_KINDS], 0)) | self.log.tally()
        yield gauge("stretto_runs", "Runs in the log.", ["kind", "status"], runs)
        yield from live_metrics(self.log, time.time())

    def _requests(self) -> Iterator[Metric]:
        names = ["method", "route", "status"]
        yield counter("stretto_http_requests", "Requests answered.", names, self.requests.count)
        yield counter("stretto_http_request_seconds", "Time spent on requests.", names[:2], self.requests.seconds)

    def _jobs(self) -> Iterator[Metric]:
        jobs = self.jobs
        yield counter("stretto_jobs", "Jobs of this server that have ended.", ["kind", "outcome"], jobs.ended)
        took = {kind: found.to_json() for kind, found in sorted(jobs.seconds.items())}
        about = "Time from request to end of jobs of this server."
        yield histogram("stretto_job_duration_seconds", about, ["kind"], took)
        yield gauge("stretto_jobs_waiting", "Jobs of this server without a worker.", [], {(): jobs.num_waiting})
        yield gauge("stretto_workers_busy", "Busy workers.", [], {(): jobs.pool.num_busy})
        yield gauge("stretto_workers", "Workers.", [], {(): jobs.pool.size})

    def exposition(self) -> bytes:
        """Return all figures in Prometheus's text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)
