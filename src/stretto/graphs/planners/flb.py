"""FLB: the earliest start of any ready task, found among two candidates."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.enabling import fast_load_balancing
from stretto.graphs.planners.averages import Average, MeanLink, b_levels, check_average
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Flb:
    """Fast Load Balancing (Radulescu, van Gemund 1999).

    Each round commits the earlier start of two candidates: the task that waits for data from a
    device which is idle before it comes, on that device; and the task whose data is there first,
    on the device that is idle first. On equal devices this is ETF's choice. Equal starts: higher
    b-level, then lower index. O(n r) for r ready tasks.

    Attributes
    ----------
    average
        Whether the mean transfer counts the free pairs of a device with itself.
    """

    average: Average = "all"

    def __post_init__(self) -> None:
        check_average(self.average)

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        level = b_levels(arrays, MeanLink.of(problem, self.average))
        message = MeanLink.of(problem, "distinct")  # data that is sent leaves its device
        return timed_plan(*fast_load_balancing(arrays, level, message.latency_s, message.inv_bandwidth))
