"""MET: each task as it comes, where it runs fastest."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.appending import BY_DURATION, append_by_rule
from stretto.graphs.planners.averages import by_arrival
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Met:
    """Minimum Execution Time (Armstrong, Hensgen, Kidd 1998).

    Tasks by arrival and topological order, each on the device with the shortest duration, however
    busy. Equal durations: earlier finish, so that equal devices share the load, then lower index.
    O(E m).
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = by_arrival(problem)
        return timed_plan(order, *append_by_rule(problem.arrays, order, BY_DURATION))
