"""Jobs collected one by one, then turned into the columns of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.magnitudes import BYTES, SECONDS
from stretto.core.request import JobRequest
from stretto.core.trace import UNKNOWN, Trace

_MAX_INT = int(np.iinfo(np.int32).max)
#: Pairs of jobs that wait for each other; an array that waits for an array has the product of both.
_MOST_PAIRS = 2_000_000
# Status numbers are those of SWF, whatever the source calls them.
COMPLETED = 1
FAILED = 0
CANCELLED = 5


@dataclass(frozen=True)
class JobRow:
    """One job as a reader found it; times in Unix seconds or seconds since any origin.

    Attributes
    ----------
    name
        What the source calls the job, where that is no plain number: ``102_4``.
    array
        The array that the job is a task of.
    waits_for
        Names, numbers or arrays of the jobs whose end it waits for.
    limit_group
        A group of which only so many jobs may run at once, see ``JobRows.limits``.
    """

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
    account: str = ""
    qos: str = ""
    held_s: float = 0.0
    request: JobRequest | None = None
    name: str = ""
    array: str = ""
    waits_for: tuple[str, ...] = ()
    limit_group: str = ""


@dataclass
class JobRows:
    """All jobs of a file.

    Attributes
    ----------
    limits
        How many jobs of a group may run at once; a group that is not here has no limit.
    """

    rows: list[JobRow] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)

    def add(self, row: JobRow) -> str | None:
        """Take a job, or return why it cannot be one."""
        reason = _fault(row)
        if reason is None:
            fits = -1 <= row.job_id <= _MAX_INT
            self.rows.append(row if fits else replace(row, job_id=UNKNOWN, name=row.name or str(row.job_id)))
        return reason

    def trace(self, name: str, *, unix_time: bool, meta: dict[str, object], max_procs: int | None = None) -> Trace:
        """Return the jobs by submission; Unix times are counted from the first job.

        Names of users, groups, queues, partitions, accounts and QOS become numbers; ``meta`` keeps the names. Where the
        source names jobs other than by number, ``meta["job_names"]`` has the name of each such job by its number in the
        trace; jobs without a number, or with one that another job has, too, get one that is free.
        """
        rows = sorted(self.rows, key=lambda row: row.submit_s)
        job_id, job_names = _job_numbers(rows)
        if job_names:
            meta["job_names"] = job_names
        submit = _floats([row.submit_s for row in rows])
        origin = float(submit[0]) if unix_time else None
        named: dict[str, Any] = {}
        for what in ("user", "group", "queue", "partition", "account", "qos"):
            numbers, names = numbered([getattr(row, what) for row in rows])
            if names:
                named[what] = numbers
                meta[f"{what}_names"] = names
        named |= _request_columns(rows) | _limit_columns(rows, self.limits) | _dependencies(rows, meta)
        if any(row.held_s > 0 for row in rows):
            named["held_s"] = _floats([row.held_s for row in rows])
        return Trace(
            name,
            submit - origin if origin is not None else submit,
            _floats([row.run_s for row in rows]),
            _ints([row.num_procs for row in rows]),
            _floats([row.estimate_s for row in rows]),
            job_id=job_id,
            status=_ints([row.status for row in rows]),
            wait_s=_floats([row.wait_s for row in rows]),
            memory_bytes=_floats([row.memory_bytes for row in rows]),
            num_gpus=_ints([row.num_gpus for row in rows]),
            max_procs=max_procs,
            origin_unix_s=origin,
            meta=meta,
            **named,
        )


def _job_numbers(rows: Sequence[JobRow]) -> tuple[Ints, dict[str, str]]:
    """Return a number for each job, and the names of those that have one.

    Rows without a number keep none where no row of the file has a name: then nobody could ask for them.
    """
    numbers = [row.job_id for row in rows]
    names: dict[str, str] = {}
    if not any(row.name for row in rows):
        return _ints(numbers), names
    taken = {row.job_id for row in rows if row.name == ""}
    free = _unused(numbers)
    for at, row in enumerate(rows):
        if not row.name:
            continue
        if row.job_id == UNKNOWN or row.job_id in taken:
            numbers[at] = next(free)
        taken.add(numbers[at])
        names[str(numbers[at])] = row.name
    return _ints(numbers), names


def _unused(numbers: Iterable[int]) -> Iterator[int]:
    """Yield numbers that no job has: above all of them while there is room, then the gaps."""
    used = set(numbers)
    yield from range(max(used, default=0) + 1, _MAX_INT + 1)
    yield from (number for number in range(_MAX_INT) if number not in used)


def _request_columns(rows: Sequence[JobRow]) -> dict[str, Any]:
    """Return the requests, each different one once, where every row has one."""
    index: dict[JobRequest, int] = {}
    numbers: list[int] = []
    for row in rows:
        if row.request is None:
            return {}
        numbers.append(index.setdefault(row.request, len(index)))
    return {"request": _ints(numbers), "requests": tuple(index)}


def _limit_columns(rows: Sequence[JobRow], limits: dict[str, int]) -> dict[str, Any]:
    index: dict[str, int] = {}
    numbers = [index.setdefault(row.limit_group, len(index)) if row.limit_group in limits else UNKNOWN for row in rows]
    if not index:
        return {}
    return {"limit_group": _ints(numbers), "group_limits": tuple(limits[name] for name in index)}


def _dependencies(rows: Sequence[JobRow], meta: dict[str, object]) -> dict[str, Any]:
    """Return pairs of jobs; one that names a job that is not here, or that came later, waits for none."""
    if not any(row.waits_for for row in rows):
        return {}
    known: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        for name in {row.name or str(row.job_id), row.array} - {""}:
            known.setdefault(name, []).append(at)
    handed_in = [(row.submit_s - row.held_s, at) for at, row in enumerate(rows)]
    pairs: set[tuple[int, int]] = set()
    num_unknown = num_left_out = 0
    for child, row in enumerate(rows):
        for name in row.waits_for:
            parents = [parent for parent in known.get(name, ()) if handed_in[parent] < handed_in[child]]
            num_unknown += not parents
            if len(pairs) + len(parents) > _MOST_PAIRS:
                num_left_out += 1
            else:
                pairs |= {(child, parent) for parent in parents}
    meta["num_unknown_parents"] = num_unknown
    if num_left_out:
        meta["num_dependencies_left_out"] = num_left_out
    both = np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)
    return {"parent": both[:, 1].copy(), "child": both[:, 0].copy()}


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
    for name in ("estimate_s", "wait_s", "held_s"):
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
