"""ETF: of all ready tasks on all devices, the pair that starts first."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.rounds import ETF, schedule_in_rounds
from stretto.graphs.planners.averages import static_levels
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Etf:
    """Earliest Task First (Hwang, Chow, Anger, Lee 1989).

    Each round commits the pair of ready task and device with the earliest start. Equal starts:
    higher static level (mean durations), then earlier finish, which the paper's equal devices
    leave open, then lower index. O(n r) and up to O(n r m) for r ready tasks.
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        return timed_plan(*schedule_in_rounds(arrays, ETF, static_levels(arrays)))
