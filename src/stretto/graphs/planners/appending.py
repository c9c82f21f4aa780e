"""Planners that append each task in a fixed order by a simple rule: HLFET, MCT, MET, OLB, and baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.kernels.construct.appending import (
    BY_DURATION,
    BY_FINISH,
    BY_IDLE,
    BY_START,
)
from stretto.graphs.planners import placing
from stretto.graphs.planners.listing import (
    DevicePlanner,
    by_arrival,
    by_priority,
    plan_assigned,
    static_levels,
    timed_plan,
)


@dataclass(frozen=True)
class Hlfet(DevicePlanner):
    """Highest Level First with Estimated Times (Adam, Chandy, Dickson 1974).

    The static level leaves transfers out (mean durations). Tasks are appended, not inserted.
    Equal starts: earlier finish, which equal devices leave open, then lower index. O(E m).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        order = by_priority(arrays, static_levels(arrays))
        return timed_plan(order, *placing.by_rule(problem, order, BY_START))


@dataclass(frozen=True)
class Mct(DevicePlanner):
    """Minimum Completion Time (Armstrong, Hensgen, Kidd 1998).

    Tasks by arrival and topological order, each appended to the device on which it finishes
    first. Equal finishes: lower index. O(E m).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = by_arrival(problem)
        return timed_plan(order, *placing.by_rule(problem, order, BY_FINISH))


@dataclass(frozen=True)
class Met(DevicePlanner):
    """Minimum Execution Time (Armstrong, Hensgen, Kidd 1998).

    Tasks by arrival and topological order, each on the device with the shortest duration, however
    busy. Equal durations: earlier finish, so that equal devices share the load, then lower index.
    O(E m).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = by_arrival(problem)
        return timed_plan(order, *placing.by_rule(problem, order, BY_DURATION))


@dataclass(frozen=True)
class Olb(DevicePlanner):
    """Opportunistic Load Balancing (Armstrong, Hensgen, Kidd 1998).

    Tasks by arrival and topological order, each on the device that becomes idle first, whatever it
    takes there. Equally idle: earlier finish, then lower index. O(E m).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = by_arrival(problem)
        return timed_plan(order, *placing.by_rule(problem, order, BY_IDLE))


@dataclass(frozen=True)
class RoundRobin(DevicePlanner):
    """Each task, by arrival and topological order, on the next device in turn that can run it.

    A baseline that uses neither durations nor data. O(n + E), and up to O(n m) where few
    devices can run a task.
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        order = np.ascontiguousarray(by_arrival(problem))
        return plan_assigned(problem, placing.devices_in_turn(problem, order), order)


@dataclass(frozen=True)
class RandomPlacement(DevicePlanner):
    """Each task on a random device that can run it, in a random topological order, by the seed.

    The floor that any policy must stand above. O(n m + E).
    """

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        arrays = problem.arrays
        urgency = np.random.default_rng([budget.seed, 1]).random(problem.num_tasks)
        order = by_priority(arrays, urgency)
        return plan_assigned(problem, placing.devices_at_random(problem, order, seeded(budget.seed, 1)), order)


@dataclass(frozen=True)
class SingleDevice(DevicePlanner):
    """All tasks, by arrival and topological order, on the device that runs them in the least time.

    Where transfers are expensive this is hard to beat. It needs a device that can run every task;
    equal devices: lower index. What its memory cannot hold goes to the next best device.
    O(n C + E) for C classes of devices.
    """

    def supports(self, problem: Problem) -> str | None:
        usual = super().supports(problem)
        if usual is None and not np.isfinite(_totals(problem)).any():
            return "no single device can run every task of the graph"
        return usual

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        totals = _totals(problem)
        if not np.isfinite(totals).any():
            raise Infeasible(f"no single device of {problem.cluster.name!r} can run every task; use heft")
        order = np.ascontiguousarray(by_arrival(problem))
        by_total = np.argsort(totals[problem.arrays.device_class], kind="stable").astype(np.int32)
        return plan_assigned(problem, placing.fewest_devices(problem, order, by_total), order)


def _totals(problem: Problem) -> Floats:
    """Seconds that a device of each class needs for all tasks; inf where it cannot run them."""
    totals: Floats = problem.arrays.duration.sum(axis=0)
    return totals
