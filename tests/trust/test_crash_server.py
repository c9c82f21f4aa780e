"""A server that is killed at random moments: what it said was done is there, and nothing it took on has vanished."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from web.web_serving import Server, serving

_LONG = {"workload": "random-dag", "workload_params": {"num_tasks": 300}, "cluster": "cpu:4", "policy": "annealing"}
_LONG["time_limit_s"] = 5.0  # one that is begun again after a kill is waited for
_KILL_WITHIN_S = 1.0


def short(seed: int) -> dict[str, Any]:
    return {"workload": "random-dag", "workload_params": {"num_tasks": 20, "seed": seed}, "cluster": "cpu:2"}


class Promises:
    """What servers have said to their clients, over all their lives."""

    def __init__(self) -> None:
        self.done: dict[str, float] = {}  # makespans, by run
        self.taken: set[str] = set()  # runs that were begun for a client that did not wait
        self.num_asked = 0

    def collect(self, client: httpx.Client) -> None:
        """Ask for one thing after the other until the server is gone."""
        try:
            while True:
                self.ask(client)
                self.take_on(client)
        except httpx.TransportError:
            return

    def ask(self, client: httpx.Client) -> None:
        """Have a plan made and wait for it."""
        self.num_asked += 1
        found = client.post("/api/plan", json=short(self.num_asked)).json()
        self.done[found["run_id"]] = found["makespan_s"]

    def take_on(self, client: httpx.Client) -> None:
        """Have a long search begun, and end it a moment later."""
        self.num_asked += 1
        job = client.post("/api/plan", json={**_LONG, "wait": False}).json()
        self.taken.add(job["run_id"])
        client.delete(f"/api/jobs/{job['id']}")

    def check(self, client: httpx.Client) -> None:
        """Find all of it on the server that came after."""
        status = settled(client)
        assert {status[run] for run in self.done} <= {"done"}
        for run, makespan_s in list(self.done.items())[-3:]:
            assert client.get(f"/api/runs/{run}").json()["summary"]["makespan_s"] == makespan_s
        assert {status[run] for run in self.taken} <= {"interrupted", "failed"}


def settled(client: httpx.Client) -> dict[str, str]:
    """Return the status of all runs once none is called running: workers of a dead server end by themselves."""
    deadline = time.monotonic() + 600.0
    while True:
        runs = client.get("/api/runs", params={"limit": 1000}).json()["runs"]
        status = {run["id"]: run["status"] for run in runs}
        assert len(status) == len(runs)
        if "running" not in status.values():
            return status
        assert time.monotonic() < deadline, "a run whose server is dead is called running"
        time.sleep(0.1)


@pytest.mark.parametrize("num_kills", [3, pytest.param(100, marks=pytest.mark.long)])
def test_what_was_answered_survives(tmp_path: Path, num_kills: int) -> None:
    rng = random.Random(num_kills)
    promises = Promises()
    for _ in range(num_kills):
        with serving(tmp_path / "runs.db", num_workers=1, rate_per_s=1e6, burst=1_000_000) as server:
            with server.client() as client:
                promises.check(client)
                if rng.randrange(4):  # otherwise it dies while its worker wakes up
                    promises.ask(client)
                killer = threading.Timer(rng.uniform(0.0, _KILL_WITHIN_S), kill, [server])
                killer.start()
                promises.collect(client)
            killer.join()
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        promises.check(client)
    assert promises.num_asked >= num_kills
    print(f"{num_kills} kills: {len(promises.done)} answers and {len(promises.taken)} cancelled jobs kept")


def kill(server: Server) -> None:
    os.kill(server.pid, signal.SIGKILL)
