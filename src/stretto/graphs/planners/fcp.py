"""FCP: the ready task of the highest b-level, on one of two devices."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.enabling import fast_critical_path
from stretto.graphs.planners.averages import Average, MeanLink, b_levels, by_priority, check_average
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Fcp:
    """Fast Critical Path (Radulescu, van Gemund 1999).

    The ready task of the highest b-level starts on the device that is idle first or on the one
    that its last data comes from, whichever lets it start earlier. Devices that cannot run it do
    not count. The paper's bounded queue of ready tasks is not needed here. Equal ones: lower
    index. O(n log n + E m).

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
        order = by_priority(arrays, b_levels(arrays, MeanLink.of(problem, self.average)))
        message = MeanLink.of(problem, "distinct")  # data that is sent leaves its device
        return timed_plan(order, *fast_critical_path(arrays, order, message.latency_s, message.inv_bandwidth))
