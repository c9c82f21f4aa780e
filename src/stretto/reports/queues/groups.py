"""Groups of jobs that a manager asks about: partitions, accounts, users, sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Ints
from stretto.core.trace import Trace
from stretto.reports.queues.outcomes import Rows

#: Groups that a table shows; the others are one row.
_MOST = 8
_TOP_USERS = 10
#: Upper ends of size classes, in processors.
_SIZES = (1, 8, 32, 128, 512, 2048)
OTHERS = "all others"


@dataclass(frozen=True, eq=False)
class JobGroup:
    """Some of the jobs, with a name."""

    name: str
    chosen: NDArray[np.bool_]  # [n] among the rows that are compared

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.chosen))


@dataclass(frozen=True)
class Grouping:
    """A way to divide the jobs."""

    key: str
    title: str
    groups: tuple[JobGroup, ...]


def groupings(trace: Trace, rows: Rows) -> tuple[Grouping, ...]:
    """Return the ways to divide the jobs that the trace allows; each has at least two groups."""
    work = (trace.num_procs * trace.run_s)[rows]
    made = [
        _of_column(trace, rows, "partition", "By partition", trace.partition, "partition_names", None, _MOST),
        _of_column(trace, rows, "account", "By account", trace.account, "account_names", None, _MOST),
        _of_column(trace, rows, "group", "By user group", trace.group, "group_names", None, _MOST),
        _of_column(trace, rows, "queue", "By queue", trace.queue, "queue_names", None, _MOST),
        _sizes(trace, rows),
        _of_column(trace, rows, "user", "The largest users", trace.user, "user_names", work, _TOP_USERS),
    ]
    return tuple(one for one in made if one is not None and len(one.groups) > 1)


def _of_column(
    trace: Trace,
    rows: Rows,
    key: str,
    title: str,
    column: Ints | None,
    names: str,
    weight: NDArray[np.float64] | None,
    most: int,
) -> Grouping | None:
    """Group by a column; the groups with the most jobs, or the most weight, come first."""
    if column is None:
        return None
    numbers, at = np.unique(column[rows], return_inverse=True)
    size = np.bincount(at, weights=weight)
    order = np.argsort(-size, kind="stable")
    known = trace.meta.get(names, ())

    def name(number: int) -> str:
        if number < 0:
            return "not known"
        return str(known[number]) if number < len(known) else f"{key} {number}"

    kept = order if len(order) <= most + 1 else order[:most]
    groups = [JobGroup(name(int(numbers[i])), at == i) for i in kept.tolist()]
    if len(kept) < len(order):
        groups.append(JobGroup(f"{OTHERS} ({len(order) - len(kept):,})", ~np.isin(at, kept)))
    return Grouping(key, title, tuple(groups))


def _sizes(trace: Trace, rows: Rows) -> Grouping:
    procs = trace.num_procs[rows]
    groups = []
    low = 1
    for high in (*_SIZES, np.iinfo(np.int64).max):
        chosen = (procs >= low) & (procs <= high)
        if np.any(chosen):
            groups.append(JobGroup(_size_name(low, int(high)), chosen))
        low = int(high) + 1 if high < np.iinfo(np.int64).max else low
    return Grouping("size", "By job size", tuple(groups))


def _size_name(low: int, high: int) -> str:
    if low == high:
        return "1 processor"
    return f"{low:,} and more" if high > _SIZES[-1] else f"{low:,} to {high:,}"
