"""HEFT: the task with the longest way to go, on the device that ends it first."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import AveragingPlanner, MeanLink, b_levels, by_priority, timed_plan


@dataclass(frozen=True)
class Heft(AveragingPlanner):
    """Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002).

    Tasks by descending upward rank (mean durations and mean transfers along the longest
    path to the end); each goes where it finishes first, in an idle gap where one is long
    enough. Equal ranks and equal finishes: lower index. O(E m) without the gap searches,
    which skip whole blocks of gaps.
    The paper's mean transfer is that between ``distinct`` devices.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        rank = b_levels(arrays, MeanLink.of(problem, self.average))
        order = by_priority(arrays, rank)
        return timed_plan(order, *placing.by_finish(problem, order))
