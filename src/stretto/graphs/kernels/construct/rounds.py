"""Rounds: of all ready tasks on all devices, commit the best pair, again and again.

Each ready task keeps its best device and score. Committing a task makes one device later and
no other: only the tasks whose best (or second best) was that device are looked at anew.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import first_ready, open_devices, ready_everywhere

#: Which ready task goes next; all but ETF take it to where it finishes first.
ETF = 0  # earliest start; of equal starts the higher level
DLS = 1  # highest level minus finish
MIN_MIN = 2  # earliest finish
MAX_MIN = 3  # latest of the earliest finishes
SUFFERAGE = 4  # largest loss when it does not get its best device

_FIRST_ROOM = 64


@njit(cache=True, nogil=True)
def schedule_in_rounds(p: Arrays, rule: int, level: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Schedule all tasks, each behind what its device has.

    Parameters
    ----------
    rule
        One of the codes of this module.
    level
        Urgency of each task, read by ETF and DLS.

    Returns
    -------
    tuple
        The tasks in the order of their rounds; assignment, start and finish of each task.
    """
    n = p.release.shape[0]
    m = p.device_class.shape[0]
    assign, start, finish, free, _ = open_devices(p)
    # Position k of the pool: its task, its data-ready times, its best and second-best device.
    task = np.empty(_FIRST_ROOM, dtype=np.int32)
    ready = np.empty((_FIRST_ROOM, m))
    device = np.empty((_FIRST_ROOM, 2), dtype=np.int32)
    score = np.empty((_FIRST_ROOM, 3))  # best, second best, finish on the best
    count = 0
    missing, fresh, num_fresh = first_ready(p)  # fresh: tasks that have just become ready
    order = np.empty(n, dtype=np.int32)
    for i in range(n):
        if count + num_fresh > task.shape[0]:
            room = 2 * (count + num_fresh)
            task, ready, device, score = _grow(room, count, task, ready, device, score)
        for f in range(num_fresh):
            task[count] = fresh[f]
            ready_everywhere(p, assign, finish, fresh[f], ready[count])
            _evaluate(p, rule, fresh[f], ready[count], free, device[count], score[count])
            count += 1
        k = pick(rule, count, task, score, level)
        v = task[k]
        order[i] = v
        d = device[k, 0]
        assign[v] = d
        start[v] = max(ready[k, d], free[d])
        finish[v] = score[k, 2]
        free[d] = finish[v]
        count -= 1
        if k != count:
            task[k] = task[count]
            ready[k] = ready[count]
            device[k] = device[count]
            score[k] = score[count]
        for j in range(count):
            if device[j, 0] == d or (rule == SUFFERAGE and device[j, 1] == d):
                _evaluate(p, rule, task[j], ready[j], free, device[j], score[j])
        num_fresh = release_readers(p, v, missing, fresh)
    return order, assign, start, finish


@njit(cache=True, nogil=True)
def release_readers(p: Arrays, v: int, missing: Ints, fresh: Ints) -> int:
    """Count task v as done; fill ``fresh`` with the tasks that are ready now, return how many."""
    num_fresh = 0
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
            w = p.object_reader[e]
            missing[w] -= 1
            if missing[w] == 0:
                fresh[num_fresh] = w
                num_fresh += 1
    return num_fresh


@njit(cache=True, nogil=True)
def _grow(
    room: int, count: int, task: Ints, ready: Floats, device: Ints, score: Floats
) -> tuple[Ints, Floats, Ints, Floats]:
    """Copy the pool into a larger one."""
    new_task = np.empty(room, dtype=np.int32)
    new_ready = np.empty((room, ready.shape[1]))
    new_device = np.empty((room, 2), dtype=np.int32)
    new_score = np.empty((room, 3))
    new_task[:count] = task[:count]
    new_ready[:count] = ready[:count]
    new_device[:count] = device[:count]
    new_score[:count] = score[:count]
    return new_task, new_ready, new_device, new_score


@njit(cache=True, nogil=True)
def _evaluate(p: Arrays, rule: int, v: int, row: Floats, free: Floats, device: Ints, score: Floats) -> None:
    """Find the best and the second-best device of a task; equal ones by finish, then index."""
    best = np.inf
    second = np.inf
    end = np.inf
    first_device = -1
    second_device = -1
    for d in range(row.shape[0]):
        span = p.duration[v, p.device_class[d]]
        if span == np.inf:
            continue
        at = max(row[d], free[d])
        value = at if rule == ETF else at + span
        if value < best or (value == best and at + span < end):
            second, second_device = best, first_device
            best, first_device, end = value, d, at + span
        elif value < second:
            second, second_device = value, d
    device[0] = first_device
    device[1] = second_device
    score[0] = best
    score[1] = second
    score[2] = end


@njit(cache=True, nogil=True)
def pick(rule: int, count: int, task: Ints, score: Floats, level: Floats) -> int:
    """Return the position of the task that the rule takes next; equal ones by lower index."""
    chosen = 0
    best = np.inf
    best_tie = np.inf
    best_end = np.inf
    for k in range(count):
        v = task[k]
        tie = 0.0
        end = 0.0
        if rule == ETF:
            value = score[k, 0]
            tie = -level[v]
            end = score[k, 2]
        elif rule == DLS:
            value = score[k, 0] - level[v]
        elif rule == MIN_MIN:
            value = score[k, 0]
        elif rule == MAX_MIN:
            value = -score[k, 0]
        else:
            value = score[k, 0] - score[k, 1]
        if value > best:
            continue
        better = value < best or tie < best_tie
        if not better and tie == best_tie:
            better = end < best_end or (end == best_end and v < task[chosen])
        if better:
            chosen, best, best_tie, best_end = k, value, tie, end
    return chosen
