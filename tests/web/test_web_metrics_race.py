"""Metrics are counted in a thread while requests come and go; a load of 100 clients once made that an error 500."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
from stretto.web.jobs import JobTable, ServerJob
from stretto.web.kept_jobs import KeptJobs
from stretto.web.pool import WorkerPool
from stretto.web.settings import ServeSettings


def test_jobs_are_counted_while_they_come_and_go(tmp_path: Path) -> None:
    table = JobTable(ServeSettings(), WorkerPool(1, str(tmp_path / "runs.db"), 1 << 30), KeptJobs(tmp_path))
    for number in range(200):
        table.jobs[f"kept {number}"] = ServerJob(str(number), "plan", {}, 1.0)
    is_over = threading.Event()

    def come_and_go() -> None:
        number = 0
        while not is_over.is_set():
            table.jobs[f"{number}"] = ServerJob(str(number), "plan", {}, 1.0)
            table.jobs.pop(f"{number - 20}", None)
            number += 1

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert all(table.num_waiting >= 200 for _ in range(3000))
    finally:
        is_over.set()
        thread.join()
