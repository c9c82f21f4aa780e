"""Min-min: the ready task that can finish first, where it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.rounds import MIN_MIN, schedule_in_rounds
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class MinMin:
    """Min-min (Ibarra, Kim 1977; for task graphs: on the ready tasks).

    Each round finds the earliest finish of every ready task and commits the earliest of all.
    Equal finishes: lower index. O(n r) and up to O(n r m) for r ready tasks.
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        no_levels = np.empty(0)
        return timed_plan(*schedule_in_rounds(problem.arrays, MIN_MIN, no_levels))
