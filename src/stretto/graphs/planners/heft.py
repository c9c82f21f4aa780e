"""HEFT: the task with the longest way to go, on the device that ends it first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.insertion import place_by_finish
from stretto.graphs.planners.averages import Average, MeanLink, b_levels, by_priority, check_average
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Heft:
    """Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002).

    Tasks by descending upward rank (mean durations and mean transfers along the longest
    path to the end); each goes where it finishes first, in an idle gap where one is long
    enough. Equal ranks and equal finishes: lower index. O(E m) without the gap searches,
    which skip whole blocks of gaps.

    Attributes
    ----------
    average
        Whether the mean transfer counts the free pairs of a device with itself (``all``),
        or only ``distinct`` devices, as the paper has it.
    """

    average: Average = "all"

    def __post_init__(self) -> None:
        check_average(self.average)

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        rank = b_levels(arrays, MeanLink.of(problem, self.average))
        order = by_priority(arrays, rank)
        nothing = np.empty(0, dtype=np.int32), np.empty((0, 0))
        return timed_plan(order, *place_by_finish(arrays, order, *nothing))
