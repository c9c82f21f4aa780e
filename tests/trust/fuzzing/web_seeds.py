"""Requests that are right, for the routes of the API: where damage begins."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from files import format_samples as samples
from files.traces import trace_samples
from stretto import workloads
from stretto.api import plan
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.workloads.lublin import lublin
from stretto.reports.record import record_plan, recording
from stretto.reports.replay import record_replay
from stretto.runlog import RunLog

_RULES = {"backfill": "easy", "estimates": "user", "pool_rule": "cheapest", "kill": False, "tie": "batch"}


def record(path: Path) -> list[str]:
    """Write a small plan, a replay and a run without an end into a log, and return their ids."""
    with RunLog.open(path) as log:
        with recording(log, "plan", "small", {"policy": "heft", "cluster": "cpu:2"}) as planned:
            record_plan(planned, plan(workloads.random_dag(num_tasks=12, seed=1), "cpu:2,gpu:1"))
        with recording(log, "replay", "queue", {"strategy": "sjf", "procs": 64}) as replayed:
            record_replay(replayed, evaluate_replay(lublin(40, seed=1), 256, timed=False, strategy="sjf", **_RULES))
        lesson = log.start("train", "lesson", {})
        lesson.record("row", best_s=1.0)
        return [planned.id, replayed.id, lesson.id]


def bodies(route: str) -> list[dict[str, Any]]:
    """Return bodies of a route that starts work; all of it is done in a moment."""
    made = {
        "workload": "random-dag",
        "workload_params": {"num_tasks": 9, "seed": 1},
        "cluster": "cpu:2,gpu:1x2.5@1GB/s",
    }
    if route.endswith("/plan"):
        wfformat = samples.wfformat()
        given = [samples.STG.decode(), samples.DOT.decode(), samples.DAX.decode(), wfformat, json.dumps(wfformat)]
        return [
            {**made, "policy": "heft", "seed": 3, "name": "a plan", "contention": "fair"},
            {**made, "policy": "annealing", "policy_params": {"max_evaluations": 20}, "time_limit_s": 0.2},
            {**made, "cluster": samples.CLUSTER.decode(), "discipline": "sequence", "wait": False},
            *({"graph": graph, "cluster": "cpu:2", "policy": "heft"} for graph in given),
            {"graph": base64.b64encode(samples.STG).decode(), "encoding": "base64", "cluster": "cpu:2"},
        ]
    if route.endswith("/replay"):
        lublin_small = {"generator": "lublin", "generator_params": {"num_jobs": 20, "num_procs": 32, "seed": 1}}
        return [
            {**lublin_small, "strategy": "saf", "backfill": "conservative", "kill": True},
            {**lublin_small, "procs": 64, "estimates": "user", "wait": False},
            {**lublin_small, "pools": "own:2x16,cloud:4x8@2.5", "pool_rule": "cheapest"},
            *({"trace": text, "procs": 64} for text in (trace_samples.SWF, trace_samples.SACCT)),
            {"trace": base64.b64encode(trace_samples.SWF.encode()).decode(), "encoding": "base64", "procs": 8},
        ]
    if route.endswith("/when"):
        small = {"generator": "lublin", "generator_params": {"num_jobs": 20, "num_procs": 32, "seed": 1}, "learn": 5}
        return [
            {**small, "job": "row:15", "change": "limit=2h,procs=16", "at": "36h"},
            {**small, "all": True, "at": 600.0, "backfill": "promise", "slack": "24h+4e+1wait", "coverage": 0.8},
            {"trace": trace_samples.SWF, "procs": 64, "strategy": "sjf", "learn": 0},
        ]
    return [
        {"policy": "cpop", "cluster": "cpu:3", "seed": 1},
        {"strategy": "sjf", "backfill": "none", "pools": "own:64x1", "pool_rule": "cheapest"},
        {"policy_params": {}, "time_limit_s": 0.2, "wait": False},
    ]


#: Headers that mean something to the server, with right and wrong values.
HEADERS: Mapping[str, tuple[str, ...]] = {
    "host": ("localhost", "127.0.0.1:80", "evil.example", "[::1]", "", "a" * 300),
    "content-type": ("application/json", "application/json; charset=utf-8", "text/plain", "multipart/form-data", ""),
    "content-length": ("0", "99999999999999999999", "-1", "x"),
    "origin": ("http://localhost", "null", "http://evil.example", "\xff"),
    "sec-fetch-site": ("same-origin", "cross-site", "none"),
    "authorization": ("Bearer " + "x" * 20, "Bearer", "Basic eDp5", "bearer \xe9"),
    "cookie": ("stretto_session=1", "=;=;", 'stretto_session="', "a" * 5000),
    "accept-encoding": ("gzip", "identity", "gzip;q=0", "*"),
    "last-event-id": ("1", "-1", "9" * 30, "\xb2"),
    "range": ("bytes=0-1",),
    "transfer-encoding": ("chunked",),
}
QUERIES = (
    b"",
    b"limit=3",
    b"kind=plan&status=done",
    b"after=0&limit=2&kind=task",
    b"limit=1000",
    b"next=/",
    b"after=5",
)
