"""Who may come in, and how much they may ask for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers
from web_serving import serving

from processes import is_running
from stretto.errors import InvalidInput
from stretto.web.guard import COOKIE, Rates, Tokens
from stretto.web.settings import ServeSettings

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with a token and tight limits."""
    runs = tmp_path_factory.mktemp("locked") / "runs.db"
    with serving(runs, token=TOKEN, num_workers=1, max_body_bytes=2000, rate_per_s=1000.0, burst=1000) as found:
        yield found


def test_hosts_that_others_reach_need_a_token() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        ServeSettings(host=host)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InvalidInput, match="token"):
            ServeSettings(host=host)
        ServeSettings(host=host, token=TOKEN)
    with pytest.raises(InvalidInput, match="guess"):
        ServeSettings(token="short")


def test_a_bucket_empties_and_fills_again() -> None:
    rates = Rates(per_s=2.0, burst=3)
    assert [rates.wait_s("a", 0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rates.wait_s("b", 0.0) == 0.0
    assert rates.wait_s("a", 0.5) == 0.0
    assert rates.wait_s("a", 0.5) > 0.0


def test_tokens_are_taken_from_the_header_or_the_cookie() -> None:
    tokens = Tokens(TOKEN)
    assert tokens.admits(Headers({"authorization": f"Bearer {TOKEN}"}))
    assert tokens.admits(Headers({"cookie": f"{COOKIE}={tokens.session}"}))
    for wrong in ({}, {"authorization": "Bearer no"}, {"authorization": TOKEN}, {"cookie": f"{COOKIE}={TOKEN}"}):
        assert not tokens.admits(Headers(wrong))
    assert TOKEN not in tokens.session


def test_nothing_is_told_without_the_token(locked: Any) -> None:
    with locked.client() as client:
        for path in ("/api/runs", "/metrics", "/openapi.json", "/api/stream"):
            reply = client.get(path)
            assert reply.status_code == 401
            assert reply.json()["field"] == "Authorization"
        assert client.get("/").headers["location"] == "/login?next=%2F"
        assert client.get("/api/health").status_code == 200
        assert client.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/runs", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_browser_logs_in_and_is_not_led_away(locked: Any) -> None:
    with locked.client() as client:
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
        reply = client.post("/login?next=//elsewhere.example", data={"token": TOKEN})
        assert reply.status_code == 303
        assert reply.headers["location"] == "/"
        assert "HttpOnly" in reply.headers["set-cookie"]
        assert "SameSite=strict" in reply.headers["set-cookie"]
        assert client.get("/api/runs").status_code == 200  # by the cookie


def test_requests_of_other_sites_are_refused(server: Any) -> None:
    body = {"workload": "fft", "cluster": "cpu:1"}
    with server.client() as client:
        assert client.get("/api/runs", headers={"Host": "evil.example"}).status_code == 403
        assert client.post("/api/plan", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.post("/api/plan", json=body, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        plain = client.post("/api/plan", content=b'{"workload":"fft"}', headers={"Content-Type": "text/plain"})
        assert plain.status_code == 415
        assert (
            "access-control-allow-origin" not in client.get("/api/runs", headers={"Origin": "http://x.example"}).headers
        )


def test_every_answer_has_the_headers_that_protect_pages(server: Any) -> None:
    with server.client() as client:
        for path in ("/", "/api/runs", "/no-such-page", "/static/run.js"):
            headers = client.get(path).headers
            assert "script-src 'self'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"


def test_bodies_are_limited_with_and_without_their_length(locked: Any) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with locked.client(headers=headers) as client:
        assert client.post("/api/plan", content=b"x" * 3000).status_code == 413
        assert client.post("/api/plan", content=iter([b"x" * 1500] * 4)).status_code == 413


def test_only_files_of_the_dashboard_are_served(server: Any) -> None:
    with server.client() as client:
        assert client.get("/static/page.css").status_code == 200
        for name in ("app.py", "..%2Fapp.py", "%2e%2e/settings.py", "/etc/passwd"):
            assert client.get(f"/static/{name}").status_code == 404


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db", num_workers=1, rate_per_s=0.01, burst=5) as found, found.client() as client:
        replies = [client.get("/api/health") for _ in range(7)]
    assert [reply.status_code for reply in replies] == [200] * 5 + [429] * 2
    assert int(replies[-1].headers["retry-after"]) >= 1
    assert isinstance(replies[-1], httpx.Response)


def workers(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(entry.name))
    return found


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    body = {"graph": "digraph g { a -> b }", "cluster": "cpu:1"}
    with serving(tmp_path / "runs.db", num_workers=1) as found, found.client() as client:
        assert client.post("/api/plan", json=body).status_code == 200
        for pid in workers(found.pid):
            os.kill(pid, signal.SIGKILL)
        replies = [client.post("/api/plan", json=body).status_code for _ in range(3)]
        assert replies[1:] == [200, 200]
        assert replies[0] in (200, 422)  # whether its death was noticed in time
        assert client.get(f"/api/runs/{client.get('/api/runs').json()['runs'][0]['id']}/view").status_code in (200, 422)


def test_no_worker_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db", num_workers=1) as found:
        with found.client() as client:
            client.post("/api/plan", json={"graph": "digraph g { a -> b }", "cluster": "cpu:1"})
        started = workers(found.pid)
        assert len(started) == 2
        os.kill(found.pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while any(is_running(pid) for pid in started):
            assert time.monotonic() < end, "a worker is still there"
            time.sleep(0.1)


def test_a_job_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    body = {"workload": "random-dag", "workload_params": {"num_tasks": 300}, "cluster": "cpu:4", "policy": "annealing"}
    with serving(tmp_path / "runs.db", num_workers=1, max_job_s=2.0) as found, found.client() as client:
        client.post("/api/plan", json={"graph": "digraph g { a -> b }", "cluster": "cpu:1"})  # the worker is awake
        reply = client.post("/api/plan", json=body)  # a search of its own length, some thirty seconds
        assert reply.status_code == 408
        assert "limit of 2 s" in reply.json()["error"]


def test_the_command_serves_and_stops_when_interrupted(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "stretto.cli.main", "serve", "--port", "0", "--workers", "1", "--runs"]
    process = subprocess.Popen([*words, str(tmp_path / "runs.db")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    url = line.split()[3]
    assert httpx.get(f"{url}/api/health", timeout=90).json()["status"] == "ok"
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == 0
