"""What each task of a schedule waited for: its data or its device; and the chain of waits that decides the makespan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem

_NOBODY = -1


@dataclass(frozen=True, eq=False)
class Delays:
    """Why tasks start when they do.

    Attributes
    ----------
    idle_s
        How long the device of a task had nothing to run before it because data were missing.
    parent
        The task whose data came last; -1 = it reads nothing.
    critical
        Tasks from the first to the one that ends last, each waiting for the one before it.
    """

    idle_s: Floats  # [n]
    parent: Ints  # [n]
    critical: tuple[int, ...]


def delays_of(
    problem: Problem, device: Ints, start_s: Floats, finish_s: Floats, *, with_transfers: bool = True
) -> Delays:
    """Find what tasks waited for.

    Parameters
    ----------
    with_transfers
        Data arrive after the transfer time of the cluster; otherwise with the end of the task that made them, as in
        measured runs, whose transfers are part of the tasks.
    """
    arrival, parent = _arrivals(problem, device, finish_s, with_transfers)
    before, before_s = _previous(device, start_s, finish_s)
    waits = (parent != _NOBODY) & (arrival > before_s) & (problem.packing is None)
    idle = np.where(waits, np.maximum(0.0, start_s - before_s), 0.0)
    return Delays(idle, parent, _chain(problem, finish_s, arrival, parent, before, before_s))


def _arrivals(problem: Problem, device: Ints, finish_s: Floats, with_transfers: bool) -> tuple[Floats, Ints]:
    """Return when the last data of each task arrive, and from which task; -inf and -1 where it reads nothing."""
    arrays, n = problem.arrays, problem.num_tasks
    source = arrays.in_task
    reader = np.repeat(np.arange(n, dtype=np.int32), np.diff(arrays.in_ptr))
    there = finish_s[source]
    if with_transfers:
        a, b = device[source], device[reader]
        moving = np.where(arrays.in_size > 0, arrays.latency[a, b] + arrays.in_size * arrays.inv_bandwidth[a, b], 0.0)
        there = there + np.where(a == b, 0.0, moving)
    arrival, parent = np.full(n, -np.inf), np.full(n, _NOBODY, dtype=np.int32)
    order = np.lexsort((-source, there, reader))  # the last of each reader is its latest, ties by the lower index
    arrival[reader[order]] = there[order]
    parent[reader[order]] = source[order]
    return arrival, parent


def _previous(device: Ints, start_s: Floats, finish_s: Floats) -> tuple[Ints, Floats]:
    """Return the last task that ended on the same device before each task began, and its end; -1 and 0 for none."""
    n = len(device)
    before, before_s = np.full(n, _NOBODY, dtype=np.int32), np.zeros(n)
    slack = 1e-9 * (float(finish_s.max()) if n else 0.0)
    for one in np.unique(device).tolist():
        here = np.flatnonzero(device == one)
        ended = here[np.lexsort((here, start_s[here], finish_s[here]))]
        place = np.searchsorted(finish_s[ended], start_s[here] + slack, side="right") - 1
        itself = (place >= 0) & (ended[place] == here)  # a task without a length ends where it begins
        place = place - itself
        before[here] = np.where(place >= 0, ended[place], _NOBODY)
        before_s[here] = np.where(place >= 0, finish_s[ended[place]], 0.0)
    return before, before_s


def _chain(
    problem: Problem, finish_s: Floats, arrival: Floats, parent: Ints, before: Ints, before_s: Floats
) -> tuple[int, ...]:
    """Walk back from the task that ends last to what it waited for, and so on."""
    if not len(finish_s):
        return ()
    task, seen = int(np.argmax(finish_s)), dict[int, None]()
    while task != _NOBODY and task not in seen:
        seen[task] = None
        release = float(problem.arrays.release[task])
        if release > max(float(arrival[task]), float(before_s[task])):
            break  # it began as soon as its job had arrived
        task = int(parent[task] if arrival[task] >= before_s[task] else before[task])
    return tuple(reversed(seen))
