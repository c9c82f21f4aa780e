"""Load that goes on: ``python tests/long/soak.py server|decisions|orders AMOUNT [NUM_CLIENTS]`` prints JSON.

``server`` has so many clients ask a server for AMOUNT seconds; ``decisions`` plays simulated runs until a guarded
dispatcher was asked AMOUNT times; ``orders`` has each order of live queues decide AMOUNT times over a queue that moves
on. All tell how much memory the process held over time; more than 5 % of growth is an exit code of 1.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: What happens before this share of the load counts as warming up.
_WARM = 0.2
_NUM_SAMPLES = 100


def resident_bytes(pid: int | None = None) -> int:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1]) * _PAGE


def growth(samples: list[int]) -> float:
    """Return by which share the last fifth of the samples is above those just after the warm-up, by their medians."""
    fifth = max(1, len(samples) // 5)
    begin = int(len(samples) * _WARM)
    early, late = np.median(samples[begin : begin + fifth]), np.median(samples[-fifth:])
    return float(late / early - 1.0)


# A server and its clients ---------------------------------------------------------------------------


async def _client(url: str, number: int, until_s: float, tally: Counter[str], runs: list[str]) -> None:
    import httpx

    rng = random.Random(number)
    async with httpx.AsyncClient(base_url=url, timeout=300.0) as client:
        while time.monotonic() < until_s:
            what = rng.choice(_REQUESTS)
            try:
                reply = await what(client, rng, runs)
                tally[f"{what.__name__} {reply.status_code}"] += 1
            except httpx.TransportError as error:
                tally[f"{what.__name__} {type(error).__name__}"] += 1
            await asyncio.sleep(rng.uniform(0.0, 0.05))


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


_REQUESTS = (plan, wrong, list_runs, one_run, health, metrics)


async def _load(url: str, pid: int, seconds: float, num_clients: int) -> dict[str, Any]:
    tally: Counter[str] = Counter()
    runs: list[str] = []
    begin = time.monotonic()
    clients = [asyncio.create_task(_client(url, n, begin + seconds, tally, runs)) for n in range(num_clients)]
    samples = []
    while any(not client.done() for client in clients):
        samples.append(resident_bytes(pid))
        await asyncio.wait(clients, timeout=seconds / _NUM_SAMPLES)
    await asyncio.gather(*clients)
    took_s = time.monotonic() - begin
    return {
        "requests": sum(tally.values()),
        "seconds": round(took_s),
        "answers": dict(sorted(tally.items())),
        "bytes": samples,
    }


def server(seconds: float, num_clients: int) -> dict[str, Any]:
    """Load a server of its own; nothing leaves this machine."""
    from web.web_serving import serving

    with tempfile.TemporaryDirectory() as folder:
        settings = {"num_workers": 2, "rate_per_s": 1e6, "burst": 1_000_000}
        with serving(Path(folder) / "runs.db", **settings) as found:
            return asyncio.run(_load(found.url, found.pid, seconds, num_clients))


# Decisions ------------------------------------------------------------------------------------------


def decisions(num_wanted: int) -> dict[str, Any]:
    """Play runs with lost devices and failing tasks, decided by a guarded dispatcher."""
    from stretto.domain.cluster import Cluster
    from stretto.domain.problem import Problem
    from stretto.engines.engine import RunOptions
    from stretto.engines.events import DeviceLost
    from stretto.engines.online import GreedyDispatcher
    from stretto.engines.safe_dispatch import SafeDispatcher
    from stretto.engines.simulated import SimulatedEngine
    from stretto.engines.work import Work
    from stretto.workloads.random_dag import random_dag

    class Counted(GreedyDispatcher):
        num_asked = 0

        def choose(self, view: Any) -> Any:
            Counted.num_asked += 1
            return super().choose(view)

    samples, begin, num_runs, num_fallbacks = [], time.perf_counter(), 0, 0
    while Counted.num_asked < num_wanted:
        graph = random_dag(num_tasks=300, seed=num_runs % 50)
        problem = Problem.of(graph, Cluster.parse("cpu:3x1.0,gpu:2x2.5@1GB/s"))
        safe = SafeDispatcher(Counted(), budget_s=60.0)
        engine = SimulatedEngine(faults=(DeviceLost(1, 5.0, "gone"),), failing=((num_runs % 300, 1),))
        engine.play(problem, safe, Work.timed(graph), RunOptions()).check()
        num_runs += 1
        num_fallbacks += safe.num_fallbacks
        if Counted.num_asked * _NUM_SAMPLES >= len(samples) * num_wanted:
            samples.append(resident_bytes())
    seconds = time.perf_counter() - begin
    numbers = {"decisions": Counted.num_asked, "runs": num_runs, "overruled": num_fallbacks}
    return {
        **numbers,
        "seconds": round(seconds),
        "us_per_decision": 1e6 * seconds / Counted.num_asked,
        "bytes": samples,
    }


def orders(num_wanted: int) -> dict[str, Any]:
    """Have the orders of live queues decide as jobs come, start and end."""
    from stretto.catalog import ONLINE_ORDERS
    from stretto.domain.queue_view import QueueView
    from stretto.registry import construct

    rng = np.random.default_rng(0)
    samples: list[int] = []
    tally = {}
    for name in ONLINE_ORDERS:
        order = construct("order", name, ONLINE_ORDERS, {})
        begin = time.perf_counter()
        for k in range(num_wanted):
            n, now = 60, 30.0 * k + 1800.0
            submit = np.sort(now - rng.uniform(0.0, 1800.0, n))
            start = np.where(np.arange(n) < 30, submit + 1.0, np.nan)
            end = np.where(np.arange(n) < 20, start + 60.0, np.nan)
            estimate, procs = rng.uniform(60.0, 3600.0, n), rng.integers(1, 9, n).astype(np.int32)
            user, ready = rng.integers(0, 5, n).astype(np.int32), np.ones(n, np.bool_)
            view = QueueView(now, 64, np.arange(k * 10, k * 10 + n), submit, estimate, procs, user, start, end, ready)
            assert sorted(order.decide(view).order) == view.waiting.tolist()
            if k * _NUM_SAMPLES >= len(samples) * num_wanted:
                samples.append(resident_bytes())
        tally[name] = {"decisions": num_wanted, "ms_each": 1e3 * (time.perf_counter() - begin) / num_wanted}
    return {"orders": tally, "bytes": samples}


def main() -> int:
    kind, amount = sys.argv[1], float(sys.argv[2])
    if kind == "server":
        found = server(amount, int((sys.argv[3:] or ["100"])[0]))
    else:
        found = {"decisions": decisions, "orders": orders}[kind](int(amount))
    samples = found.pop("bytes")
    found["mib"] = [round(number / 2**20, 1) for number in samples[:: max(1, len(samples) // 20)]]
    found["growth"] = growth(samples)
    print(json.dumps(found, indent=1))
    return 0 if found["growth"] <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
