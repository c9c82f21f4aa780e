"""PEFT and BIL: planners with a table of the cheapest way to the end behind each device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.construct.optimistic import mean_rows, optimistic_costs, optimistic_costs_by_mean
from stretto.graphs.kernels.construct.ranks import mean_durations
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import MeanLink, by_priority, timed_plan

#: Entries of a table of tasks by devices; 1 GB of float64.
MAX_TABLE = 125_000_000


def table_fits(problem: Problem) -> str | None:
    """The ``supports`` of planners that need a value per task and device."""
    if problem.num_tasks * problem.num_devices > MAX_TABLE:
        return f"{problem.num_tasks} tasks by {problem.num_devices} devices need a table beyond memory; use heft"
    return no_projects(problem)


@dataclass(frozen=True)
class Peft:
    """Predict Earliest Finish Time (Arabnejad, Barbosa 2014).

    The optimistic cost table holds, per task and device, the least time from the task's end to
    the end of the graph were every device idle. Of the ready tasks the one with the largest mean
    entry goes first, to the device where its finish (with insertion) plus its entry is least.
    Equal entries: the longer mean duration, then lower index. The paper leaves this open, but all
    tasks without readers have entry zero: taking them by index costs 0.5 % of makespan on
    5,000 tasks and 5 % on 500. O(E m²).

    Attributes
    ----------
    links
        ``actual``: the table uses each link's own transfer time. ``mean``: one mean time between
        distinct devices, as in the paper, whose examples have equal links; then O(E m).
    """

    links: Literal["actual", "mean"] = "actual"

    def __post_init__(self) -> None:
        if self.links not in ("actual", "mean"):
            raise InvalidInput(f"{self.links!r} is neither 'actual' nor 'mean'", field="links")

    def supports(self, problem: Problem) -> str | None:
        return table_fits(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        if self.links == "actual":
            table = optimistic_costs(arrays)
        else:
            link = MeanLink.of(problem, "distinct")
            table = optimistic_costs_by_mean(arrays, link.latency_s, link.inv_bandwidth)
        order = by_priority(arrays, mean_rows(arrays, table), mean_durations(arrays))
        return timed_plan(order, *placing.by_finish(problem, order, bias=table))


@dataclass(frozen=True)
class Bil:
    """Best Imaginary Level (Oh, Ha 1996).

    The level of a task on a device is the shortest way from its start to the end of the graph,
    were every device idle (with each link's own transfer time). Start plus level is an imaginary
    makespan. With r ready tasks, the one whose r-th best makespan is largest goes first, to the
    device where its makespan, revised for the crowd of ready tasks, is least. Equal ones: lower
    index. O(E m² + n r m), and O(n m³) while fewer tasks are ready than there are devices.
    """

    def supports(self, problem: Problem) -> str | None:
        return table_fits(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        return timed_plan(*placing.by_imaginary_level(problem, optimistic_costs(problem.arrays)))
