"""Lookahead: HEFT that places the readers of each task on trial before it decides."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.construct.lookahead import place_with_lookahead
from stretto.graphs.planners.averages import Average, MeanLink, b_levels, by_priority, check_average
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Lookahead:
    """HEFT with one step of look-ahead (Bittencourt, Sakellariou, Madeira 2010).

    Tasks by descending upward rank. Each device is tried for the task: its readers are placed
    after it by earliest finish, as far as their other data is known, and the device with the least
    latest finish among them wins. Equal ones: earlier finish of the task, then lower index.
    O(E m²) gap searches.

    Attributes
    ----------
    average
        Whether the mean transfer counts the free pairs of a device with itself.
    max_readers
        Of a task with more readers only so many, of the highest ranks, are tried; the paper tries
        all, which takes too long behind a task that a whole graph reads from.
    """

    average: Average = "all"
    max_readers: int = 16

    def __post_init__(self) -> None:
        check_average(self.average)
        if self.max_readers < 1:
            raise InvalidInput(f"{self.max_readers} must be at least 1", field="max_readers")

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        rank = b_levels(arrays, MeanLink.of(problem, self.average))
        order = by_priority(arrays, rank)
        return timed_plan(order, *place_with_lookahead(arrays, order, rank, self.max_readers))
