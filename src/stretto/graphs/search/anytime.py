"""Run search chains on all cores in rounds, until the time or the evaluations are used up.

Chains meet after each round: the best solution is shared and news is told. Nothing else is
exchanged, so a run that is limited by evaluations is the same every time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stretto.core.csr import Ints
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem

ROUNDS = 24
DEFAULT_TIME_LIMIT_S = 10.0
#: A plan that is as near to a lower bound as this is optimal but for rounding.
OPTIMAL = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Solution:
    """A point of the search space with its makespan."""

    makespan_s: float
    assignment: Ints
    order: Ints


@dataclass(frozen=True)
class Slice:
    """One chain's share of one round.

    Attributes
    ----------
    number
        Which of the ``ROUNDS`` this is.
    begin, deadline
        When it begins, and when to stop (of ``time.perf_counter``), or inf.
    evaluations
        Evaluations to make, or a large number when time decides.
    floor_s
        A solution this good is optimal.
    stop
        Set when the user wants no more.
    """

    number: int
    begin: float
    deadline: float
    evaluations: int
    floor_s: float
    stop: threading.Event

    def rounds_done(self, made: int) -> float:
        """Return the rounds done so far, with the part of this one that is."""
        by_time = (time.perf_counter() - self.begin) / (self.deadline - self.begin)
        return self.number + min(1.0, max(by_time, made / max(1, self.evaluations)))

    def is_over(self, made: int, best_s: float) -> bool:
        """Say whether a chain that has made this many evaluations in the slice should return."""
        return made >= self.evaluations or best_s <= self.floor_s or self.stop.is_set() or self.is_late

    @property
    def is_late(self) -> bool:
        return time.perf_counter() >= self.deadline


class Chain(Protocol):
    """One thread of search; its kernels release the GIL."""

    best: Solution
    evaluations: int

    def run(self, part: Slice) -> None:
        """Search until the slice is used up."""
        ...

    def meet(self, best: Solution, next_round: int) -> None:
        """Hear of the best solution of all chains before the next round."""
        ...


class KernelChain:
    """The part of a chain that has its moves made by a kernel."""

    problem: Problem
    state: tuple[np.ndarray, ...]
    value: float
    best: Solution

    def _search(self, kernel: Callable[..., tuple[float, float]], *settings: object) -> None:
        """Search on from the state; the kernel writes what beats the best solution into that one's arrays."""
        assignment, order = self.best.assignment, self.best.order
        self.value, best = kernel(
            self.problem.arrays, self.state, *settings, self.value, self.best.makespan_s, assignment, order
        )
        self.best = Solution(best, assignment, order)


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """What a search found and what it took."""

    best: Solution
    evaluations: int
    elapsed_s: float
    interrupted: bool
    optimal: bool

    def plan(self, discipline: Discipline = "sequence") -> Plan:
        """Return the best solution as a plan for the discipline that it was searched under."""
        info = {"evaluations": self.evaluations, "interrupted": self.interrupted, "optimal": self.optimal}
        return Plan(self.best.assignment, self.best.order, discipline, info)


def run_chains(
    chains: Sequence[Chain], budget: Budget, *, max_evaluations: int | None = None, floor_s: float = 0.0
) -> SearchOutcome:
    """Run the chains to the end of the budget, to a proven optimum, or to Ctrl-C.

    Parameters
    ----------
    max_evaluations
        Total over all chains; with it, and without a time limit, the result is reproducible.
    floor_s
        A lower bound: a solution that meets it ends the search.
    """
    begin = time.perf_counter()
    limit = budget.time_limit_s
    if limit is None and max_evaluations is None:
        limit = DEFAULT_TIME_LIMIT_S
    per_chain = max_evaluations // len(chains) if max_evaluations is not None else np.iinfo(np.int64).max // 2
    best = min((chain.best for chain in chains), key=lambda solution: solution.makespan_s)
    floor = floor_s * OPTIMAL
    optimal = best.makespan_s <= floor
    interrupted = False
    stop = threading.Event()
    with ThreadPoolExecutor(max(1, min(budget.num_threads, len(chains)))) as pool:
        for number in range(0 if optimal else ROUNDS):
            fraction = (number + 1) / ROUNDS
            deadline = begin + limit * fraction if limit is not None else float("inf")
            share = int(per_chain * fraction)
            now = time.perf_counter()
            parts = [Slice(number, now, deadline, share - c.evaluations, floor, stop) for c in chains]
            futures = [pool.submit(chain.run, part) for chain, part in zip(chains, parts, strict=True)]
            try:
                wait(futures)
            except KeyboardInterrupt:
                interrupted = True
                stop.set()
            for future in futures:
                future.result()
            best = min((best, *(chain.best for chain in chains)), key=lambda solution: solution.makespan_s)
            optimal = best.makespan_s <= floor
            interrupted |= not _tell(budget, begin, chains, best)
            if interrupted or optimal or number == ROUNDS - 1:
                break
            for chain in chains:
                chain.meet(best, number + 1)
    total = sum(chain.evaluations for chain in chains)
    return SearchOutcome(best, total, time.perf_counter() - begin, interrupted, optimal)


def _tell(budget: Budget, begin: float, chains: Sequence[Chain], best: Solution) -> bool:
    """Report progress; return False when the listener wants to stop."""
    if budget.on_progress is None:
        return True
    news = Progress(time.perf_counter() - begin, sum(chain.evaluations for chain in chains), best.makespan_s)
    try:
        budget.on_progress(news)
    except KeyboardInterrupt:
        return False
    return True
