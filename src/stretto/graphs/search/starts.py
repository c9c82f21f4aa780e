"""What searches share: the plans that they start from, a bound at which they stop, and how their chains are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto import catalog, registry
from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.bounds.area import least_area
from stretto.graphs.bounds.bound import QUICK_FROM, bound
from stretto.graphs.kernels.search.decode import decode, decode_greedy, tails
from stretto.graphs.kernels.search.decode_packed import decode_packed, new_scratch
from stretto.graphs.memory.limits import binding_needs
from stretto.graphs.planners.listing import DevicePlanner
from stretto.graphs.search.anytime import Chain, Solution, run_chains


@dataclass(frozen=True)
class SearchPlanner(DevicePlanner):
    """A search from the plans of heuristics, with one chain per core.

    Parameters
    ----------
    max_evaluations
        Stop after this many moves of all chains; the result is then the same on every run with a seed.
    starts
        The policies whose plans the search starts from.
    """

    max_evaluations: int | None = None
    starts: tuple[str, ...] = ("heft", "peft")

    def __post_init__(self) -> None:
        if self.max_evaluations is not None:
            checks.at_least(1, max_evaluations=self.max_evaluations)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        tail = tails(problem.arrays)
        starts = starting_points(problem, self.starts, budget.seed)
        chains = [self.chain(problem, tail, starts, budget, stream) for stream in range(max(1, budget.num_threads))]
        floor = floor_s(problem, tail)
        return run_chains(chains, budget, max_evaluations=self.max_evaluations, floor_s=floor).plan()

    def is_limited(self, problem: Problem) -> bool:
        """Say whether proposals must be executed within capacities or memory (``search/limited.py``)."""
        return problem.packing is not None or binding_needs(problem) is not None

    def chain(self, problem: Problem, tail: Floats, starts: list[Solution], budget: Budget, stream: int) -> Chain:
        """Return the chain of one core."""
        raise NotImplementedError


def floor_s(problem: Problem, tail: Floats) -> float:
    """Return a cheap lower bound: the longest path, with what must be moved on it, and the work per device.

    Better bounds there are, but hardly a plan that meets them to the last digit.
    """
    p = problem.arrays
    least = p.duration.min(axis=1)
    path = float(np.max(p.release + least + tail))
    packing = problem.packing
    area = float(least.sum()) / problem.num_devices if packing is None else least_area(problem, packing)
    # Adding up in another order may round up: stay below what any schedule can reach.
    floor = max(path, area) * (1 - 1e-12)
    if p.duration.size > QUICK_FROM:
        return floor
    return max(floor, bound(problem, methods=["critical-path"]).value_s)


def starting_points(problem: Problem, names: Sequence[str], seed: int) -> list[Solution]:
    """Return the plans of the named heuristics and a greedy list schedule, best first; all run within memory."""
    is_bound = binding_needs(problem) is not None
    found = [_greedy(problem)] if problem.packing is None and not is_bound else []
    for name in names:
        planner = registry.construct("policy", name, catalog.PLANNERS, {})
        if planner.supports(problem) is None:
            plan = planner.plan(problem, Budget(seed=seed))
            makespan = decoded_s(problem, plan)
            found.append(Solution(makespan, plan.assignment, plan.order))
    if is_bound:
        from stretto.graphs.search.limited import starts_within

        return starts_within(problem, found, seed)
    return sorted(found, key=lambda solution: solution.makespan_s)


def decoded_s(problem: Problem, plan: Plan) -> float:
    """Return the makespan of a plan with a topological order, in sequence and without contention."""
    start, finish = np.empty(problem.num_tasks), np.empty(problem.num_tasks)
    if problem.packing is None:
        return float(decode(problem.arrays, plan.assignment, plan.order, start, finish))
    scratch = new_scratch(problem.packing.need, problem.packing.capacity)
    return float(decode_packed(problem.arrays, scratch, plan.assignment, plan.order, start, np.inf, start, finish))


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
