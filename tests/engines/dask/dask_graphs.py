"""Dask graphs whose tasks say where and when they ran, and clusters to run them on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from stretto.core.graph import TaskGraph


def mark(number: int, seconds: float, *inputs: Any) -> tuple[int, str, float, float]:
    """Pass time and return who ran where, from when to when."""
    from distributed import get_worker

    start = time.time()
    time.sleep(seconds)
    return number, str(get_worker().name), start, time.time()


def dask_graph(graph: TaskGraph, seconds: float = 0.0) -> dict[str, Any]:
    """Return a Dask graph of the same shape; keys are ``mark-NUMBER``."""
    from dask._task_spec import Task, TaskRef

    parents: list[list[int]] = [[] for _ in range(graph.num_tasks)]
    source, target, _ = graph.edges
    for u, v in sorted(set(zip(source.tolist(), target.tolist()))):
        parents[v].append(u)
    return {
        f"mark-{task}": Task(f"mark-{task}", mark, task, seconds, *(TaskRef(f"mark-{u}") for u in parents[task]))
        for task in range(graph.num_tasks)
    }


def run_all(client: Any, graph: TaskGraph, seconds: float = 0.0) -> list[tuple[int, str, float, float]]:
    """Compute every task of the graph and return what each says, by number."""
    keys = [f"mark-{task}" for task in range(graph.num_tasks)]
    return sorted(client.get(dask_graph(graph, seconds), keys))


def random_graph(num_tasks: int, seed: int) -> TaskGraph:
    """Make a random graph with small durations and no data."""
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for v in range(1, num_tasks) for u in rng.choice(v, size=min(v, int(rng.integers(0, 4))))]
    source, target = [int(u) for u, _ in pairs], [v for _, v in pairs]
    work = rng.integers(1, 20, size=num_tasks) / 1e4
    return TaskGraph.from_edges(work, source, target, 0.0, task_names=tuple(f"mark-{t}" for t in range(num_tasks)))


@contextmanager
def named_cluster(names: list[str], *, processes: bool) -> Iterator[Any]:
    """Start a scheduler and one worker of one thread for each name."""
    from distributed import Nanny, Scheduler, SpecCluster, Worker

    host = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    options: dict[str, Any] = {"nthreads": 1, "memory_limit": 0, "dashboard": False, **host}
    if processes:
        options["silence_logs"] = logging.CRITICAL
    workers = {name: {"cls": Nanny if processes else Worker, "options": options} for name in names}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, **host}}
    with SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL) as cluster:
        yield cluster
