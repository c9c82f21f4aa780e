"""HLFET: the ready task of the highest static level, on the device where it starts first."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.appending import BY_START, append_by_rule
from stretto.graphs.planners.averages import by_priority, static_levels
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Hlfet:
    """Highest Level First with Estimated Times (Adam, Chandy, Dickson 1974).

    The static level leaves transfers out (mean durations). Tasks are appended, not inserted.
    Equal starts: earlier finish, which equal devices leave open, then lower index. O(E m).
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        order = by_priority(arrays, static_levels(arrays))
        return timed_plan(order, *append_by_rule(arrays, order, BY_START))
