"""Random: any device, any order that the graph allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.kernels.rng import seeded
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.appending import at_random
from stretto.graphs.planners.averages import by_priority
from stretto.graphs.planners.given import plan_assigned


@dataclass(frozen=True)
class RandomPlacement:
    """Each task on a random device that can run it, in a random topological order, by the seed.

    The floor that any policy must stand above. O(n m + E).
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        urgency = np.random.default_rng([budget.seed, 1]).random(problem.num_tasks)
        order = by_priority(arrays, urgency)
        return plan_assigned(problem, at_random(arrays, seeded(budget.seed, 1)), order)
