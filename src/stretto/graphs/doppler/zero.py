"""Doppler without training: shipped weights propose, a short search improves, list planners are the fallback."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from stretto import catalog, registry
from stretto.core import argument_checks as checks
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.doppler.generalist import load_policies
from stretto.graphs.doppler.limited import binds, improve_within
from stretto.graphs.doppler.nodes import plan_nodes
from stretto.graphs.doppler.proposals import played
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.kernels.search.decode import decode, tails
from stretto.graphs.planners.listing import DevicePlanner
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution, run_chains
from stretto.graphs.search.lns import LargeNeighbourhood, RuinChain
from stretto.graphs.search.starts import floor_s

#: The planners that it must never be worse than: all that construct one plan.
LISTS = tuple(
    name
    for name, home in catalog.PLANNERS.items()
    if home.startswith("stretto.graphs.planners.") and name not in ("portfolio", "random")
)
#: Of those, the ones that compare every ready task on every device at each step.
COMPARING = ("etf", "dls", "bil", "minmin", "sufferage")


@dataclass(frozen=True)
class DopplerZero(DevicePlanner):
    """Doppler's policies as trained on other graphs, used at once, with a fallback to the best list planner.

    The generalist's policies play an episode each, and the best plan of these and of all list planners is polished by
    two short searches with little heat. ``Plan.info`` says whose plan that was; the answer is never worse than that of
    any list planner that was asked. On large problems the slowest of these are left out, and ``Plan.info`` names them.

    Parameters
    ----------
    policies
        How many of the generalist's policies play an episode; None takes all.
    polish
        Moves of each search; None takes as many as some ten milliseconds allow, 0 leaves the proposal as it is.
    """

    policies: int | None = None
    polish: int | None = None

    def __post_init__(self) -> None:
        if self.policies is not None:
            checks.at_least(1, policies=self.policies)
        if self.polish is not None:
            checks.at_least(0, polish=self.polish)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        size = problem.num_tasks + len(problem.arrays.in_task)
        if problem.packing is not None:
            moves = self.polish if self.polish is not None else min(TUNED.polish_work // size, TUNED.most_moves)
            return plan_nodes(problem, problem.packing, replace(budget, time_limit_s=None), self.plan, max(1, moves))
        threads = max(1, budget.num_threads)
        with ThreadPoolExecutor(threads) as pool:
            policies = load_policies()[: self.policies]
            names = lists_for(problem)
            listed = [pool.submit(planned, problem, name, budget.seed) for name in names]
            learned = pool.submit(played, problem, policies)
            found = {name: plan for job in listed if (named := job.result()) for name, plan in [named]}
            proposal = learned.result()
        winner = min(found, key=lambda name: found[name].makespan_s)
        is_fallback = found[winner].makespan_s < proposal.makespan_s
        start = found[winner] if is_fallback else proposal
        moves = self.polish if self.polish is not None else min(TUNED.polish_work // size, TUNED.most_moves)
        best = start
        if binds(problem):
            plans = [Plan(one.assignment, one.order, "sequence") for one in (start, proposal, *found.values())]
            within = improve_within(problem, plans, "sequence", replace(budget, time_limit_s=None), moves)
            best = Solution(start.makespan_s, within.assignment, within.order)
        elif moves and problem.num_devices > 1:
            best = _polished(problem, start, moves, budget)
        info: dict[str, object] = {
            "proposed_by": winner if is_fallback else "generalist",
            "generalist_s": proposal.makespan_s,
            "best_list": winner,
            "best_list_s": found[winner].makespan_s,
            "lists_left_out": [name for name in LISTS if name not in names],
            "episodes": len(policies),
            "moves": moves,
        }
        return Plan(best.assignment, best.order, "sequence", info)


def lists_for(problem: Problem) -> tuple[str, ...]:
    """Return the list planners that are asked: on large problems those that compare all ready tasks take too long."""
    if problem.num_tasks * problem.num_devices <= TUNED.most_pairs:
        return LISTS
    return tuple(name for name in LISTS if name not in COMPARING)


def _timed(problem: Problem) -> Callable[[Plan], Solution]:
    n = problem.num_tasks
    start, finish = np.empty(n), np.empty(n)

    def timed(plan: Plan) -> Solution:
        return Solution(
            float(decode(problem.arrays, plan.assignment, plan.order, start, finish)), plan.assignment, plan.order
        )

    return timed


def planned(problem: Problem, name: str, seed: int) -> tuple[str, Solution] | None:
    """Return a list planner's plan with its name, or None where it does not support the problem."""
    planner = registry.construct("policy", name, catalog.PLANNERS, {})
    if planner.supports(problem) is not None:
        return None
    return name, _timed(problem)(planner.plan(problem, Budget(seed=seed, num_threads=1)))


def _polished(problem: Problem, start: Solution, moves: int, budget: Budget) -> Solution:
    """Search from a plan, by single steps and by windows, each with so many moves."""
    tail = tails(problem.arrays)
    most = 2 * moves
    share = Budget(budget.seed, None, budget.num_threads)
    steps = Annealing(max_evaluations=most, hot=2 * TUNED.cold_steps, cold=TUNED.cold_steps)
    windows = LargeNeighbourhood(max_evaluations=most, hot=2 * TUNED.cold_windows, cold=TUNED.cold_windows)
    chains = [
        AnnealingChain(problem, tail, start, steps, share, 0),
        RuinChain(problem, tail, start, windows, share, 1),
    ]
    found = run_chains(chains, share, max_evaluations=most, floor_s=floor_s(problem, tail)).best
    return min(start, found, key=lambda solution: solution.makespan_s)
