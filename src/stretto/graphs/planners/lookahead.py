"""Lookahead: HEFT that places the readers of each task on trial before it decides."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core import argument_checks as checks
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import AveragingPlanner, MeanLink, b_levels, by_priority, timed_plan


@dataclass(frozen=True)
class Lookahead(AveragingPlanner):
    """HEFT with one step of look-ahead (Bittencourt, Sakellariou, Madeira 2010).

    Tasks by descending upward rank. Each device is tried for the task: its readers are placed
    after it by earliest finish, as far as their other data is known, and the device with the least
    latest finish among them wins. Equal ones: earlier finish of the task, then lower index.
    O(E m²) gap searches. On nodes each reader is tried alone: there they mostly fit side by side.

    Attributes
    ----------
    max_readers
        Of a task with more readers only so many, of the highest ranks, are tried; the paper tries
        all, which takes too long behind a task that a whole graph reads from.
    """

    max_readers: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least(1, max_readers=self.max_readers)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        rank = b_levels(arrays, MeanLink.of(problem, self.average))
        order = by_priority(arrays, rank)
        return timed_plan(order, *placing.with_lookahead(problem, order, rank, self.max_readers))
