"""Where searches start: the plans of quick heuristics, and simple bounds to know when to stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto import catalog, registry
from stretto.core.csr import Floats
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.bounds.bound import QUICK_FROM, bound
from stretto.graphs.kernels.search.decode import decode, decode_greedy, tails
from stretto.graphs.search.anytime import Solution


def floor_s(problem: Problem, tail: Floats) -> float:
    """Return a cheap lower bound: the longest path, with what must be moved on it, and the work per device.

    Better bounds there are, but hardly a plan that meets them to the last digit.
    """
    p = problem.arrays
    least = p.duration.min(axis=1)
    path = float(np.max(p.release + least + tail))
    area = float(least.sum()) / problem.num_devices
    # Adding up in another order may round up: stay below what any schedule can reach.
    floor = max(path, area) * (1 - 1e-12)
    if p.duration.size > QUICK_FROM:
        return floor
    return max(floor, bound(problem, methods=["critical-path"]).value_s)


def starting_points(problem: Problem, names: Sequence[str], seed: int) -> list[Solution]:
    """Return the plans of the named heuristics and a greedy list schedule, best first."""
    p = problem.arrays
    start, finish = np.empty(problem.num_tasks), np.empty(problem.num_tasks)
    found = [_greedy(problem)]
    for name in names:
        planner = registry.construct("policy", name, catalog.PLANNERS, {})
        if planner.supports(problem) is None:
            plan = planner.plan(problem, Budget(seed=seed))
            makespan = decode(p, plan.assignment, plan.order, start, finish)
            found.append(Solution(makespan, plan.assignment, plan.order))
    return sorted(found, key=lambda solution: solution.makespan_s)


def _greedy(problem: Problem) -> Solution:
    """List scheduling by longest remaining path, each task where it ends first."""
    p = problem.arrays
    n = problem.num_tasks
    remaining = tails(p) + p.duration.min(axis=1)
    position = np.empty(n, dtype=np.int32)
    position[p.topo] = np.arange(n, dtype=np.int32)
    order = np.lexsort((position, -remaining)).astype(np.int32)
    assignment = np.zeros(n, dtype=np.int32)
    makespan = decode_greedy(p, assignment, order, np.empty(n), np.empty(n))
    return Solution(makespan, assignment, order)
