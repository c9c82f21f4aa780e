"""A quick first schedule for the exact search: insertion into the earliest gap, by several orders."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.planners import placing


@dataclass(frozen=True, eq=False)
class TimedPlan:
    """Device and times of each task."""

    device: Ints  # [n]
    start_s: Floats  # [n]
    finish_s: Floats  # [n]

    @property
    def makespan_s(self) -> float:
        return float(self.finish_s.max())


def first_schedule(relaxation: Relaxation) -> TimedPlan:
    """Return the best of a few list schedules, by mean rank, by tail and by latest start, and of each device alone."""
    problem = relaxation.problem
    tail = np.where(np.isfinite(relaxation.duration), relaxation.duration + relaxation.tail, np.inf).min(axis=1)
    head = np.where(np.isfinite(relaxation.duration), relaxation.head, np.inf).min(axis=1)
    ranks = (_mean_rank(problem), tail, tail - 0.5 * head)
    if problem.packing is not None:
        return min((_pack(problem, rank) for rank in ranks), key=lambda schedule: schedule.makespan_s)
    schedules = [_insert(problem, rank) for rank in ranks]
    # Where data is dear, one device that does everything beats clever lists; equal devices are tried once.
    _, firsts = np.unique(problem.arrays.device_class, return_index=True)
    for device in firsts.tolist():
        if np.isfinite(problem.device_duration[:, device]).all():
            alone = np.full(problem.num_tasks, device, dtype=np.int32)
            by_release = np.array(_list_order(problem, -problem.arrays.release), dtype=np.int32)
            schedules.append(run_in_sequence(problem, alone, by_release))
    return min(schedules, key=lambda schedule: schedule.makespan_s)


def _mean_rank(problem: Problem) -> Floats:
    """Return the upward rank of HEFT: mean durations and mean transfers down to the last task."""
    arrays = problem.arrays
    runs = np.isfinite(problem.device_duration)
    mean: Floats = np.where(runs, problem.device_duration, 0.0).sum(axis=1) / runs.sum(axis=1)
    m = problem.num_devices
    pairs = max(m * (m - 1), 1)
    latency, inverse = arrays.latency.sum() / pairs, arrays.inv_bandwidth.sum() / pairs
    rank = mean.copy()
    for task in arrays.topo[::-1].tolist():
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            source, size = arrays.in_task[read], arrays.in_size[read]
            transfer = latency + size * inverse if size > 0 else 0.0
            rank[source] = max(rank[source], mean[source] + transfer + rank[task])
    return rank


def _insert(problem: Problem, rank: Floats) -> TimedPlan:
    """Schedule tasks by descending rank, predecessors first, each where and when it ends first."""
    n = problem.num_tasks
    device, start, finish = np.zeros(n, dtype=np.int32), np.zeros(n), np.zeros(n)
    busy: list[list[tuple[float, float]]] = [[] for _ in range(problem.num_devices)]
    for task in _list_order(problem, rank):
        ready = _ready_times(problem, task, device, finish)
        best = (np.inf, 0.0, -1)
        for d, length in enumerate(problem.device_duration[task].tolist()):
            if length < np.inf:
                begin = _gap(busy[d], ready[d], length)
                best = min(best, (begin + length, begin, d))
        finish[task], start[task], device[task] = best
        insort(busy[best[2]], (best[1], best[0]))
    return TimedPlan(device, start, finish)


def _pack(problem: Problem, rank: Floats) -> TimedPlan:
    """Schedule tasks on nodes by descending rank, each where and when it fits and ends first."""
    order = np.array(_list_order(problem, rank), dtype=np.int32)
    return TimedPlan(*placing.by_finish(problem, order))


def _list_order(problem: Problem, rank: Floats) -> list[int]:
    """Return tasks by descending rank, repaired to be topological."""
    arrays = problem.arrays
    key = rank.copy()
    for task in arrays.topo[::-1].tolist():
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            source = arrays.in_task[read]
            key[source] = max(key[source], key[task])
    position = np.empty(problem.num_tasks, dtype=np.int64)
    position[arrays.topo] = np.arange(problem.num_tasks)
    order: list[int] = np.lexsort((position, -key)).tolist()
    return order


def _ready_times(problem: Problem, task: int, device: Ints, finish: Floats) -> list[float]:
    """Return when all data of a task can be on each device."""
    arrays = problem.arrays
    ready = np.full(problem.num_devices, arrays.release[task])
    for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        source, size = arrays.in_task[read], arrays.in_size[read]
        at = device[source]
        transfer = arrays.latency[at] + size * arrays.inv_bandwidth[at] if size > 0 else 0.0
        np.maximum(ready, finish[source] + transfer, out=ready)
    times: list[float] = ready.tolist()
    return times


def _gap(busy: list[tuple[float, float]], ready: float, length: float) -> float:
    """Return the earliest start in a gap that is long enough."""
    begin = ready
    for first, last in busy:
        if begin + length <= first:
            break
        begin = max(begin, last)
    return begin


def run_in_sequence(problem: Problem, device: Ints, order: Ints) -> TimedPlan:
    """Return the times of a plan when each device keeps the order, without contention."""
    if problem.packing is not None:
        return TimedPlan(device, *placing.as_assigned(problem, order, device))
    n = problem.num_tasks
    start, finish = np.zeros(n), np.zeros(n)
    free = np.zeros(problem.num_devices)
    for task in order.tolist():
        at = device[task]
        start[task] = max(_ready_times(problem, task, device, finish)[at], free[at])
        finish[task] = free[at] = start[task] + problem.device_duration[task, at]
    return TimedPlan(device, start, finish)
