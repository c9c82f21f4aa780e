"""Jobs collected one by one, then turned into the columns of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.magnitudes import BYTES, SECONDS
from stretto.core.trace import UNKNOWN, Trace

_MAX_INT = int(np.iinfo(np.int32).max)
# Status numbers are those of SWF, whatever the source calls them.
COMPLETED = 1
FAILED = 0
CANCELLED = 5


@dataclass(frozen=True)
class JobRow:
    """One job as a reader found it; times in Unix seconds or seconds since any origin."""

    submit_s: float
    run_s: float
    num_procs: int
    estimate_s: float = float("nan")
    wait_s: float = float("nan")
    memory_bytes: float = 0.0
    num_gpus: int = 0
    job_id: int = UNKNOWN
    status: int = UNKNOWN
    user: str = ""
    group: str = ""
    queue: str = ""
    partition: str = ""


@dataclass
class JobRows:
    """All jobs of a file."""

    rows: list[JobRow] = field(default_factory=list)

    def add(self, row: JobRow) -> str | None:
        """Take a job, or return why it cannot be one."""
        reason = _fault(row)
        if reason is None:
            fits = -1 <= row.job_id <= _MAX_INT
            self.rows.append(row if fits else replace(row, job_id=UNKNOWN))
        return reason

    def trace(self, name: str, *, unix_time: bool, meta: dict[str, object], max_procs: int | None = None) -> Trace:
        """Return the jobs by submission; Unix times are counted from the first job.

        Names of users, groups, queues and partitions become numbers; ``meta`` keeps the names.
        """
        rows = sorted(self.rows, key=lambda row: row.submit_s)
        submit = _floats([row.submit_s for row in rows])
        origin = float(submit[0]) if unix_time else None
        named: dict[str, Any] = {}
        for what in ("user", "group", "queue", "partition"):
            numbers, names = numbered([getattr(row, what) for row in rows])
            if names:
                named[what] = numbers
                meta[f"{what}_names"] = names
        return Trace(
            name,
            submit - origin if origin is not None else submit,
            _floats([row.run_s for row in rows]),
            _ints([row.num_procs for row in rows]),
            _floats([row.estimate_s for row in rows]),
            job_id=_ints([row.job_id for row in rows]),
            status=_ints([row.status for row in rows]),
            wait_s=_floats([row.wait_s for row in rows]),
            memory_bytes=_floats([row.memory_bytes for row in rows]),
            num_gpus=_ints([row.num_gpus for row in rows]),
            max_procs=max_procs,
            origin_unix_s=origin,
            meta=meta,
            **named,
        )


def numbered(texts: list[str]) -> tuple[Ints, list[str]]:
    """Return a number for each text, by first appearance (empty = unknown), and the texts by number."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) if text else UNKNOWN for text in texts]
    return _ints(numbers), list(known)


def _fault(row: JobRow) -> str | None:
    for name in ("submit_s", "run_s"):
        value = getattr(row, name)
        if not 0 <= value < float("inf"):
            return f"{name} {value:g} is negative or unknown"
        if not SECONDS.holds(value):
            return f"{name} {value:g} is out of range; {SECONDS.why_not(value)}"
    for name in ("estimate_s", "wait_s"):
        value = getattr(row, name)
        if 0 < value < float("inf") and not SECONDS.holds(value):
            return f"{name} {value:g} is out of range; {SECONDS.why_not(value)}"
    if not BYTES.holds(row.memory_bytes):
        return f"{row.memory_bytes:g} is no amount of memory"
    if not 1 <= row.num_procs <= _MAX_INT:
        return f"{row.num_procs} is no number of processors"
    if not 0 <= row.num_gpus <= _MAX_INT:
        return f"{row.num_gpus} is no number of GPUs"
    return None


def _floats(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int32)
