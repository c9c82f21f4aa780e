"""Whether the tasks of each device ran one at a time, and in the order of the discipline."""

from __future__ import annotations

import numpy as np

from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.engine import RunResult
from stretto.testing.faults import need


def need_order(problem: Problem, plan: Plan, found: RunResult, discipline: Discipline, latency_s: float) -> None:
    """Raise NotConforming when a device ran two tasks at once, or others than the discipline says."""
    rank = plan.rank
    for device in range(problem.num_devices):
        mine = np.flatnonzero(found.device == device)
        ran = mine[np.lexsort((rank[mine], found.end_s[mine], found.start_s[mine]))]
        name = problem.cluster.devices[device].name
        overlap = np.flatnonzero(found.start_s[ran[1:]] < found.end_s[ran[:-1]] - latency_s)
        need(not len(overlap), f"device {name!r} ran two tasks at once")
        if discipline == "sequence":
            need((np.diff(rank[ran]) > 0).all(), f"device {name!r} did not keep the planned sequence")
        else:
            _need_first_ready(problem, rank, found, ran, name, latency_s)


def _need_first_ready(
    problem: Problem, rank: np.ndarray, found: RunResult, ran: np.ndarray, name: str, latency_s: float
) -> None:
    """Each task must be the first in order of those that were ready when it was chosen.

    It may have been chosen while the task before it ran (one may be queued), but not earlier.
    """
    ready_s = _ready_times(problem, found)
    for position in range(2, len(ran)):
        task, chosen_s = ran[position], found.start_s[ran[position - 1]]
        later = ran[position + 1 :]
        passed = later[(rank[later] < rank[task]) & (ready_s[later] < chosen_s - latency_s)]
        need(
            not len(passed),
            f"device {name!r} ran {problem.graph.task_name(int(task))!r} before one of higher priority that was ready",
        )


def _ready_times(problem: Problem, found: RunResult) -> np.ndarray:
    """Return when the parents of each task had ended; what moves takes at least that long."""
    ready = np.zeros(problem.num_tasks)
    source, target, _ = problem.graph.edges
    np.maximum.at(ready, target, found.end_s[source])
    moves = np.zeros(problem.num_tasks, dtype=bool)
    size = problem.graph.edges[2]
    moves[target[(size > 0) & (found.device[source] != found.device[target])]] = True
    return np.where(moves, np.inf, ready)  # when its data came is not in the result
