"""Workflows in a queue: each task a job that waits for its parents; and traces merged into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.csr import Ints
from stretto.core.graph import TaskGraph
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput

#: What a job has where its trace lacks the column.
_FILL: dict[str, float] = {
    "job_id": UNKNOWN,
    "user": UNKNOWN,
    "group": UNKNOWN,
    "queue": UNKNOWN,
    "partition": UNKNOWN,
    "status": UNKNOWN,
    "wait_s": np.nan,
    "memory_bytes": 0.0,
    "num_gpus": 0,
    "deadline_s": np.inf,
}
#: Numbers that mean something within one trace only.
_LOCAL = ("user", "group", "queue", "partition")


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


def merge_traces(traces: Sequence[Trace], *, name: str = "merged") -> Trace:
    """Return the jobs of several traces in one queue, by submission; equal times by order of the traces.

    Clocks are aligned where every trace says when its second zero was; otherwise all begin together. Users,
    groups, queues and partitions of different traces stay apart: their numbers are moved.
    """
    if not traces:
        raise InvalidInput("there are no traces to merge", field="traces")
    origins = [trace.origin_unix_s for trace in traces]
    known = [origin for origin in origins if origin is not None]
    origin = min(known) if len(known) == len(traces) else None
    shifts = [value - origin if origin is not None and value is not None else 0.0 for value in origins]
    submit = np.concatenate([trace.submit_s + shift for trace, shift in zip(traces, shifts, strict=True)])
    order = np.argsort(submit, kind="stable")
    columns: dict[str, Any] = _joined_dependencies(traces, order)
    columns |= {key: _joined(traces, key)[order] for key in ("run_s", "num_procs", "estimate_s")}
    for key in _FILL:
        if any(getattr(trace, key) is not None for trace in traces):
            shift = shifts if key == "deadline_s" else [0.0] * len(traces)
            columns[key] = _joined(traces, key, shift)[order]
    machines = [trace.max_procs for trace in traces if trace.max_procs is not None]
    return Trace(
        name,
        submit[order],
        max_procs=max(machines, default=None),
        origin_unix_s=origin,
        meta={"format": "merged", "parts": [[trace.name, trace.num_jobs] for trace in traces]},
        **columns,
    )


def _joined(traces: Sequence[Trace], key: str, shifts: Sequence[float] = ()) -> Any:
    parts = []
    highest = -1
    for at, trace in enumerate(traces):
        column = getattr(trace, key)
        if column is None:
            kind = np.float64 if isinstance(_FILL[key], float) else np.int32
            column = np.full(trace.num_jobs, _FILL[key], dtype=kind)
        elif key in _LOCAL:
            column = np.where(column >= 0, column + (highest + 1), column).astype(np.int32)
        elif shifts and shifts[at]:
            column = column + shifts[at]
        if key in _LOCAL and len(column):
            highest = max(highest, int(column.max()))
        parts.append(column)
    return np.concatenate(parts)


def _joined_dependencies(traces: Sequence[Trace], order: Any) -> dict[str, Any]:
    parents, children = [], []
    first = 0
    for trace in traces:
        if trace.parent is not None and trace.child is not None:
            parents.append(trace.parent + first)
            children.append(trace.child + first)
        first += trace.num_jobs
    if not parents:
        return {}
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return {"parent": place[np.concatenate(parents)], "child": place[np.concatenate(children)]}
