"""A plan as jobs: who waits for whom, in which order they are submitted, and what each asks for."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.slurm.engine.slots import Slot
from stretto.engines.tables import ranks
from stretto.engines.work import Work
from stretto.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Chart:
    """What the plan means to Slurm.

    Attributes
    ----------
    needs
        Per task, those that must have ended well before it.
    after
        Per task, those that must be over, well or not: under ``sequence`` the one before it on its device.
    dependents
        Per task, those that name it in one of the above.
    order
        All tasks, each behind those that it waits for.
    priority
        Per task, 1 for the last; None where dependencies keep the order by themselves.
    """

    needs: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    dependents: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    priority: tuple[int, ...] | None
    seconds: tuple[float, ...]
    slots: tuple[Slot, ...]  # by task

    @staticmethod
    def of(work: Work, plan: Plan, problem: Problem, device_slots: list[Slot], discipline: Discipline) -> Chart:
        """Work out the jobs of a plan."""
        n = problem.num_tasks
        assignment = plan.assignment.tolist()
        slots = tuple(device_slots[device] for device in assignment)
        rank = ranks(problem, plan, discipline)
        after: list[tuple[int, ...]] = [()] * n
        if discipline == "sequence":
            last: dict[int, int] = {}
            for task in sorted(range(n), key=rank.__getitem__):
                before = last.get(assignment[task])
                after[task] = () if before is None or before in work.parents[task] else (before,)
                last[assignment[task]] = task
        elif not all(slot.is_whole_node for slot in slots):
            raise InvalidInput(
                "Slurm cannot keep devices that share a node apart under work-conserving: "
                "use the discipline sequence, or one device per node",
                field="discipline",
            )
        dependents: list[list[int]] = [[] for _ in range(n)]
        for task in range(n):
            for other in (*work.parents[task], *after[task]):
                dependents[other].append(task)
        order = _order([len(work.parents[task]) + len(after[task]) for task in range(n)], dependents, rank)
        seconds = problem.device_duration[range(n), assignment].tolist()
        priority = tuple(n - position for position in rank) if discipline == "work-conserving" else None
        return Chart(
            work.parents, tuple(after), tuple(map(tuple, dependents)), tuple(order), priority, tuple(seconds), slots
        )


def minutes(seconds: float) -> int:
    """Return the time limit of a job as ``sbatch`` counts it, rounded up."""
    return max(1, math.ceil(seconds / 60.0))


def _order(waits: list[int], dependents: list[list[int]], rank: list[int]) -> list[int]:
    """Return a topological order that follows the ranks where it is free to."""
    waits = list(waits)
    free = [(rank[task], task) for task, count in enumerate(waits) if count == 0]
    heapq.heapify(free)
    order = []
    while free:
        _, task = heapq.heappop(free)
        order.append(task)
        for other in dependents[task]:
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(free, (rank[other], other))
    assert len(order) == len(waits)  # ranks() has refused circles
    return order
