"""Look-ahead: try each device for a task, and see where its readers would then finish."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import ready_everywhere
from stretto.graphs.kernels.construct.slots import Slots, find_start, occupy, open_slots


class TrialPlacement(NamedTuple):
    """Time taken on trial: it is laid over the real slots and dropped again."""

    device: Ints  # [1 + max_readers]
    start: Floats
    finish: Floats


@njit(cache=True, nogil=True)
def place_with_lookahead(p: Arrays, order: Ints, rank: Floats, max_readers: int) -> tuple[Ints, Floats, Floats]:
    """Give each task the device after which the latest of its readers would finish first.

    Parameters
    ----------
    order
        A topological order of the tasks.
    rank
        Upward ranks: the readers of a task are tried by descending rank.
    max_readers
        Of a task with more readers, only so many of the highest rank are tried.
    """
    n = order.shape[0]
    m = p.device_class.shape[0]
    assign = np.full(n, -1, dtype=np.int32)
    start = np.empty(n)
    finish = np.empty(n)
    slots = open_slots(m, n)
    trial = TrialPlacement(
        np.empty(1 + max_readers, dtype=np.int32), np.empty(1 + max_readers), np.empty(1 + max_readers)
    )
    row = np.empty(m)
    readers = np.empty(max_readers, dtype=np.int32)
    before = np.empty((max_readers, m))  # data of each reader from tasks that are placed
    scratch = np.empty(m)
    for i in range(n):
        v = order[i]
        ready_everywhere(p, assign, finish, v, row)
        count = top_readers(p, v, rank, readers)
        for k in range(count):
            ready_everywhere(p, assign, finish, readers[k], before[k])
        best = np.inf
        end = np.inf
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf:
                continue
            at = find_start(slots, d, row[d], span, np.inf)
            latest = at + span
            if count > 0:
                trial.device[0] = d
                trial.start[0] = at
                trial.finish[0] = at + span
                latest = _try_readers(p, slots, trial, v, readers[:count], before, scratch, best)
            if latest < best or (latest == best and at + span < end):
                best, end = latest, at + span
                assign[v] = d
                start[v] = at
                finish[v] = end
        occupy(slots, assign[v], start[v], finish[v])
    return assign, start, finish


@njit(cache=True, nogil=True)
def top_readers(p: Arrays, v: int, rank: Floats, readers: Ints) -> int:
    """Fill the distinct readers of task v by descending rank, the lower index first; return how many."""
    count = 0
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
            w = p.object_reader[e]
            at = count
            while at > 0 and (
                rank[w] > rank[readers[at - 1]] or (rank[w] == rank[readers[at - 1]] and w < readers[at - 1])
            ):
                at -= 1
            if at == readers.shape[0] or (at > 0 and readers[at - 1] == w):
                continue
            count = min(count + 1, readers.shape[0])
            for j in range(count - 1, at, -1):
                readers[j] = readers[j - 1]
            readers[at] = w
    return count


@njit(cache=True, nogil=True)
def _try_readers(
    p: Arrays, slots: Slots, trial: TrialPlacement, v: int, readers: Ints, before: Floats, row: Floats, limit: float
) -> float:
    """Place the readers after the task on trial; return their latest finish, or one past the limit."""
    latest = 0.0
    for k in range(readers.shape[0]):
        w = readers[k]
        row[:] = before[k]
        for e in range(p.in_ptr[w], p.in_ptr[w + 1]):
            if p.in_task[e] == v:
                size = p.in_size[e]
                for d in range(row.shape[0]):
                    there = trial.finish[0]
                    if size > 0.0:
                        there += p.latency[trial.device[0], d] + size * p.inv_bandwidth[trial.device[0], d]
                    row[d] = max(row[d], there)
        best = np.inf
        for d in range(row.shape[0]):
            span = p.duration[w, p.device_class[d]]
            if row[d] + span >= best:
                continue
            at = _find_around(slots, trial, k + 1, d, row[d], span)
            if at + span < best:
                best = at + span
                trial.device[k + 1] = d
                trial.start[k + 1] = at
                trial.finish[k + 1] = best
        latest = max(latest, best)
        if latest > limit:
            break
    return latest


@njit(cache=True, nogil=True)
def _find_around(slots: Slots, trial: TrialPlacement, count: int, d: int, ready: float, span: float) -> float:
    """Return the earliest start that is idle in the slots and clear of the time on trial."""
    at = float(find_start(slots, d, ready, span, np.inf))
    k = 0
    while k < count:
        if trial.device[k] == d and trial.start[k] < at + span and at < trial.finish[k]:
            at = float(find_start(slots, d, trial.finish[k], span, np.inf))
            k = 0
        else:
            k += 1
    return at
