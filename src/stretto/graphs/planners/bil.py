"""BIL: tasks and devices by the best imaginary level."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.imaginary import schedule_by_imaginary_level
from stretto.graphs.kernels.construct.optimistic import optimistic_costs
from stretto.graphs.planners.peft import table_fits
from stretto.graphs.planners.timed import timed_plan


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
        arrays = problem.arrays
        return timed_plan(*schedule_by_imaginary_level(arrays, optimistic_costs(arrays)))
