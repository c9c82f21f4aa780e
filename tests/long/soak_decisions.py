"""Decisions without end: of a safe dispatcher, and of the orders of live queues."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from soak_memory import NUM_SAMPLES, Watch


def decisions(num_wanted: float) -> dict[str, Any]:
    """Play runs with lost devices and failing tasks, decided by a safe dispatcher."""
    from stretto.core.cluster import Cluster
    from stretto.core.problem import Problem
    from stretto.engines.driver.dispatch import GreedyDispatcher, SafeDispatcher
    from stretto.engines.driver.events import DeviceLost
    from stretto.engines.engine import RunOptions
    from stretto.engines.simulated import SimulatedEngine
    from stretto.engines.work import Work
    from stretto.graphs.workloads.random_dag import random_dag

    class Counted(GreedyDispatcher):
        num_asked = 0

        def choose(self, view: Any) -> Any:
            Counted.num_asked += 1
            return super().choose(view)

    watch, begin, num_runs, num_fallbacks = Watch(), time.perf_counter(), 0, 0
    while Counted.num_asked < num_wanted:
        graph = random_dag(num_tasks=300, seed=num_runs % 50)
        problem = Problem.of(graph, Cluster.parse("cpu:3x1.0,gpu:2x2.5@1GB/s"))
        safe = SafeDispatcher(Counted(), budget_s=60.0)
        engine = SimulatedEngine(faults=(DeviceLost(1, 5.0, "gone"),), failing=((num_runs % 300, 1),))
        engine.play(problem, safe, Work.timed(graph), RunOptions()).check()
        num_runs += 1
        num_fallbacks += safe.num_fallbacks
        if Counted.num_asked * NUM_SAMPLES >= len(watch.samples) * num_wanted:
            watch.look(Counted.num_asked)
    seconds = time.perf_counter() - begin
    numbers = {"decisions": Counted.num_asked, "runs": num_runs, "overruled": num_fallbacks}
    return {
        **numbers,
        "seconds": round(seconds),
        "us_per_decision": 1e6 * seconds / Counted.num_asked,
        "bytes": watch.samples,
    }


def orders(num_wanted: float) -> dict[str, Any]:
    """Have the orders of live queues decide as jobs come, start and end."""
    from stretto.catalog import ONLINE_ORDERS
    from stretto.queues.view import QueueView
    from stretto.registry import construct

    rng = np.random.default_rng(0)
    watch = Watch()
    tally = {}
    for name in ONLINE_ORDERS:
        order = construct("order", name, ONLINE_ORDERS, {})
        begin = time.perf_counter()
        for k in range(int(num_wanted)):
            n, now = 60, 30.0 * k + 1800.0
            submit = np.sort(now - rng.uniform(0.0, 1800.0, n))
            start = np.where(np.arange(n) < 30, submit + 1.0, np.nan)
            end = np.where(np.arange(n) < 20, start + 60.0, np.nan)
            estimate, procs = rng.uniform(60.0, 3600.0, n), rng.integers(1, 9, n).astype(np.int32)
            user, ready = rng.integers(0, 5, n).astype(np.int32), np.ones(n, np.bool_)
            view = QueueView(now, 64, np.arange(k * 10, k * 10 + n), submit, estimate, procs, user, start, end, ready)
            assert sorted(order.decide(view).order) == view.waiting.tolist()
            if k * NUM_SAMPLES >= len(watch.samples) * num_wanted:
                watch.look(k)
        tally[name] = {"decisions": num_wanted, "ms_each": 1e3 * (time.perf_counter() - begin) / num_wanted}
    return {"orders": tally, "bytes": watch.samples}
