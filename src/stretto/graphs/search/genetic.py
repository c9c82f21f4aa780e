"""A genetic algorithm seeded with heuristic plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.kernels.rng import seeded
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.decode import decode, tails
from stretto.graphs.kernels.search.genetic import evolve, mutate
from stretto.graphs.search.annealing import CHUNK_WORK
from stretto.graphs.search.anytime import Slice, Solution, run_chains
from stretto.graphs.search.starts import floor_s, starting_points


@dataclass(frozen=True)
class Genetic:
    """Steady-state genetic search over assignment and order (after Wang 1997 and Omara 2010).

    One-point crossover keeps orders topological; a child replaces the loser of a reverse tournament. Each
    core evolves a population of its own, seeded with heuristic plans and mutations of them;
    the best member migrates between rounds.
    """

    max_evaluations: int | None = None
    population: int = 64
    mutations: int = 4
    starts: tuple[str, ...] = ("heft", "peft")

    def __post_init__(self) -> None:
        if self.population < 4:
            raise InvalidInput(f"{self.population} is less than 4", field="population")
        if self.mutations < 1:
            raise InvalidInput(f"{self.mutations} must be positive", field="mutations")

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        starts = starting_points(problem, self.starts, budget.seed)
        chains = [
            PopulationChain(problem, starts, self, budget.seed, stream) for stream in range(max(1, budget.num_threads))
        ]
        floor = floor_s(problem, tails(problem.arrays))
        return run_chains(chains, budget, max_evaluations=self.max_evaluations, floor_s=floor).plan()


class PopulationChain:
    """One population on one core."""

    def __init__(self, problem: Problem, starts: list[Solution], params: Genetic, seed: int, stream: int) -> None:
        self.problem, self.params = problem, params
        self.rng = seeded(seed, stream)
        n, size = problem.num_tasks, params.population
        self.assigns = np.empty((size, n), dtype=np.int32)
        self.orders = np.empty((size, n), dtype=np.int32)
        self.values = np.empty(size)
        start, finish = np.empty(n), np.empty(n)
        for member in range(size):
            parent = starts[member % len(starts)]
            self.assigns[member], self.orders[member] = parent.assignment, parent.order
            if member >= len(starts):
                changes = 1 + n * member // (4 * size)
                mutate(problem.arrays, self.assigns[member], self.orders[member], changes, self.rng)
            self.values[member] = decode(problem.arrays, self.assigns[member], self.orders[member], start, finish)
        self.evaluations = 0
        self._evolve(0)  # compiles before the clock starts

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
