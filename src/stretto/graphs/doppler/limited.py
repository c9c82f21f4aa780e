"""Doppler where memory limits bind: plans are searched within resident bytes and kept only where they run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.memory.execution import progress
from stretto.graphs.memory.limits import binding_needs
from stretto.graphs.memory.repair import fit_memory
from stretto.graphs.search.annealing import Annealing
from stretto.graphs.search.anytime import OPTIMAL, Solution, run_chains
from stretto.graphs.search.paths import PathChain
from stretto.graphs.search.starts import decoded_s, floor_s

#: Moves of a turn: at first, at least and at most. What does not run is tried again with fewer moves.
_MOVES, _FEWEST, _MOST = 2_000, 20, 20_000


def binds(problem: Problem) -> bool:
    """Say whether a plan on devices may exceed their memory."""
    return problem.packing is None and binding_needs(problem) is not None


def improve_within(
    problem: Problem, starts: Sequence[Plan], discipline: Discipline, budget: Budget, moves: int | None
) -> Plan:
    """Search from the best of some plans that runs within memory; return the best that does.

    Parameters
    ----------
    moves
        The search ends after so many; None lets the time limit decide.

    Raises
    ------
    Infeasible
        No plan was found that runs within memory; the message says whether that is proven.
    """
    begin, made, turn, size = time.perf_counter(), 0, 0, _MOVES
    best_s, best = _first(problem, starts, discipline, budget.seed)
    floor, tail = floor_s(problem, tails(problem.arrays)) * OPTIMAL, tails(problem.arrays)
    is_interrupted = False
    while problem.num_devices > 1 and best_s > floor and not is_interrupted:
        left = None if budget.time_limit_s is None else budget.time_limit_s - (time.perf_counter() - begin)
        if (moves is not None and made >= moves) or (left is not None and left <= 0):
            break
        turn += 1
        steps = size if moves is None else min(size, moves - made)
        share = Budget(budget.seed, left, 1)
        cooling = Annealing(max_evaluations=steps, hot=TUNED.operators["paths"].hot, cold=TUNED.operators["paths"].cold)
        here = Solution(decoded_s(problem, best), best.assignment, best.order)
        found = run_chains([PathChain(problem, tail, here, cooling, share, turn)], share, max_evaluations=steps)
        made += max(1, found.evaluations)
        tried = Plan(found.best.assignment, found.best.order, discipline)
        waiting, value = _executed(problem, tried, discipline)
        is_better = waiting == 0 and value < best_s
        if is_better:
            best_s, best = value, tried
        size = min(2 * size, _MOST) if is_better else max(size // 2, _FEWEST)
        is_interrupted = found.interrupted or not _told(budget, begin, made, best_s)
    info: dict[str, object] = {"evaluations": made, "interrupted": is_interrupted, "optimal": best_s <= floor}
    return replace(best, info=info)


def _first(problem: Problem, starts: Sequence[Plan], discipline: Discipline, seed: int) -> tuple[float, Plan]:
    """Return the best plan that runs; where none does, one that was made to fit."""
    judged = [(*_executed(problem, plan, discipline), number) for number, plan in enumerate(starts)]
    waiting, value, number = min(judged)
    if waiting == 0:
        return value, Plan(starts[number].assignment, starts[number].order, discipline)

    def execute(plan: Plan) -> tuple[int, float]:
        return _executed(problem, plan, discipline)

    fitted = fit_memory(problem, starts[number], execute, discipline=discipline, seed=seed)
    return execute(fitted)[1], Plan(fitted.assignment, fitted.order, discipline)


def _executed(problem: Problem, plan: Plan, discipline: Discipline) -> tuple[int, float]:
    return progress(problem, plan, discipline=discipline, contention="none")


def _told(budget: Budget, begin: float, made: int, best_s: float) -> bool:
    """Report progress; return False when the listener wants to stop."""
    if budget.on_progress is None:
        return True
    try:
        budget.on_progress(Progress(time.perf_counter() - begin, made, best_s))
    except KeyboardInterrupt:
        return False
    return True
