"""A server and its clients."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from soak_answers import Answers
from soak_memory import NUM_SAMPLES, Watch

from web.web_serving import serving


async def _client(url: str, number: int, until_s: float, pause_s: float, answers: Answers, runs: list[str]) -> None:
    rng = random.Random(number)
    async with httpx.AsyncClient(base_url=url, timeout=300.0) as client:
        await asyncio.sleep(rng.uniform(0.0, pause_s))  # clients do not come all at once
        while time.monotonic() < until_s:
            what, began_s = rng.choice(_REQUESTS), time.monotonic()
            try:
                outcome = str((await what(client, rng, runs)).status_code)
            except httpx.TransportError as error:
                outcome = type(error).__name__
            answers.add(what.__name__, outcome, time.monotonic() - began_s)
            # At the end nobody sleeps on: a load of an hour takes an hour.
            await asyncio.sleep(min(rng.uniform(0.0, 2.0 * pause_s), max(0.0, until_s - time.monotonic())))


async def plan(client: Any, rng: random.Random, runs: list[str]) -> Any:
    params = {"num_tasks": rng.randrange(5, 40), "seed": rng.randrange(1000)}
    body = {"workload": "random-dag", "workload_params": params, "cluster": "cpu:2,gpu:1", "policy": "heft"}
    reply = await client.post("/api/plan", json=body)
    if reply.status_code == 200:
        runs.append(reply.json()["run_id"])
        del runs[:-50]
    return reply


async def wrong(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.post("/api/plan", json={"workload": "no-such", "x": "y" * rng.randrange(5000)})


async def list_runs(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.get("/api/runs", params={"limit": rng.randrange(1, 50)})


async def one_run(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.get(f"/api/runs/{rng.choice(runs) if runs else 'none'}")


async def health(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.get("/api/health")


async def metrics(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.get("/metrics")


async def view(client: Any, rng: random.Random, runs: list[str]) -> Any:
    return await client.get(f"/api/runs/{rng.choice(runs) if runs else 'none'}/view")


async def follow(client: Any, rng: random.Random, runs: list[str]) -> Any:
    """Listen to a run until its end, or to the list of runs until the first news."""
    path = f"/api/runs/{rng.choice(runs)}/stream" if runs and rng.randrange(2) else "/api/stream"
    async with client.stream("GET", path) as reply:
        async for line in reply.aiter_lines():
            if line.startswith("event:") and path == "/api/stream":
                break
    return reply


async def change_of_mind(client: Any, rng: random.Random, runs: list[str]) -> Any:
    """Have a long search begun, and end it."""
    params = {"num_tasks": 100, "seed": rng.randrange(1000)}
    body = {"workload": "random-dag", "workload_params": params, "cluster": "cpu:4", "policy": "annealing"}
    reply = await client.post("/api/plan", json={**body, "time_limit_s": 20.0, "wait": False})
    if reply.status_code == 202:
        reply = await client.delete(f"/api/jobs/{reply.json()['id']}")
    return reply


#: Most are quick; a cancelled search costs a worker, and a new one takes a second of a core.
_REQUESTS = (plan, wrong, list_runs, one_run, health, metrics) * 5 + (view, view, follow, follow, change_of_mind)


async def load(url: str, pid: int, seconds: float, num_clients: int, rate_per_s: float) -> dict[str, Any]:
    """Have clients ask for so long, all together about so often, and return what they were answered."""
    runs: list[str] = []
    async with httpx.AsyncClient(base_url=url, timeout=300.0) as client:
        for seed in range(4):  # so that the workers have started, and have imported what a plan needs
            await plan(client, random.Random(seed), runs)
    answers = Answers(pid)
    begin, pause_s = time.monotonic(), num_clients / rate_per_s
    asking = (_client(url, n, begin + seconds, pause_s, answers, runs) for n in range(num_clients))
    clients = [asyncio.create_task(client) for client in asking]
    watch = Watch(pid)
    while any(not client.done() for client in clients):
        watch.look(answers.tally.total())
        await asyncio.wait(clients, timeout=seconds / NUM_SAMPLES)
    await asyncio.gather(*clients)
    took_s = time.monotonic() - begin
    return {
        "requests": answers.tally.total(),
        "seconds": round(took_s),
        "answers": dict(sorted(answers.tally.items())),
        **answers.summary(),
        "bytes": watch.samples,
    }


def server(seconds: float, num_clients: int = 100, rate_per_s: float = 1000.0) -> dict[str, Any]:
    """Load a server of its own; nothing leaves this machine."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"num_workers": 2, "rate_per_s": 1e6, "burst": 1_000_000}
        with serving(Path(folder) / "runs.db", **settings) as found:
            return asyncio.run(load(found.url, found.pid, seconds, num_clients, rate_per_s))
