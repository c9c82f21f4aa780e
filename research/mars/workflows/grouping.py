"""Small tasks of a workflow run as one job: side by side on a level, or one behind the other in a chain.

A rented node is paid while it is up. Many small tasks that each ask for a node of their own bring up many; a few
larger jobs bring up few.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName

GROUPINGS = ("none", "horizontal", "vertical")
_Group = NDArray[np.int64]


def group_tasks(trace: Trace, grouping: str, *, most_s: float = 600.0) -> tuple[Trace, _Group]:
    """Return the trace with tasks grouped, and the new job of each old one.

    Parameters
    ----------
    grouping
        ``horizontal``: tasks of one workflow, level and width run one after the other, up to ``most_s`` per group.
        ``vertical``: a task and its only child, whose only parent it is, become one.
    """
    if grouping not in GROUPINGS:
        raise UnknownName("grouping", grouping, GROUPINGS)
    if not most_s > 0:
        raise InvalidInput(f"{most_s} must be positive", field="most_s")
    none = np.arange(trace.num_jobs)
    if grouping == "none" or trace.parent is None or trace.child is None or not len(trace.parent):
        return trace, none
    group = _levels_grouped(trace, most_s) if grouping == "horizontal" else _chains(trace)
    return _merged(trace, group), group


def levels(trace: Trace) -> _Group:
    """Return the longest way from a task without parents to each task, in steps."""
    assert trace.parent is not None
    assert trace.child is not None
    level = np.zeros(trace.num_jobs, np.int64)
    while True:
        below = level.copy()
        np.maximum.at(below, trace.child, level[trace.parent] + 1)
        if np.array_equal(below, level):
            return level
        level = below


def workflows(trace: Trace) -> _Group:
    """Return the number of the workflow of each job: those that dependencies hold together."""
    number = np.arange(trace.num_jobs)
    if trace.parent is None or trace.child is None:
        return number
    while True:
        least = number.copy()
        np.minimum.at(least, trace.child, number[trace.parent])
        np.minimum.at(least, trace.parent, number[trace.child])
        if np.array_equal(least, number):
            return np.unique(number, return_inverse=True)[1].astype(np.int64)
        number = least[least]


def _levels_grouped(trace: Trace, most_s: float) -> _Group:
    """Fill groups with tasks of one workflow, level, width and submission, in order."""
    keys = np.stack([workflows(trace), levels(trace), trace.num_procs.astype(np.int64)], axis=1)
    kind = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    group = np.empty(trace.num_jobs, np.int64)
    open_group: dict[int, tuple[int, float]] = {}
    count = 0
    for job in range(trace.num_jobs):
        run = float(trace.run_s[job])
        number, filled = open_group.get(int(kind[job]), (-1, most_s))
        if filled + run > most_s:
            number, filled = count, 0.0
            count += 1
        open_group[int(kind[job])] = (number, filled + run)
        group[job] = number
    return group


def _chains(trace: Trace) -> _Group:
    """Join a task to its parent where neither has anybody else."""
    assert trace.parent is not None
    assert trace.child is not None
    n = trace.num_jobs
    only_child = np.bincount(trace.parent, minlength=n) == 1
    only_parent = np.bincount(trace.child, minlength=n) == 1
    joined = only_child[trace.parent] & only_parent[trace.child]
    joined &= trace.num_procs[trace.parent] == trace.num_procs[trace.child]
    first = np.arange(n)
    for parent, child in zip(trace.parent[joined].tolist(), trace.child[joined].tolist(), strict=True):
        first[child] = parent
    while not np.array_equal(first, first[first]):
        first = first[first]
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _merged(trace: Trace, group: _Group) -> Trace:
    """Return one job per group, which runs its tasks one after the other."""
    assert trace.parent is not None
    assert trace.child is not None
    count = int(group.max()) + 1
    first = np.full(count, trace.num_jobs)
    np.minimum.at(first, group, np.arange(trace.num_jobs))
    submit = np.zeros(count)
    np.maximum.at(submit, group, trace.submit_s)
    order = np.argsort(submit, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    group[:] = place[group]
    pairs = np.stack([group[trace.parent], group[trace.child]], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    part = trace.take(np.sort(first))
    lead = first[order]
    columns = {
        key: value[lead]
        for key, value in vars(trace).items()
        if isinstance(value, np.ndarray) and key not in ("parent", "child")
    }
    columns["submit_s"] = submit[order]
    for key in ("run_s", "estimate_s"):
        columns[key] = np.bincount(group, weights=getattr(trace, key), minlength=count)
    return replace(part, **columns, parent=pairs[:, 0].astype(np.int32), child=pairs[:, 1].astype(np.int32))
