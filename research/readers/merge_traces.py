"""Several traces in one queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Column
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
    columns: dict[str, Column] = _joined_dependencies(traces, order)
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


def _joined(traces: Sequence[Trace], key: str, shifts: Sequence[float] = ()) -> Column:
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


def _joined_dependencies(traces: Sequence[Trace], order: Column) -> dict[str, Column]:
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
