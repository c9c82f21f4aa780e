"""Round robin: the devices in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.appending import in_turn
from stretto.graphs.planners.averages import by_arrival
from stretto.graphs.planners.given import plan_assigned


@dataclass(frozen=True)
class RoundRobin:
    """Each task, by arrival and topological order, on the next device in turn that can run it.

    A baseline that knows neither durations nor data. O(n + E), and up to O(n m) where few
    devices can run a task.
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = np.ascontiguousarray(by_arrival(problem))
        return plan_assigned(problem, in_turn(problem.arrays, order), order)
