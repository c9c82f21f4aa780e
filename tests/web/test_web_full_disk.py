"""A full disk under the server: errors in JSON that say so, without paths; and all is well when there is room again."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

from test_web_guard import workers
from web_serving import serving

PLAN: dict[str, Any] = {"graph": "digraph g { a -> b }", "cluster": "cpu:1"}


def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    runs = tmp_path / "inner-folder" / "runs.db"
    with serving(runs, num_workers=1) as found, found.client() as client:
        assert client.post("/api/plan", json=PLAN).status_code == 200
        processes = [found.pid, *workers(found.pid)]
        for pid in processes:  # a file that may not grow is to a program what a full disk is
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        replies = [client.post("/api/plan", json={**PLAN, "wait": wait}) for wait in (True, False, True)]
        replies.append(client.post("/api/plan", json={**PLAN, "policy": "annealing"}))
        for reply in replies:
            assert reply.status_code == 507, reply.text
            assert reply.headers["content-type"] == "application/json"
            assert "disk of the server is full" in reply.json()["error"]
            assert "inner-folder" not in reply.text
        assert len(client.get("/api/runs").json()["runs"]) == 1
        for pid in processes:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert client.post("/api/plan", json={**PLAN, "wait": False}).status_code == 202
        assert client.post("/api/plan", json=PLAN).status_code == 200
