"""Random: any device, any order that the graph allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.domain.plan import Plan
from stretto.domain.planner import Budget, no_projects
from stretto.domain.problem import Problem
from stretto.kernels.appending import at_random
from stretto.kernels.rng import seeded
from stretto.policies.placement.averages import by_priority
from stretto.policies.placement.given import plan_assigned


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
