"""Critical path: the ready task with the longest way to go, where it can start first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.kernels.rng import seeded
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import (
    Average,
    DevicePlanner,
    MeanLink,
    b_levels,
    by_priority,
    check_average,
    timed_plan,
)


@dataclass(frozen=True)
class CriticalPath(DevicePlanner):
    """The heuristic that Doppler's networks imitate first, and one of its baselines (Kwok, Ahmad 1999).

    The ready task of the highest b-level goes to the device with the earliest start; equal tasks
    and equal devices are drawn at random by the seed. Of all repetitions the shortest plan is kept.
    O(E m) each.

    Attributes
    ----------
    repetitions
        How often to draw; Doppler's own runs draw 50 times.
    average
        Whether the mean transfer counts the free pairs of a device with itself.
    """

    repetitions: int = 50
    average: Average = "all"

    def __post_init__(self) -> None:
        check_average(self.average)
        checks.at_least(1, repetitions=self.repetitions)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        level = b_levels(arrays, MeanLink.of(problem, self.average))
        draws = np.random.default_rng([budget.seed, 0])
        state = seeded(budget.seed)
        best = None
        for _ in range(self.repetitions):
            order = by_priority(arrays, level, draws.random(problem.num_tasks))
            times = (order, *placing.by_start_at_random(problem, order, state))
            if best is None or times[3].max() < best[3].max():
                best = times
        assert best is not None
        return timed_plan(*best, evaluations=self.repetitions)
