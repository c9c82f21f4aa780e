"""Doppler without training: shipped weights propose, a short search improves, list planners are the fallback."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from stretto import catalog, registry
from stretto.core import argument_checks as checks
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.doppler.generalist import load_weights
from stretto.graphs.doppler.inference import heads_without_jax
from stretto.graphs.doppler.rollout import Player, Sampling
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.kernels.search.decode import decode, tails
from stretto.graphs.planners.listing import DevicePlanner
from stretto.graphs.planners.placing import devices_only
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


@dataclass(frozen=True)
class DopplerZero(DevicePlanner):
    """Doppler's policies as trained on other graphs, used at once, with a fallback to the best list planner.

    The generalist plays some episodes, and the best plan of these and of all list planners is polished by two short
    searches with little heat. ``Plan.info`` says whose plan that was; the answer is never worse than any list
    planner's.

    Parameters
    ----------
    episodes
        How many episodes; None takes as many as some ten milliseconds allow, at least one.
    polish
        Moves of each search; None takes as many as some ten milliseconds allow, 0 leaves the proposal as it is.
    """

    episodes: int | None = None
    polish: int | None = None

    def __post_init__(self) -> None:
        if self.episodes is not None:
            checks.at_least(1, episodes=self.episodes)
        if self.polish is not None:
            checks.at_least(0, polish=self.polish)

    def supports(self, problem: Problem) -> str | None:
        return devices_only(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        size = problem.num_tasks + len(problem.arrays.in_task)
        threads = max(1, budget.num_threads)
        with ThreadPoolExecutor(threads) as pool:
            episodes = self.episodes or int(np.clip(TUNED.episode_work // size, 1, 64))
            listed = [pool.submit(_planned, problem, name, budget.seed) for name in LISTS]
            learned = pool.submit(_played, problem, episodes, budget.seed)
            found = {name: plan for job in listed if (named := job.result()) for name, plan in [named]}
            proposal = learned.result()
        winner = min(found, key=lambda name: found[name].makespan_s)
        is_fallback = found[winner].makespan_s < proposal.makespan_s
        start = found[winner] if is_fallback else proposal
        moves = self.polish if self.polish is not None else min(TUNED.polish_work // size, TUNED.most_moves)
        best = _polished(problem, start, moves, budget) if moves and problem.num_devices > 1 else start
        info: dict[str, object] = {
            "proposed_by": winner if is_fallback else "generalist",
            "generalist_s": proposal.makespan_s,
            "best_list": winner,
            "best_list_s": found[winner].makespan_s,
            "episodes": episodes,
            "moves": moves,
        }
        return Plan(best.assignment, best.order, "sequence", info)


def _timed(problem: Problem) -> Callable[[Plan], Solution]:
    n = problem.num_tasks
    start, finish = np.empty(n), np.empty(n)

    def timed(plan: Plan) -> Solution:
        return Solution(
            float(decode(problem.arrays, plan.assignment, plan.order, start, finish)), plan.assignment, plan.order
        )

    return timed


def _planned(problem: Problem, name: str, seed: int) -> tuple[str, Solution] | None:
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


def _played(problem: Problem, episodes: int, seed: int) -> Solution:
    """Play the greedy episode and sampled ones; return the best."""
    weights = load_weights()
    player = Player(problem, weights.settings, num_threads=1)
    net = heads_without_jax(weights.params, player.tensors, weights.settings, problem.num_devices)
    rounds = [player.play(net, [(seed, 0)], Sampling("greedy"))]
    if episodes > 1:
        rounds.append(
            player.play(
                net, [(seed, stream) for stream in range(1, episodes)], Sampling(temperature=TUNED.episode_temperature)
            )
        )
    tried = [
        Solution(float(found.makespan_s[b]), found.assignment[b].copy(), found.order[b].copy())
        for found in rounds
        for b in range(len(found.makespan_s))
    ]
    return min(tried, key=lambda solution: solution.makespan_s)
