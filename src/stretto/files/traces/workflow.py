"""Workflows in a queue: each task a job that waits for its parents."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Ints
from stretto.core.graph import TaskGraph
from stretto.core.trace import Trace
from stretto.errors import InvalidInput


def trace_of_graph(
    graph: TaskGraph,
    *,
    submit_s: float = 0.0,
    cores_per_task: int | None = None,
    min_run_s: float = 1e-3,
    user: int = 0,
) -> Trace:
    """Return a workflow as jobs, all submitted at once: job i is task i.

    Parameters
    ----------
    cores_per_task
        Processors of every task; by default what the graph says, and one where it says nothing.
    min_run_s
        Shorter tasks take this long. A job of no time at all would be dropped when a trace is fitted to a
        machine, and its dependencies with it.
    """
    if cores_per_task is not None and cores_per_task < 1:
        raise InvalidInput(f"{cores_per_task} must be at least 1", field="cores_per_task")
    if not (min_run_s >= 0 and np.isfinite(min_run_s)):
        raise InvalidInput(f"{min_run_s} must be finite and not negative", field="min_run_s")
    n = graph.num_tasks
    source, target, _ = graph.edges
    pairs = np.unique(np.stack([target, source], axis=1), axis=0) if len(source) else np.zeros((0, 2), dtype=np.int32)
    run = np.maximum(graph.work_s, min_run_s)
    return Trace.of(
        np.full(n, float(submit_s)),
        run,
        _cores(graph, cores_per_task),
        name=graph.name,
        job_id=np.arange(1, n + 1, dtype=np.int32),
        user=np.full(n, user, dtype=np.int32),
        memory_bytes=None if graph.memory_bytes is None else graph.memory_bytes.copy(),
        parent=pairs[:, 1].astype(np.int32),
        child=pairs[:, 0].astype(np.int32),
        meta={"format": "workflow", "workflow": graph.name},
    )


def _cores(graph: TaskGraph, cores_per_task: int | None) -> Ints:
    if cores_per_task is not None or graph.cores is None:
        return np.full(graph.num_tasks, cores_per_task or 1, dtype=np.int32)
    return np.maximum(np.ceil(graph.cores), 1).astype(np.int32)
