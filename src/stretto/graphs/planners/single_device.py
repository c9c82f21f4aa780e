"""Single device: everything in one place, without transfers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import Infeasible
from stretto.graphs.planners.averages import by_arrival
from stretto.graphs.planners.given import plan_assigned


@dataclass(frozen=True)
class SingleDevice:
    """All tasks, by arrival and topological order, on the device that runs them in the least time.

    Where transfers are dear this is hard to beat. It needs a device that can run every task;
    equal devices: lower index. O(n C + E) for C classes of devices.
    """

    def supports(self, problem: Problem) -> str | None:
        usual = no_projects(problem)
        if usual is None and not np.isfinite(_totals(problem)).any():
            return "no single device can run every task of the graph"
        return usual

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        totals = _totals(problem)
        if not np.isfinite(totals).any():
            raise Infeasible(f"no single device of {problem.cluster.name!r} can run every task; use heft")
        best = int(np.argmin(totals[problem.arrays.device_class]))
        assignment = np.full(problem.num_tasks, best, dtype=np.int32)
        return plan_assigned(problem, assignment, np.ascontiguousarray(by_arrival(problem)))


def _totals(problem: Problem) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds that a device of each class needs for all tasks; inf where it cannot run them."""
    totals: np.ndarray[tuple[int], np.dtype[np.float64]] = problem.arrays.duration.sum(axis=0)
    return totals
