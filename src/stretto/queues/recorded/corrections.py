"""What a calibrated replay takes from the log, and the replay under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.trace import UNKNOWN, QueueArrays, Trace
from stretto.errors import Infeasible
from stretto.queues.recorded.capacity import (
    Capacity,
    constant_capacity,
    outages_of,
    windowed_capacity,
    with_outages,
)
from stretto.queues.recorded.kernels.conditions import STUCK, ConditionArrays, PolicyCode
from stretto.queues.recorded.kernels.limited import run_limited
from stretto.queues.recorded.occupancy import most_at_once, recorded_occupancy


@dataclass(frozen=True)
class Corrections:
    """Which conditions of the log a replay keeps; the default is none.

    Attributes
    ----------
    split_by
        ``partition`` or ``queue``: each is a machine of its own, as large as the most that its jobs ever took at once.
        Empty: one machine.
    window_s
        The usable processors follow what ran at once in windows of this length in which jobs waited. Zero: they do not.
    has_outages
        Nothing starts in stretches in which nothing started though a job waited that would have fitted.
    share
        Of the usable processors, which share jobs could really take: nodes are not filled, or kept for others.
    """

    split_by: str = ""
    window_s: float = 0.0
    has_outages: bool = False
    share: float = 1.0


class ReplayedJobs(NamedTuple):
    """The jobs of a replay, with what the log says of them, and as kernels see them."""

    trace: Trace
    arrays: QueueArrays
    num_procs: int

    def first(self, count: int) -> ReplayedJobs:
        """Return the first jobs alone."""
        rows = np.arange(count)
        return ReplayedJobs(self.trace.take(slice(0, count)), rows_of(self.arrays, rows), self.num_procs)


def rows_of(arrays: QueueArrays, rows: NDArray[np.int64]) -> QueueArrays:
    """Return some jobs, which must not wait for each other."""
    columns = ("submit", "run", "estimate", "procs", "user", "deadline", "num_parents")
    return arrays._replace(
        **{name: getattr(arrays, name)[rows] for name in columns}, child_ptr=np.zeros(len(rows) + 1, np.int32)
    )


def parts_of(trace: Trace, split_by: str) -> list[NDArray[np.int64]]:
    """Return the jobs of each partition or queue; unknown ones are together."""
    if not split_by:
        return [np.arange(trace.num_jobs)]
    column: Ints = getattr(trace, split_by)
    return [np.flatnonzero(column == value) for value in np.unique(column).tolist()]


def replay_under(
    jobs: ReplayedJobs, policy: PolicyCode, corrections: Corrections, fitted_on: NDArray[np.bool_] | None = None
) -> Floats:
    """Return when each job starts under conditions of the log.

    Parameters
    ----------
    fitted_on
        From which jobs limits and sizes are taken; by default from all. Windows and outages are facts of their time,
        and come from all jobs.
    """
    known = np.ones(jobs.trace.num_jobs, np.bool_) if fitted_on is None else fitted_on
    start = np.empty(jobs.trace.num_jobs)
    for rows in parts_of(jobs.trace, corrections.split_by):
        part = jobs.trace.take(rows.astype(np.int32)) if corrections.split_by else jobs.trace
        size = _size(part, known[rows], jobs.num_procs) if corrections.split_by else jobs.num_procs
        conditions = conditions_of(part, size, corrections)
        arrays = rows_of(jobs.arrays, rows) if corrections.split_by else jobs.arrays
        found = np.empty(len(rows))
        if run_limited(arrays, conditions, policy, found) == STUCK:
            job = int(rows[np.argmax(found < 0)])
            raise Infeasible(f"job {job} of {jobs.trace.name!r} waits for ever: the calibrated machine is too small")
        start[rows] = found
    return start


def _size(part: Trace, known: NDArray[np.bool_], num_procs: int) -> int:
    """Return the most that the jobs of a part took at once, at least its widest job, and the machine where unknown."""
    whole = np.zeros(part.num_jobs, np.int32)
    most = int(most_at_once(part, whole, 1, known)[0]) or num_procs
    return max(most, int(part.num_procs.max()))


def conditions_of(part: Trace, size: int, corrections: Corrections) -> ConditionArrays:
    """Return the conditions of a machine as arrays."""
    past = recorded_occupancy(part)
    capacity = constant_capacity(size)
    if corrections.window_s > 0:
        capacity = windowed_capacity(past, size, corrections.window_s)
    if corrections.share != 1.0:
        top = max(float(size), float(past.procs.value.max()))
        capacity = _shared(capacity, corrections.share, top)
    if corrections.has_outages:
        capacity = with_outages(capacity, outages_of(part, past, size))
    return ConditionArrays(
        time=capacity.time_s,
        usable=np.floor(capacity.usable).astype(np.int64),
        full=np.floor(capacity.full).astype(np.int64),
    )


def _shared(capacity: Capacity, share: float, top: float) -> Capacity:
    """Return a share of what is usable, at most what ever ran at once; wide jobs may still take the whole machine."""
    usable = np.clip(capacity.usable * share, 1.0, max(top, 1.0))
    return Capacity(capacity.time_s, usable, np.maximum(capacity.full, usable))


def user_limit(trace: Trace, known: NDArray[np.bool_]) -> int:
    """Return the most processors that any user ran at once; zero where users or waits are unknown.

    It is one number for all, as sites set it: what a single user ran at most says more of that user than of a limit.
    """
    if trace.user is None:
        return 0
    users, group = np.unique(trace.user, return_inverse=True)
    most = most_at_once(trace, group.astype(np.int32), len(users), known & (trace.user != UNKNOWN))
    return int(most.max())
