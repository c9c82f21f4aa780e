"""Planners that look at all ready tasks in every round and commit one: ETF, DLS, min-min, max-min, sufferage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.ranks import median_durations, upward_ranks
from stretto.graphs.kernels.construct.rounds import DLS, ETF, MAX_MIN, MIN_MIN, SUFFERAGE
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import DevicePlanner, static_levels, timed_plan

_NO_LEVELS = np.empty(0)


@dataclass(frozen=True)
class Etf(DevicePlanner):
    """Earliest Task First (Hwang, Chow, Anger, Lee 1989).

    Each round commits the pair of ready task and device with the earliest start. Equal starts:
    higher static level (mean durations), then earlier finish, which the paper's equal devices
    leave open, then lower index. O(n r) and up to O(n r m) for r ready tasks.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        return timed_plan(*placing.in_rounds(problem, ETF, static_levels(arrays)))


@dataclass(frozen=True)
class Dls(DevicePlanner):
    """Dynamic Level Scheduling (Sih, Lee 1993).

    The dynamic level of a task on a device is its static level, minus its start there, plus what
    the device is faster than the median: ``SL - start + (median - duration)``. Static levels are
    in median durations too. Each round commits the highest. Equal levels: lower index.
    O(n r) and up to O(n r m) for r ready tasks.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        median = median_durations(arrays)
        # For one task the highest level is where it finishes first, so the kernel needs only
        # the part of the level that does not depend on the device.
        level = upward_ranks(arrays, median, 0.0, 0.0) + median
        return timed_plan(*placing.in_rounds(problem, DLS, level))


@dataclass(frozen=True)
class MinMin(DevicePlanner):
    """Min-min (Ibarra, Kim 1977; for task graphs: on the ready tasks).

    Each round finds the earliest finish of every ready task and commits the earliest of all.
    Equal finishes: lower index. O(n r) and up to O(n r m) for r ready tasks.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        return timed_plan(*placing.in_rounds(problem, MIN_MIN, _NO_LEVELS))


@dataclass(frozen=True)
class MaxMin(DevicePlanner):
    """Max-min (Ibarra, Kim 1977; for task graphs: on the ready tasks).

    Each round finds the earliest finish of every ready task and commits the latest of these,
    so that long tasks are not left over. Equal finishes: lower index. O(n r) and up to
    O(n r m) for r ready tasks.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        return timed_plan(*placing.in_rounds(problem, MAX_MIN, _NO_LEVELS))


@dataclass(frozen=True)
class Sufferage(DevicePlanner):
    """Sufferage (Maheswaran, Ali, Siegel, Hensgen, Freund 1999; on the ready tasks).

    Each round commits the ready task with the largest difference between its second-best and
    its best earliest finish. A task with one possible device goes first. Equal losses: lower index.
    O(n r) and up to O(n r m) for r ready tasks.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        return timed_plan(*placing.in_rounds(problem, SUFFERAGE, _NO_LEVELS))
