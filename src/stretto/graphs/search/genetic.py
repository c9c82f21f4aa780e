"""A genetic algorithm seeded with heuristic plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.decode import decode
from stretto.graphs.kernels.search.genetic import evolve, mutate
from stretto.graphs.search.annealing import CHUNK_WORK
from stretto.graphs.search.anytime import Slice, Solution
from stretto.graphs.search.starts import SearchPlanner


@dataclass(frozen=True)
class Genetic(SearchPlanner):
    """Steady-state genetic search over assignment and order (after Wang 1997 and Omara 2010).

    One-point crossover keeps orders topological; a child replaces the loser of a reverse tournament. Each
    core evolves a population of its own, seeded with heuristic plans and mutations of them;
    the best member migrates between rounds.
    """

    population: int = 64
    mutations: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least(4, population=self.population)
        checks.at_least(1, mutations=self.mutations)

    def chain(
        self, problem: Problem, tail: Floats, starts: list[Solution], budget: Budget, stream: int
    ) -> PopulationChain:
        if self.is_limited(problem):
            from stretto.graphs.search.limited import LimitedPopulation

            return LimitedPopulation(problem, starts, self, budget.seed, stream)
        return PopulationChain(problem, starts, self, budget.seed, stream)


class PopulationChain:
    """One population on one core."""

    def __init__(self, problem: Problem, starts: list[Solution], params: Genetic, seed: int, stream: int) -> None:
        self.problem, self.params = problem, params
        self.rng = seeded(seed, stream)
        n, size = problem.num_tasks, params.population
        self.assigns = np.empty((size, n), dtype=np.int32)
        self.orders = np.empty((size, n), dtype=np.int32)
        self.values = np.empty(size)
        for member in range(size):
            parent = starts[member % len(starts)]
            self.assigns[member], self.orders[member] = parent.assignment, parent.order
            if member >= len(starts):
                changes = 1 + n * member // (4 * size)
                mutate(problem.arrays, self.assigns[member], self.orders[member], changes, self.rng)
            self.values[member] = self.value_of(member)
        self.evaluations = 0
        self._evolve(0)  # compiles before the clock starts

    def value_of(self, member: int) -> float:
        """Return the makespan of a member."""
        start, finish = np.empty(self.problem.num_tasks), np.empty(self.problem.num_tasks)
        return float(decode(self.problem.arrays, self.assigns[member], self.orders[member], start, finish))

    def meet(self, best: Solution, next_round: int) -> None:
        if best.makespan_s < self.best.makespan_s:
            worst = int(np.argmax(self.values))
            self.assigns[worst], self.orders[worst] = best.assignment, best.order
            self.values[worst] = best.makespan_s

    def run(self, part: Slice) -> None:
        size = self.problem.num_tasks + len(self.problem.arrays.in_task)
        chunk = min(4096, max(8, CHUNK_WORK // size))
        made = 0
        while not part.is_over(made, self.best.makespan_s):
            steps = min(chunk, part.evaluations - made)
            self._evolve(steps)
            made += steps
            self.evaluations += steps

    def _evolve(self, steps: int) -> None:
        k = evolve(self.problem.arrays, self.assigns, self.orders, self.values, steps, self.params.mutations, self.rng)
        self.best = Solution(float(self.values[k]), self.assigns[k].copy(), self.orders[k].copy())
