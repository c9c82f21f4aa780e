"""Jobs that nobody waits for are begun again by the next server, under their old names, and not for ever."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx

from stretto.runlog.writer import this_process
from stretto.web.kept_jobs import KeptJob, KeptJobs
from web.web_serving import serving

_SEARCH: dict[str, Any] = {
    "workload": "random-dag",
    "workload_params": {"num_tasks": 60},
    "cluster": "cpu:3",
    "policy": "annealing",
}
_SEARCH |= {"time_limit_s": 2.0, "wait": False}


def outcome(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """Return a job once it is over."""
    deadline = time.monotonic() + 600.0
    while True:
        reply = client.get(f"/api/jobs/{job_id}")
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        if found["state"] not in ("waiting", "running"):
            return found
        assert time.monotonic() < deadline, "the job does not end"
        time.sleep(0.1)


def test_a_job_outlives_its_server(tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        job = client.post("/api/plan", json=_SEARCH).json()
        os.kill(server.pid, signal.SIGKILL)
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        found = outcome(client, job["id"])
        assert found["state"] == "done"
        assert found["run_id"] != job["run_id"]
        assert client.get(f"/api/runs/{found['run_id']}").json()["status"] == "done"
        assert client.get(f"/api/runs/{job['run_id']}").json()["status"] == "interrupted"
    assert list((tmp_path / "runs.db-jobs").iterdir()) == []


def test_a_job_that_was_cancelled_or_has_ended_is_not_begun_again(tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        cancelled = client.post("/api/plan", json=_SEARCH).json()
        client.delete(f"/api/jobs/{cancelled['id']}")
        ended = client.post("/api/plan", json={**_SEARCH, "time_limit_s": 0.1}).json()
        outcome(client, ended["id"])
        os.kill(server.pid, signal.SIGKILL)
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        assert client.get("/api/jobs").json() == {"jobs": []}


def leave(folder: Path, job: KeptJob, owner: Any) -> None:
    """Leave a job behind as a server does that is gone."""
    KeptJobs(folder).keep(job)
    path = folder / f"{job.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "owner": owner}))


def test_a_job_that_ends_every_server_is_given_up(tmp_path: Path) -> None:
    body = {key: value for key, value in _SEARCH.items() if key != "wait"}
    leave(tmp_path / "runs.db-jobs", KeptJob("0123456789ab", "plan", body, 3), _dead_owner())
    with serving(tmp_path / "runs.db", num_workers=1) as server, server.client() as client:
        found = outcome(client, "0123456789ab")
        assert found["state"] == "failed"
        assert "interrupted 3 times" in found["error"]
    assert list((tmp_path / "runs.db-jobs").iterdir()) == []


def _dead_owner() -> list[Any]:
    """Return this process as it would be known had it begun at another time."""
    host, pid, _ = this_process()
    return [host, pid, "never"]


def test_jobs_of_a_server_that_lives_are_its_own(tmp_path: Path) -> None:
    kept = KeptJobs(tmp_path / "jobs")
    kept.keep(KeptJob("aaaaaaaaaaaa", "plan", {}, 1))
    leave(tmp_path / "jobs", KeptJob("bbbbbbbbbbbb", "replay", {"x": 1}, 2), _dead_owner())
    (tmp_path / "jobs" / "cccccccccccc.json").write_text("{]")
    (tmp_path / "jobs" / "dddddddddddd.json").write_text('{"owner": []}')
    assert list(kept.orphans()) == [KeptJob("bbbbbbbbbbbb", "replay", {"x": 1}, 2)]
    assert sorted(path.name for path in kept.folder.iterdir()) == ["aaaaaaaaaaaa.json", "bbbbbbbbbbbb.json"]
