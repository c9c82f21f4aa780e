"""A trace: recorded rigid jobs, one row each, as columns.

A rigid job needs ``num_procs`` processors for ``run_s`` seconds from the moment it starts. What
its user said it would take is ``estimate_s``; that, never the run time, is what policies may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stretto.core.csr import Floats, Ints, group, topological_order
from stretto.core.magnitudes import BYTES, SECONDS, first
from stretto.core.request import JobRequest
from stretto.errors import InvalidInput

#: What is not known in an integer column.
UNKNOWN = -1
_COLUMNS = (
    "run_s",
    "num_procs",
    "estimate_s",
    "user",
    "account",
    "qos",
    "memory_bytes",
    "num_gpus",
    "deadline_s",
    "wait_s",
    "held_s",
    "request",
    "limit_group",
)
_RANGES = dict.fromkeys(("submit_s", "run_s", "estimate_s", "wait_s", "held_s", "deadline_s"), SECONDS) | {
    "memory_bytes": BYTES
}


class QueueArrays(NamedTuple):
    """What queue kernels see; n jobs in order of submission, D dependencies."""

    submit: Floats  # [n] seconds, ascending, the first at zero
    run: Floats  # [n] seconds on a processor of speed 1
    estimate: Floats  # [n] seconds, what the user asked for
    procs: Ints  # [n]
    user: Ints  # [n] 0 .. U-1
    deadline: Floats  # [n] inf = none
    gpus: Ints  # [n] per job
    memory: Floats  # [n] bytes per job
    num_parents: Ints  # [n]
    child_ptr: Ints  # [n+1]
    child: Ints  # [D] jobs that wait for each job


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in order of submission.

    Attributes
    ----------
    submit_s
        When the job could first be considered, in seconds since ``origin_unix_s`` (or since the first job where that
        is unknown). A job that was held at first, or had a begin time, counts from then on (Slurm's ``Eligible``).
    held_s
        How long before ``submit_s`` the job was handed in; None = no job was held.
    estimate_s
        NaN where the user gave none.
    parent, child
        Pairs of job indices: the child waits for the parent's end.
    request, requests
        What each job asks of nodes, as an index into ``requests``, which holds each different request once; None where
        the source says no more than a number of processors.
    limit_group, group_limits
        Groups of jobs of which only so many may run at once (arrays with ``%N``, a limit of 1 for ``singleton``), as an
        index into ``group_limits``; ``UNKNOWN`` = no such limit.
    max_procs
        Processors of the machine that was recorded; None where the source does not say.
    """

    name: str
    submit_s: Floats  # [n]
    run_s: Floats  # [n]
    num_procs: Ints  # [n]
    estimate_s: Floats  # [n]
    job_id: Ints | None = None  # [n] the source's own numbers
    user: Ints | None = None  # [n] UNKNOWN = not known
    group: Ints | None = None
    queue: Ints | None = None
    partition: Ints | None = None
    account: Ints | None = None
    qos: Ints | None = None
    status: Ints | None = None
    wait_s: Floats | None = None  # [n] as recorded, from submit_s on, NaN = unknown
    held_s: Floats | None = None  # [n]
    memory_bytes: Floats | None = None  # [n] per job
    num_gpus: Ints | None = None  # [n] per job
    deadline_s: Floats | None = None  # [n] absolute, inf = none
    parent: Ints | None = None  # [D]
    child: Ints | None = None  # [D]
    request: Ints | None = None  # [n]
    requests: tuple[JobRequest, ...] = ()
    limit_group: Ints | None = None  # [n]
    group_limits: tuple[int, ...] = ()
    max_procs: int | None = None
    origin_unix_s: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.num_jobs
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None and column.shape != (n,):
                raise InvalidInput(f"{name} has shape {column.shape}, expected ({n},)", field=name)
        self._check_magnitudes()
        bad = np.flatnonzero(self.num_procs < 1)
        if len(bad):
            raise InvalidInput(f"job {bad[0]} needs {self.num_procs[bad[0]]} processors", field="num_procs")
        if n and bool(np.any(np.diff(self.submit_s) < 0)):
            job = int(np.argmax(np.diff(self.submit_s) < 0)) + 1
            raise InvalidInput(f"job {job} is submitted before its predecessor", field="submit_s")
        self._check_dependencies()
        _check_index("request", self.request, len(self.requests), least=0)
        _check_index("limit_group", self.limit_group, len(self.group_limits), least=UNKNOWN)

    def _check_magnitudes(self) -> None:
        """Raise where a number lies outside the supported range; NaN, zero and below say "unknown" in some columns."""
        for name, supported in _RANGES.items():
            column = getattr(self, name)
            if column is None:
                continue
            outside = supported.outside(column)
            if name not in ("submit_s", "run_s"):
                outside &= (column > 0) & np.isfinite(column)
            job = first(outside)
            if job is not None:
                raise InvalidInput(f"job {job} has {name} {column[job]}; {supported.why_not(column[job])}", field=name)

    def _check_dependencies(self) -> None:
        if (self.parent is None) != (self.child is None):
            raise InvalidInput("parent and child come together", field="dependencies")
        if self.parent is None or self.child is None:
            return
        if len(self.parent) != len(self.child):
            raise InvalidInput(f"{len(self.parent)} parents for {len(self.child)} children", field="dependencies")
        if not len(self.parent):
            return
        for end in (self.parent, self.child):
            if int(end.min()) < 0 or int(end.max()) >= self.num_jobs:
                raise InvalidInput(f"a dependency names a job outside 0..{self.num_jobs - 1}", field="dependencies")
        if topological_order(self.num_jobs, self.parent, self.child) is None:
            raise InvalidInput("the dependencies have a cycle", field="dependencies")

    @property
    def num_jobs(self) -> int:
        return len(self.submit_s)

    @staticmethod
    def of(
        submit_s: ArrayLike,
        run_s: ArrayLike,
        num_procs: ArrayLike,
        estimate_s: ArrayLike | None = None,
        *,
        name: str = "trace",
        **columns: Any,
    ) -> Trace:
        """Make a trace from columns; no estimates means that the run times were known."""
        run = np.asarray(run_s, dtype=np.float64)
        return Trace(
            name,
            np.asarray(submit_s, dtype=np.float64),
            run,
            np.asarray(num_procs, dtype=np.int32),
            run.copy() if estimate_s is None else np.asarray(estimate_s, dtype=np.float64),
            **columns,
        )

    def take(self, jobs: Sequence[int] | Ints | slice) -> Trace:
        """Return some of the jobs, with submission times as they were and dependencies among them."""
        index = np.arange(self.num_jobs)[jobs]
        columns: dict[str, Any] = {
            key: value[index]
            for key, value in vars(self).items()
            if isinstance(value, np.ndarray) and key not in ("parent", "child")
        }
        if self.parent is not None and self.child is not None:
            place = np.full(self.num_jobs, -1, dtype=np.int32)
            place[index] = np.arange(len(index), dtype=np.int32)
            kept = (place[self.parent] >= 0) & (place[self.child] >= 0)
            columns |= {"parent": place[self.parent[kept]], "child": place[self.child[kept]]}
        return replace(self, **columns)

    def keep(self, kept: NDArray[np.bool_]) -> Trace:
        """Return the jobs that are kept, in the order that the others kept among them.

        Children of a dropped job wait for what that job waited for, in its place; where it waited for none, they are
        free.
        """
        if self.parent is None or self.child is None or not len(self.parent):
            return self.take(np.flatnonzero(kept).astype(np.int32))
        parent, child = _bridge(self.parent, self.child, kept)
        return replace(self, parent=parent, child=child).take(np.flatnonzero(kept).astype(np.int32))

    @property
    def num_without_limit(self) -> int:
        """Jobs without a time limit; replays with the estimates of users take their run times for it."""
        return int(np.count_nonzero(~np.isfinite(self.estimate_s)))

    def window(self, start: int, count: int) -> Trace:
        """Return ``count`` jobs from ``start`` on, the first submitted at zero."""
        part = self.take(slice(start, start + count))
        if part.num_jobs == 0:
            raise InvalidInput(f"no jobs in window {start}:{count} of {self.num_jobs}", field="window")
        shift = float(part.submit_s[0])
        deadline = None if part.deadline_s is None else part.deadline_s - shift
        origin = None if part.origin_unix_s is None else part.origin_unix_s + shift
        return replace(part, submit_s=part.submit_s - shift, deadline_s=deadline, origin_unix_s=origin)

    def fits(self, num_procs: int) -> NDArray[np.bool_]:
        """Say which jobs can run on so many plain processors: they ran at all, and ask for no more and no GPU."""
        fits: NDArray[np.bool_] = (self.run_s > 0) & (self.num_procs <= num_procs)
        return fits if self.num_gpus is None else fits & (self.num_gpus == 0)

    def recorded_procs(self, how: str) -> int:
        """Return the processors of the machine that was recorded; raise where the source does not say.

        Parameters
        ----------
        how
            How a caller can say it.
        """
        if self.max_procs is None:
            widest = f"its widest job takes {int(self.num_procs.max()):,}" if self.num_jobs else "it holds no jobs"
            raise InvalidInput(f"{self.name!r} does not say on how many processors it ran ({widest}): say {how}")
        return self.max_procs

    def fitting(self, num_procs: int) -> tuple[Trace, int]:
        """Return the jobs that :meth:`fits` says can run, the first at zero, and how many cannot.

        Missing estimates become the run time, and estimates below the run time are raised to it: an
        earlier kill would have been in the recorded run time. Dependencies are as in ``keep``.
        """
        kept = self.fits(num_procs)
        if not np.any(kept):
            raise InvalidInput(f"no job of {self.name!r} can run on {num_procs:,} plain processors", field="procs")
        part = self.keep(kept).window(0, int(np.count_nonzero(kept)))
        estimate = np.where(np.isfinite(part.estimate_s) & (part.estimate_s > 0), part.estimate_s, part.run_s)
        return replace(part, estimate_s=np.maximum(estimate, part.run_s)), self.num_jobs - part.num_jobs

    def arrays(self) -> QueueArrays:
        """Return what the kernels read; unknown users are one user."""
        n = self.num_jobs
        user = np.zeros(n, dtype=np.int32)
        if self.user is not None:
            user = np.unique(self.user, return_inverse=True)[1].astype(np.int32)
        parent = self.parent if self.parent is not None else np.zeros(0, dtype=np.int32)
        child = self.child if self.child is not None else np.zeros(0, dtype=np.int32)
        child_ptr, by_parent = group(parent, n)
        return QueueArrays(
            submit=self.submit_s,
            run=self.run_s,
            estimate=np.where(np.isfinite(self.estimate_s), self.estimate_s, self.run_s),
            procs=self.num_procs,
            user=user,
            deadline=self.deadline_s if self.deadline_s is not None else np.full(n, np.inf),
            gpus=self.num_gpus if self.num_gpus is not None else np.zeros(n, dtype=np.int32),
            memory=self.memory_bytes if self.memory_bytes is not None else np.zeros(n),
            num_parents=np.bincount(child, minlength=n).astype(np.int32),
            child_ptr=child_ptr,
            child=child[by_parent],
        )


def _check_index(name: str, column: Ints | None, size: int, *, least: int) -> None:
    if column is not None and len(column) and not least <= int(column.min()) <= int(column.max()) < size:
        bad = int(np.argmax((column < least) | (column >= size)))
        raise InvalidInput(f"job {bad} has {name} {column[bad]}, outside {least}..{size - 1}", field=name)


def _bridge(parent: Ints, child: Ints, kept: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the dependencies between kept jobs, also those that led through dropped ones."""
    order = topological_order(len(kept), parent, child)
    assert order is not None
    behind: dict[int, set[int]] = {int(job): set() for job in order if not kept[job]}  # kept jobs before a dropped one
    into_dropped: dict[int, list[int]] = {job: [] for job in behind}
    for a, b in zip(parent.tolist(), child.tolist(), strict=True):
        if b in into_dropped:
            into_dropped[b].append(a)
    for job, before in behind.items():
        for a in into_dropped[job]:
            before |= behind.get(a, {a})
    pairs = {
        (a, b)
        for source, b in zip(parent.tolist(), child.tolist(), strict=True)
        if kept[b]
        for a in behind.get(source, {source})
    }
    both = np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()
