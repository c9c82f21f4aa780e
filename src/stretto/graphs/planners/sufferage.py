"""Sufferage: the ready task that would lose most without its best device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.rounds import SUFFERAGE, schedule_in_rounds
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Sufferage:
    """Sufferage (Maheswaran, Ali, Siegel, Hensgen, Freund 1999; on the ready tasks).

    Each round commits the ready task with the largest difference between its second-best and
    its best earliest finish. A task with one possible device goes first. Equal losses: lower index.
    O(n r) and up to O(n r m) for r ready tasks.
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        no_levels = np.empty(0)
        return timed_plan(*schedule_in_rounds(problem.arrays, SUFFERAGE, no_levels))
