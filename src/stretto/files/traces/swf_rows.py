"""The rows of an SWF file as numbers: the plain ones in bulk, the odd ones one by one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.files.document import Document
from stretto.files.traces.reader import Faults, short

# Fields of a row, in order.
(
    JOB,
    SUBMIT,
    WAIT,
    RUN,
    ALLOCATED,
    CPU_TIME,
    USED_MEMORY,
    REQUESTED,
    REQUESTED_TIME,
    REQUESTED_MEMORY,
    STATUS,
    USER,
    GROUP,
    EXECUTABLE,
    QUEUE,
    PARTITION,
    PRECEDING,
    THINK,
) = range(18)
NUM_FIELDS = 18
#: What messages call them.
FIELD_NAMES = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_BOM = b"\xef\xbb\xbf"
Lines = NDArray[np.int64]


def read_rows(document: Document, faults: Faults) -> tuple[Floats, Lines]:
    """Return the rows of 18 finite numbers and their lines; other rows become faults."""
    from stretto.core.kernels.parse_numbers import parse_rows

    data = document.data.removeprefix(_BOM)
    num_lines = data.count(b"\n") + 1
    # A file of empty lines has no rows: a row is at least 18 digits and the blanks between them.
    most = min(num_lines, len(data) // (2 * NUM_FIELDS - 1) + 1)
    values = np.empty((most, NUM_FIELDS))
    line = np.empty(most, dtype=np.int64)
    odd = np.empty((num_lines, 3), dtype=np.int64)
    num_rows, num_odd = parse_rows(np.frombuffer(data, dtype=np.uint8), values, line, odd)
    values, line = values[:num_rows], line[:num_rows]
    return _with_odd_rows(data, odd[:num_odd], values, line, faults) if num_odd else (values, line)


def _with_odd_rows(data: bytes, odd: Lines, values: Floats, line: Lines, faults: Faults) -> tuple[Floats, Lines]:
    """Add the odd rows that turn out to be numbers after all, in their place."""
    more: list[list[float]] = []
    places: list[int] = []
    for at, begin, end in odd.tolist():
        fields = data[begin:end].split(None, NUM_FIELDS)
        if fields[0].startswith(b"#"):
            continue
        row = _careful(fields, at, faults)
        if row is not None:
            more.append(row)
            places.append(at)
    if not more:
        return values, line
    values = np.concatenate([values, np.array(more)])
    line = np.concatenate([line, np.array(places, dtype=np.int64)])
    order = np.argsort(line, kind="stable")
    return values[order], line[order]


def _careful(fields: list[bytes], line: int, faults: Faults) -> list[float] | None:
    if len(fields) < NUM_FIELDS:
        faults.add(line, f"{len(fields)} fields where a job has {NUM_FIELDS}")
        return None
    row: list[float] = []
    for name, field in zip(FIELD_NAMES, fields, strict=False):
        try:
            value = math.nan if b"_" in field else float(field)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            text = field.decode("utf-8", errors="replace")
            faults.add(line, f"{short(text)} is not a finite number", name=name)
            return None
        row.append(value)
    return row
