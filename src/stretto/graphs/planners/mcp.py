"""MCP: tasks by their latest possible start, each where it starts first, with insertion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import AveragingPlanner, MeanLink, b_levels, by_priority, timed_plan


@dataclass(frozen=True)
class Mcp(AveragingPlanner):
    """Modified Critical Path (Wu, Gajski 1990).

    The latest start of a task is the critical path minus its b-level; the smallest goes first.
    The paper breaks ties by comparing the sorted latest starts of all descendants; here the
    most urgent reader decides, then the lower index, which keeps it O(E m) with fast gap searches.
    Equal starts on devices: earlier finish, then lower index.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        level = b_levels(arrays, MeanLink.of(problem, self.average))
        order = by_priority(arrays, level, _most_urgent_reader(problem, level))
        return timed_plan(order, *placing.by_start(problem, order))


def _most_urgent_reader(problem: Problem, level: Floats) -> Floats:
    """The highest b-level among the readers of each task, zero where there are none."""
    source, reader, _ = problem.graph.edges
    urgent = np.zeros(problem.num_tasks)
    np.maximum.at(urgent, source, level[reader])
    return urgent
