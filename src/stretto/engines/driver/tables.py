"""The problem as plain lists: the driver touches single entries, where lists are several times faster than arrays."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stretto.core.csr import Ints
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidPlan


@dataclass(frozen=True, eq=False)
class Tables:
    """Who reads and makes what, and how long each task takes on each class of devices."""

    reads: list[list[int]]  # [n] objects that a task reads
    outputs: list[list[int]]  # [n] objects that it makes
    readers: list[list[int]]  # [O] tasks that read an object
    producer: list[int]  # [O]
    size: list[float]  # [O]
    release_s: list[float]  # [n]
    duration_s: list[list[float]]  # [n][C]
    device_class: list[int]  # [m]

    @staticmethod
    def of(problem: Problem) -> Tables:
        arrays = problem.arrays
        out_ptr = arrays.out_ptr.tolist()
        return Tables(
            reads=_rows(arrays.in_object, arrays.in_ptr),
            outputs=[list(range(a, b)) for a, b in pairwise(out_ptr)],
            readers=_rows(arrays.object_reader, arrays.object_ptr),
            producer=arrays.object_task.tolist(),
            size=arrays.object_size.tolist(),
            release_s=arrays.release.tolist(),
            duration_s=arrays.duration.tolist(),
            device_class=arrays.device_class.tolist(),
        )

    def can_run(self, task: int, device: int) -> bool:
        return self.seconds(task, device) < math.inf

    def seconds(self, task: int, device: int) -> float:
        return self.duration_s[task][self.device_class[device]]


def _rows(values: Ints, ptr: Ints) -> list[list[int]]:
    flat, at = values.tolist(), ptr.tolist()
    return [flat[a:b] for a, b in pairwise(at)]


def ranks(problem: Problem, plan: Plan, discipline: Discipline) -> list[int]:
    """Return each task's rank among those of its device.

    Under ``sequence`` the ranks are a topological order of the whole graph that keeps the order of every device. So
    tasks may later be merged into the sequences of other devices by rank, and nobody waits in a circle.
    """
    rank = plan.rank
    source, target, _ = problem.graph.edges
    if discipline == "work-conserving" or bool(np.all(rank[source] < rank[target])):
        found: list[int] = rank.tolist()
        return found
    return _linearised(problem, plan)


def _linearised(problem: Problem, plan: Plan) -> list[int]:
    n = problem.num_tasks
    rank = plan.rank.tolist()
    source, target, _ = problem.graph.edges
    follows: list[list[int]] = [[] for _ in range(n)]
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        follows[u].append(v)
    last: dict[int, int] = {}
    assignment = plan.assignment.tolist()
    for task in plan.order.tolist():
        device = assignment[task]
        if device in last:
            follows[last[device]].append(task)
        last[device] = task
    waits = [0] * n
    for after in follows:
        for v in after:
            waits[v] += 1
    free = [(rank[t], t) for t in range(n) if waits[t] == 0]
    heapq.heapify(free)
    found = [-1] * n
    for position in range(n):
        if not free:
            stuck = next(t for t in plan.order.tolist() if found[t] < 0)
            raise InvalidPlan(f"the planned order deadlocks: {problem.graph.task_name(stuck)!r} can never start")
        _, task = heapq.heappop(free)
        found[task] = position
        for v in follows[task]:
            waits[v] -= 1
            if waits[v] == 0:
                heapq.heappush(free, (rank[v], v))
    return found
