"""What ``--job`` names: a job by the number that its trace gives it, or a row of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stretto.cli.terminal.console import remark
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.trace import Trace

_ROW = "row:"


def row_of(text: str, trace: Trace) -> int:
    """Return the row of the job that is meant; rows count from 0.

    Where a trace has no job ids, a plain number is a row.
    """
    is_row = text.startswith(_ROW)
    number = text.removeprefix(_ROW)
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise InvalidInput(f"{text!r} is neither a job id such as 1204 nor a row such as row:12", field="--job")
    if is_row or not has_ids(trace):
        if int(number) >= trace.num_jobs:
            raise InvalidInput(f"there is no row {number}: the rows are 0..{trace.num_jobs - 1}", field="--job")
        return int(number)
    return _by_id(int(number), trace)


def has_ids(trace: Trace) -> bool:
    """Say whether a trace gives its jobs numbers."""
    return trace.job_id is not None and bool(np.any(trace.job_id >= 0))


def name_of(row: int, trace: Trace) -> int:
    """Return the number by which people know a job."""
    if not has_ids(trace):
        return row
    assert trace.job_id is not None
    return int(trace.job_id[row])


def _by_id(job_id: int, trace: Trace) -> int:
    assert trace.job_id is not None
    rows = np.flatnonzero(trace.job_id == job_id)
    if not len(rows):
        known = np.unique(trace.job_id[trace.job_id >= 0])
        at = int(np.searchsorted(known, job_id))
        near = " or ".join(str(one) for one in known[max(0, at - 1) : at + 1])
        raise InvalidInput(
            f"{trace.name!r} has no job {job_id}; did you mean {near}? A row is named as row:N", field="--job"
        )
    if len(rows) > 1:
        remark(f"{len(rows):,} rows have job id {job_id}: the first is taken, row:{rows[0]}; the next is row:{rows[1]}")
    return int(rows[0])
