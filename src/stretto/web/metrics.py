"""Figures of the server in the text format that Prometheus reads."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable

import stretto
from stretto.runlog import RunLog
from stretto.web.jobs import JobTable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Requests:
    """Counts answers by route and status."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.count: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; methods that clients make up are counted together, for there is no end of them."""
        method = method if method in _METHODS else "other"
        self.count[method, route, status] += 1
        self.seconds[method, route] += seconds


def exposition(requests: Requests, jobs: JobTable, log: RunLog) -> str:
    """Return all figures."""
    runs = log.tally()
    parts = [
        _metric("stretto_info", "gauge", "Which Stretto this is.", [({"version": stretto.__version__}, 1)]),
        _metric("stretto_uptime_seconds", "gauge", "Since the start.", [({}, time.monotonic() - requests.began_s)]),
        _metric(
            "stretto_http_requests_total",
            "counter",
            "Requests answered.",
            (
                ({"method": method, "route": route, "status": str(status)}, count)
                for (method, route, status), count in sorted(requests.count.items())
            ),
        ),
        _metric(
            "stretto_http_request_seconds_total",
            "counter",
            "Time spent on requests.",
            (
                ({"method": method, "route": route}, value)
                for (method, route), value in sorted(requests.seconds.items())
            ),
        ),
        _metric(
            "stretto_jobs_total",
            "counter",
            "Jobs that have ended.",
            (({"kind": kind, "outcome": outcome}, count) for (kind, outcome), count in sorted(jobs.ended.items())),
        ),
        _metric(
            "stretto_job_seconds_total",
            "counter",
            "Time from request to end of jobs.",
            (({"kind": kind}, value) for kind, value in sorted(jobs.seconds.items())),
        ),
        _metric("stretto_jobs_waiting", "gauge", "Jobs without a worker.", [({}, jobs.num_waiting)]),
        _metric("stretto_workers_busy", "gauge", "Workers at work.", [({}, jobs.pool.num_busy)]),
        _metric("stretto_workers", "gauge", "Workers in all.", [({}, jobs.pool.size)]),
        _metric(
            "stretto_runs",
            "gauge",
            "Runs in the log.",
            (({"kind": kind, "status": status}, count) for (kind, status), count in sorted(runs.items())),
        ),
    ]
    return "\n".join(parts) + "\n"


def _metric(name: str, kind: str, meaning: str, samples: Iterable[tuple[dict[str, str], float]]) -> str:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value:.17g}" if inside else f"{name} {value:.17g}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
