"""DLS: the pair of ready task and device with the highest dynamic level."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.ranks import median_durations, upward_ranks
from stretto.graphs.kernels.construct.rounds import DLS, schedule_in_rounds
from stretto.graphs.planners.timed import timed_plan


@dataclass(frozen=True)
class Dls:
    """Dynamic Level Scheduling (Sih, Lee 1993).

    The dynamic level of a task on a device is its static level, minus its start there, plus what
    the device is faster than the median: ``SL - start + (median - duration)``. Static levels are
    in median durations too. Each round commits the highest. Equal levels: lower index.
    O(n r) and up to O(n r m) for r ready tasks.
    """

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        median = median_durations(arrays)
        # For one task the highest level is where it finishes first, so the kernel needs only
        # the part of the level that does not depend on the device.
        level = upward_ranks(arrays, median, 0.0, 0.0) + median
        return timed_plan(*schedule_in_rounds(arrays, DLS, level))
