"""A server that runs for months: nothing that clients do adds up in its memory."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import httpx
import pytest
from own_loop import run_alone
from test_web_guard import workers
from web_serving import Server, serving

from stretto.core.host.memory_limit import machine_memory_bytes
from stretto.errors import InvalidInput
from stretto.web import views
from stretto.web.app import create_app
from stretto.web.guard import RequestGuard
from stretto.web.memory import NUM_THREADS, limit_threads
from stretto.web.metrics import Requests
from stretto.web.settings import ServeSettings
from stretto.web.views import Views

PLAN = {"workload": "random-dag", "workload_params": {"num_tasks": 20}, "cluster": "cpu:2", "policy": "heft"}
_HEAPS = """
import ctypes, sys, threading
from stretto.web.memory import limit_arenas

libc = ctypes.CDLL(None)
if not hasattr(libc, "malloc_info") or (sys.argv[2] == "limited" and not limit_arenas()):
    sys.exit("no glibc")
libc.fopen.restype = ctypes.c_void_p
barrier, kept = threading.Barrier(12), []

def allocate():
    barrier.wait()
    kept.extend(bytes(5000) for _ in range(50))
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
stream = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, stream)
libc.fclose(stream)
"""


def num_heaps(folder: Path, how: str) -> int:
    """Return in how many heaps twelve threads have allocated."""
    done = subprocess.run(
        [sys.executable, "-c", _HEAPS, str(folder / how), how], check=False, capture_output=True, text=True
    )
    if "no glibc" in done.stderr:
        pytest.skip("this C library has no heaps that could be counted")
    assert done.returncode == 0, done.stderr
    return len(re.findall(r"<heap nr=", (folder / how).read_text()))


def test_all_threads_allocate_from_one_heap(tmp_path: Path) -> None:
    assert num_heaps(tmp_path, "limited") == 1


def test_the_log_is_read_in_few_threads() -> None:
    found: set[str] = set()

    def read() -> None:
        found.add(threading.current_thread().name)
        time.sleep(0.01)

    async def many() -> None:
        limit_threads()
        await asyncio.gather(*(asyncio.to_thread(read) for _ in range(40)))
        assert len(found) <= NUM_THREADS
        found.clear()
        await asyncio.gather(*(anyio.to_thread.run_sync(read) for _ in range(40)))
        assert len(found) <= NUM_THREADS

    run_alone(many())


def test_methods_that_clients_make_up_are_counted_together() -> None:
    requests = Requests()
    for number in range(1000):
        requests.add(f"MADE-UP-{number}", "other", 405, 0.001)
    requests.add("GET", "/api/health", 200, 0.001)
    assert requests.count == {("other", "other", 405): 1000, ("GET", "/api/health", 200): 1}
    assert len(requests.seconds) == 2


def test_jobs_that_are_over_hold_no_answers(tmp_path: Path) -> None:
    app = create_app(ServeSettings(runs_path=tmp_path / "runs.db", num_workers=1))
    wrong = {**PLAN, "policy": "no-such"}

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=90.0) as client,
        ):
            replies = [await client.post("/api/plan", json=body) for body in (PLAN, wrong, {**wrong, "wait": False})]
        return [reply.status_code for reply in replies]

    assert run_alone(ask()) == [200, 422, 422]
    jobs = list(app.state.jobs.jobs.values())
    assert [job.state for job in jobs] == ["done", "failed", "failed"]
    assert [(job.task, job.body) for job in jobs] == [(None, {})] * 3


def test_views_are_few_and_not_large_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_BYTES", 1000)
    kept = Views()
    for number in range(100):
        kept.keep((f"run-{number}", 1, "done", 1.0), b"x" * 10)
    assert (len(kept), kept.num_bytes) == (views.MAX_VIEWS, 10 * views.MAX_VIEWS)
    kept.keep(("large", 1, "done", 1.0), b"x" * 950)
    assert (len(kept), kept.num_bytes) == (6, 1000)
    assert kept.get(("large", 1, "done", 1.0)) == b"x" * 950
    kept.keep(("too large", 1, "done", 1.0), b"x" * 1001)
    assert kept.get(("too large", 1, "done", 1.0)) is None
    kept.keep(("large", 1, "done", 1.0), b"x" * 950)  # made twice, for two who asked at once
    assert (len(kept), kept.num_bytes) == (6, 1000)


def test_work_that_needs_too_much_memory_is_refused_and_nothing_else_is(tmp_path: Path) -> None:
    with serving(tmp_path / "runs.db", num_workers=1, max_memory_bytes=512 * 2**20) as found, found.client() as client:
        huge = client.post("/api/plan", json={**PLAN, "cluster": "cpu:10000"})
        assert huge.status_code == 422  # before any of it is taken
        assert "10,000 devices need about" in huge.json()["error"]
        many = client.post("/api/plan", json={**PLAN, "workload_params": {"num_tasks": 2_000_000}})
        assert many.status_code == 413  # by the limit of the process
        for pid in [found.pid, *workers(found.pid)]:
            assert peak_bytes(pid) < 700 * 2**20
        assert client.post("/api/plan", json=PLAN).status_code == 200


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has held."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_the_workers_share_the_memory_of_the_machine() -> None:
    for num_workers in (1, 2, 4):
        settings = ServeSettings(num_workers=num_workers)
        assert (num_workers + 1) * settings.worker_bytes < machine_memory_bytes()
    with pytest.raises(InvalidInput, match="take fewer"):
        ServeSettings(num_workers=10_000)


def test_large_requests_are_few_at_a_time() -> None:
    """All bodies that are under way count together, whoever sent them."""
    guard = RequestGuard(never_answers, ServeSettings(max_body_bytes=1000), None)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/api/plan", "query_string": b"", "headers": headers}
    scope["client"] = ("127.0.0.1", 5)
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 900, "more_body": False}

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async def ask_three_times() -> None:
        tasks = [asyncio.create_task(guard(dict(scope), receive, send)) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert statuses == [429, 0]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        statuses.clear()
        last = asyncio.create_task(guard(dict(scope), receive, send))
        await asyncio.sleep(0.1)
        assert statuses == []  # there is room again
        last.cancel()

    run_alone(ask_three_times())


async def never_answers(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(1000.0)


def test_a_connection_outlives_the_pauses_of_clients(server: Server) -> None:
    place = urlsplit(server.url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=90.0)
    for pause_s in (0.0, 6.0):  # most clients let go of a connection themselves after 5 s
        time.sleep(pause_s)
        connection.request("GET", "/api/health")
        reply = connection.getresponse()
        assert (reply.status, reply.read()[:1]) == (200, b"{")
        connection.auto_open = 0  # from now on it must be the same one
    connection.close()
