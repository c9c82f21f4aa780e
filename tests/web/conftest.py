"""A real server in a process of its own, a log with recorded runs, and a browser where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_runs import fill
from web_serving import Server, serving

from stretto import workloads
from stretto.api import plan
from stretto.core.pool import Pool
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.workloads.lublin import lublin
from stretto.reports.record import Rows, record_plan, recording
from stretto.reports.replay import record_replay
from stretto.runlog import RunLog

CLUSTER = "cpu:6x1.0,gpu:2x5.0"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A log with a small plan, one of 10,000 tasks, a replay and a training; and their ids by name."""
    path = tmp_path_factory.mktemp("runs") / "runs.db"
    ids: dict[str, str] = {}
    with RunLog.open(path) as log:
        for name, num_tasks in (("small", 40), ("large", 10_000)):
            graph = workloads.random_dag(num_tasks=num_tasks, seed=1)
            settings = {"policy": "heft", "cluster": CLUSTER, "command": f"stretto plan {name}"}
            with recording(log, "plan", name, settings) as run:
                record_plan(run, plan(graph, CLUSTER))
            ids[name] = run.id
        trace = lublin(800, seed=1, num_procs=64)
        with recording(log, "replay", "queue", {"strategy": "mars", "procs": 64}) as run:
            rules = {"backfill": "easy", "estimates": "user", "pool_rule": "cheapest", "kill": False, "tie": "batch"}
            record_replay(run, evaluate_replay(trace, 64, timed=False, run=run, strategy="mars", **rules))
        ids["queue"] = run.id
        cloud = Pool("cloud", 8, 8, speed=2.0, price_usd_per_hour=0.4, min_nodes=0, idle_shutdown_s=300.0)
        pools = (Pool("own", 4, 16), cloud)
        with recording(log, "replay", "pools", {"strategy": "fcfs", "procs": None}) as run:
            record_replay(run, evaluate_replay(trace, pools, timed=False, strategy="fcfs", **rules))
        ids["pools"] = run.id
        with recording(log, "train", "lesson", {"algorithm": "doppler"}) as run:
            with Rows(run, "row") as rows:
                for step in range(50):
                    rows.add(
                        episode=8 * step, seconds=0.1 * step, best_s=3 - step / 50, mean_s=4 - step / 50, stage="a"
                    )
            run.finish("done", {"makespan_s": 2.02, "opponents": {"heft": 2.5}})
        ids["lesson"] = run.id
    return path, ids


@pytest.fixture(scope="session")
def ids(recorded: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return recorded[1]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A log with every kind of run and state, one of 10,000 tasks among them; and their ids by name."""
    path = tmp_path_factory.mktemp("samples") / "full" / "runs.db"
    return path, fill(path)


@pytest.fixture(scope="session")
def server(recorded: tuple[Path, dict[str, str]]) -> Iterator[Server]:
    """A server with the recorded runs, without a limit of requests."""
    with serving(recorded[0], num_workers=1, rate_per_s=1e6, burst=1_000_000, max_job_s=60) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: make chromium")
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
        opened = driver.chromium.launch(executable_path=chromium, args=options)
        yield opened
        opened.close()
