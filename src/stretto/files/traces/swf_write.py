"""A trace as SWF text."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.trace import UNKNOWN, Trace

_KB = 1024.0
#: Header fields that are written from the trace itself, never copied.
_OWN_FIELDS = frozenset({"Version", "MaxJobs", "MaxRecords", "UnixStartTime", "MaxProcs"})


def swf_bytes(trace: Trace) -> bytes:
    """Return the header and one row per job; what is not known is -1."""
    n = trace.num_jobs
    number = _job_numbers(trace)
    unknown = ["-1"] * n
    columns = [
        _ints(number, n),
        _floats(trace.submit_s),
        unknown if trace.wait_s is None else _floats(trace.wait_s),
        _floats(trace.run_s),
        _ints(trace.num_procs, n),
        unknown,
        unknown,
        _ints(trace.num_procs, n),
        _floats(trace.estimate_s),
        unknown if trace.memory_bytes is None else _floats(_kilobytes(trace.memory_bytes, trace.num_procs)),
        _ints(trace.status, n),
        _ints(trace.user, n),
        _ints(trace.group, n),
        unknown,
        _ints(trace.queue, n),
        _ints(trace.partition, n),
        _ints(_preceding(trace, number), n),
        unknown,
    ]
    rows = [" ".join(row) for row in zip(*columns, strict=True)]
    return "\n".join([*_header(trace), *rows, ""]).encode()


def missing_from_swf(trace: Trace) -> list[str]:
    """Say what of this trace SWF has no room for."""
    lost = []
    if trace.num_gpus is not None and bool(np.any(trace.num_gpus > 0)):
        lost.append("GPUs")
    if trace.deadline_s is not None and bool(np.any(np.isfinite(trace.deadline_s))):
        lost.append("deadlines")
    if trace.child is not None and len(np.unique(trace.child)) < len(trace.child):
        lost.append("all but the last-submitted parent of a job")
    if trace.requests:
        lost.append("nodes, tasks, memory per node, GPUs and constraints of requests")
    if trace.held_s is not None:
        lost.append("how long jobs were held before they became eligible")
    if trace.limit_group is not None and bool(np.any(trace.limit_group >= 0)):
        lost.append("limits of arrays and singletons")
    for what, column in (("accounts", trace.account), ("QOS", trace.qos)):
        if column is not None and bool(np.any(column >= 0)):
            lost.append(what)
    names = [what for what in ("user", "group", "queue", "partition", "job") if trace.meta.get(f"{what}_names")]
    if names:
        lost.append(f"the names behind the numbers of {', '.join(names)}")
    return lost


def _header(trace: Trace) -> list[str]:
    lines = ["; Version: 2.2", f"; MaxJobs: {trace.num_jobs}", f"; MaxRecords: {trace.num_jobs}"]
    if trace.origin_unix_s is not None:
        lines.append(f"; UnixStartTime: {int(trace.origin_unix_s)}")
    if trace.max_procs is not None:
        lines.append(f"; MaxProcs: {trace.max_procs}")
    fields: object = trace.meta.get("header", {})
    for key, value in fields.items() if isinstance(fields, dict) else ():
        for text in [] if key in _OWN_FIELDS else value if isinstance(value, list) else [value]:
            lines.append(f"; {key}: {' '.join(str(text).split())}")
    return lines


def _job_numbers(trace: Trace) -> Ints:
    """Return the source's own numbers, or rows counted from one where those are not unique."""
    own = trace.job_id
    if own is not None and len(np.unique(own)) == trace.num_jobs and bool(np.all(own > 0)):
        return own
    return np.arange(1, trace.num_jobs + 1, dtype=np.int32)


def _preceding(trace: Trace, number: Ints) -> Ints | None:
    """Return the one parent that SWF has room for: the one submitted last."""
    if trace.parent is None or trace.child is None:
        return None
    latest = np.full(trace.num_jobs, -1, dtype=np.int32)
    np.maximum.at(latest, trace.child, trace.parent)
    return np.where(latest >= 0, number[latest], UNKNOWN).astype(np.int32)


def _kilobytes(memory_bytes: Floats, procs: Ints) -> Floats:
    return np.where(memory_bytes > 0, memory_bytes / (_KB * procs), -1.0)


def _ints(column: Ints | None, n: int) -> list[str]:
    return ["-1"] * n if column is None else [str(value) for value in column.tolist()]


def _floats(column: Floats) -> list[str]:
    """Write whole seconds as such, others with all their digits, and -1 for unknown."""
    known = np.where(np.isfinite(column), column, -1.0)
    return [str(int(value)) if value == int(value) else repr(value) for value in known.tolist()]
