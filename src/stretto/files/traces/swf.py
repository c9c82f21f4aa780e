"""The Standard Workload Format: 18 numbers per job, -1 = unknown, ``;`` lines as header.

Sizes are the larger of the allocated and the requested processors; the estimate is the requested time.
A job without a run time stays as a row of zero seconds. What the file says of its machine and its
clock comes from the header; where it is silent, ``meta`` says what was taken instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.magnitudes import BYTES, SECONDS
from stretto.core.trace import UNKNOWN, Trace
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name
from stretto.files.traces.reader import Faults, ReadOptions
from stretto.files.traces.swf_alea import node_specs, num_nodes, requests_of
from stretto.files.traces.swf_header import Header, read_header
from stretto.files.traces.swf_rows import (
    ALLOCATED,
    GROUP,
    JOB,
    NUM_FIELDS,
    PARTITION,
    PRECEDING,
    QUEUE,
    REQUESTED,
    REQUESTED_MEMORY,
    REQUESTED_TIME,
    RUN,
    STATUS,
    SUBMIT,
    THINK,
    USED_MEMORY,
    USER,
    WAIT,
    Lines,
    read_rows,
)
from stretto.files.traces.swf_write import missing_from_swf, swf_bytes

_MAX_INT = float(np.iinfo(np.int32).max)
#: A first submission this late (in 1990) without a stated origin is Unix time.
_UNIX_TIME = 631_152_000.0
_KB = 1024.0
#: No processor has more memory than this; it keeps absurd rows finite.
_MAX_KB = 1e15


class Swf:
    """Reads and writes SWF, plain or with Alea's three further columns."""

    summary = "Standard Workload Format (Parallel Workloads Archive), also Alea's extended form"
    endings = ("swf",)

    def matches(self, document: Document) -> bool:
        """Say whether the first job has 18 fields that begin with numbers, or the header looks like one."""
        lines = first_lines(document, 3, comment=";")
        if lines:
            return any(_is_job(line) for line in lines)
        return document.head.lstrip().startswith(b";") and b":" in document.head

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read the jobs; see the module."""
        faults = Faults(document, options.strict)
        values, lines = _usable(*read_rows(document, faults), faults)
        values, lines, num_late = _in_order(values, lines, faults)
        faults.settle(len(values))
        header = read_header(document)
        meta: dict[str, object] = {
            "format": "swf",
            **faults.meta(),
            "num_out_of_order": num_late,
            "header": header.fields,
        }
        meta["num_without_run_time"] = int(np.count_nonzero(values[:, RUN] <= 0))
        origin, submit = _clock(header, values[:, SUBMIT], meta)
        columns = _columns(values)
        specs = node_specs(document, lines)
        if specs is not None:
            memory = np.clip(values[:, REQUESTED_MEMORY], 0.0, _MAX_KB)
            columns |= requests_of(specs, columns["num_procs"], memory, meta)
        if options.dependencies:
            columns["parent"], columns["child"] = _dependencies(values, meta)
        return Trace(
            graph_name(document),
            submit,
            np.maximum(values[:, RUN], 0.0),
            origin_unix_s=origin,
            max_procs=_machine(header, meta),
            memory_bytes=_memory(values, None if specs is None else num_nodes(specs)),
            meta=meta,
            **columns,
        )

    def write(self, trace: Trace) -> bytes:
        """Return the trace as SWF text."""
        return swf_bytes(trace)

    def loses(self, trace: Trace) -> list[str]:
        """Say what of this trace SWF has no room for."""
        return missing_from_swf(trace)


def _is_job(line: str) -> bool:
    fields = line.split()
    if len(fields) < NUM_FIELDS:
        return False
    try:
        _ = [float(field) for field in fields[:5]]
    except ValueError:
        return False
    return True


def _usable(values: Floats, lines: Lines, faults: Faults) -> tuple[Floats, Lines]:
    """Return the rows that can be jobs; the others are malformed, or jobs of unknown size."""
    submit = values[:, SUBMIT]
    procs = np.maximum(values[:, ALLOCATED], values[:, REQUESTED])
    early = submit < 0
    absurd = (procs < UNKNOWN) | (procs > _MAX_INT) | (procs != np.floor(procs))
    unknown = ~early & ~absurd & (procs < 1)
    for row in np.flatnonzero(early).tolist():
        faults.add(int(lines[row]), f"{submit[row]:.17g} lies before the origin", name="submit time")
    for row in np.flatnonzero(absurd & ~early).tolist():
        faults.add(int(lines[row]), f"{procs[row]:.17g} is no number of processors", name="processors")
    # The format allows -1 here: the row is sound, but no one can say what the job needs.
    for row in np.flatnonzero(unknown).tolist():
        faults.leave_out(int(lines[row]), "the number of processors is unknown")
    extreme = _extreme(values) & ~(early | absurd | unknown)
    for row in np.flatnonzero(extreme).tolist():
        faults.add(int(lines[row]), f"a time is out of range; supported: {SECONDS}", name="times")
    kept = ~(early | absurd | unknown | extreme)
    return values[kept], lines[kept]


def _extreme(values: Floats) -> NDArray[np.bool_]:
    """Say which rows hold a time that cannot be computed with; zero and below mean "unknown"."""
    times = values[:, [SUBMIT, RUN, REQUESTED_TIME, WAIT]]
    return np.asarray(((times > 0) & SECONDS.outside(times)).any(axis=1))


def _in_order(values: Floats, lines: Lines, faults: Faults) -> tuple[Floats, Lines, int]:
    """Return the rows by submission, equal times as they stand, and how many stood too late."""
    submit = values[:, SUBMIT]
    late = np.flatnonzero(submit < np.maximum.accumulate(submit))
    if not len(late):
        return values, lines, 0
    if faults.strict:
        row = int(late[0])
        faults.add(int(lines[row]), f"{submit[row]:.17g} lies before the job above it", name="submit time")
    order = np.argsort(submit, kind="stable")
    return values[order], lines[order], len(late)


def _clock(header: Header, submit: Floats, meta: dict[str, object]) -> tuple[float | None, Floats]:
    """Return the Unix time of second zero, and the submissions counted from it."""
    stated = header.number("UnixStartTime")
    first = float(submit[0])
    if (stated is None or stated <= 0) and first >= _UNIX_TIME:
        meta["origin_from"] = "the first job: submissions are Unix times"
        return first, submit - first
    if stated is not None and stated > 0:
        meta["origin_from"] = "UnixStartTime"
        return stated, submit.copy()
    return None, submit.copy()


def _machine(header: Header, meta: dict[str, object]) -> int | None:
    """Return the size that the header states; the widest job says only that the machine was no smaller."""
    for key in ("MaxProcs", "MaxNodes"):
        stated = header.number(key)
        if stated is not None and 1 <= stated <= _MAX_INT:
            meta["max_procs_from"] = key
            return int(stated)
    return None


def _columns(values: Floats) -> dict[str, Any]:
    time, wait = values[:, REQUESTED_TIME], values[:, WAIT]
    return {
        "num_procs": _procs(values).astype(np.int32),
        "estimate_s": np.where(time > 0, time, np.nan),
        "wait_s": np.where(wait >= 0, wait, np.nan),
        "job_id": _numbers(values[:, JOB]),
        "user": _numbers(values[:, USER]),
        "group": _numbers(values[:, GROUP]),
        "queue": _numbers(values[:, QUEUE]),
        "partition": _numbers(values[:, PARTITION]),
        "status": _numbers(values[:, STATUS]),
    }


def _procs(values: Floats) -> Floats:
    return np.maximum(values[:, ALLOCATED], values[:, REQUESTED])


def _numbers(column: Floats) -> Ints:
    """Return identifiers; what is no 32-bit number is unknown."""
    sound = (column >= 0) & (column <= _MAX_INT)
    return np.where(sound, column, UNKNOWN).astype(np.int32)


def _memory(values: Floats, nodes: Floats | None) -> Floats | None:
    """Return bytes per job, zero where nobody said; SWF counts kilobytes per processor."""
    requested, used = (np.clip(values[:, k], 0.0, _MAX_KB) for k in (REQUESTED_MEMORY, USED_MEMORY))
    if nodes is not None:  # Alea: bytes per node
        return np.minimum(requested * nodes, BYTES.most)
    if not bool(np.any(requested > 0) or np.any(used > 0)):
        return None
    return np.minimum(np.where(requested > 0, requested, used) * _KB * _procs(values), BYTES.most)


def _dependencies(values: Floats, meta: dict[str, object]) -> tuple[Ints, Ints]:
    """Return pairs (preceding job, job); a job that names itself or a later one waits for none."""
    job, preceding = values[:, JOB], values[:, PRECEDING]
    order = np.argsort(job, kind="stable")
    named = np.flatnonzero(preceding > 0)
    place = np.minimum(np.searchsorted(job[order], preceding[named]), len(job) - 1)
    parent = order[place]
    sound = (job[parent] == preceding[named]) & (parent < named)
    meta["num_without_preceding_job"] = int(np.count_nonzero(~sound))
    meta["num_think_times"] = int(np.count_nonzero(values[named, THINK] > 0))
    return parent[sound].astype(np.int32), named[sound].astype(np.int32)


FORMAT = Swf()
