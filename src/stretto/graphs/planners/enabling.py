"""FCP and FLB: planners that weigh two candidates instead of all devices or all ready tasks."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import AveragingPlanner, MeanLink, b_levels, by_priority, timed_plan


@dataclass(frozen=True)
class Fcp(AveragingPlanner):
    """Fast Critical Path (Radulescu, van Gemund 1999).

    The ready task of the highest b-level starts on the device that is idle first or on the one
    that its last data comes from, whichever lets it start earlier. Devices that cannot run it do
    not count. The paper's bounded queue of ready tasks is not needed here. On nodes, the first of
    the two is where enough for the task is free first. Equal ones: lower index. O(n log n + E m).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        order = by_priority(arrays, b_levels(arrays, MeanLink.of(problem, self.average)))
        message = MeanLink.of(problem, "distinct")  # data that is sent leaves its device
        return timed_plan(order, *placing.on_two(problem, order, message.latency_s, message.inv_bandwidth))


@dataclass(frozen=True)
class Flb(AveragingPlanner):
    """Fast Load Balancing (Radulescu, van Gemund 1999).

    Each round commits the earlier start of two candidates: the task that waits for data from a
    device which is idle before it comes, on that device; and the task whose data is there first,
    on the device that is idle first. On equal devices this is ETF's choice. Equal starts: higher
    b-level, then lower index. O(n r) for r ready tasks. On nodes, and within memory limits, all pairs are weighed as
    ETF does: which of them is idle first depends on what the task needs.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        level = b_levels(arrays, MeanLink.of(problem, self.average))
        message = MeanLink.of(problem, "distinct")  # data that is sent leaves its device
        return timed_plan(*placing.load_balancing(problem, level, message.latency_s, message.inv_bandwidth))
