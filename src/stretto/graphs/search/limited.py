"""Search chains for nodes that pack and for devices whose memory binds: every proposal is executed within both."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.anneal import AnnealState
from stretto.graphs.kernels.search.decode_packed import PackScratch
from stretto.graphs.kernels.search.within_memory import (
    Execution,
    anneal_within,
    evolve_within,
    load_within,
    ruin_within,
    value_within,
)
from stretto.graphs.memory.execution import execution_of, progress
from stretto.graphs.memory.repair import fit_memory
from stretto.graphs.search.annealing import Annealing
from stretto.graphs.search.anytime import Solution
from stretto.graphs.search.genetic import PopulationChain
from stretto.graphs.search.lns import LargeNeighbourhood
from stretto.graphs.search.packed import PackedChain


def starts_within(problem: Problem, starts: list[Solution], seed: int) -> list[Solution]:
    """Return the starting points, those that memory stops replaced by what was made to fit.

    Raises
    ------
    Infeasible
        None fits; the message says whether that is proven.
    """
    found = []
    for solution in starts:
        plan = Plan(solution.assignment, solution.order, "sequence")

        def execute(tried: Plan) -> tuple[int, float]:
            return progress(problem, tried, discipline="sequence", contention="none")

        waiting, makespan = execute(plan)
        if waiting:
            plan = fit_memory(problem, plan, execute, discipline="sequence", seed=seed)
            makespan = execute(plan)[1]
        found.append(Solution(makespan, plan.assignment, plan.order))
    return sorted(found, key=lambda solution: solution.makespan_s)


class LimitedChain(PackedChain):
    """A chain whose proposals are executed within memory, too."""

    cost = 20

    @cached_property
    def execution(self) -> Execution:
        """What executing a proposal takes."""
        return execution_of(self.problem)

    @cached_property
    def scratch(self) -> PackScratch:
        return self.execution.packs

    def _put(self, state: AnnealState, assignment: Ints, order: Ints) -> float:
        return float(load_within(self.problem.arrays, self.execution, state, assignment, order))

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal_within, self.execution, self.tail, self.rng, steps, temperature)


class LimitedRuinChain(LimitedChain):
    """A chain that also makes window moves."""

    def __init__(
        self, problem: Problem, tail: Floats, start: Solution, params: LargeNeighbourhood, budget: Budget, stream: int
    ) -> None:
        self.ruin = params
        self.turn = 0
        annealing = Annealing(
            max_evaluations=params.max_evaluations, hot=params.hot, cold=params.cold, starts=params.starts
        )
        super().__init__(problem, tail, start, annealing, budget, stream)

    def _anneal(self, steps: int, temperature: float) -> None:
        self.turn += 1
        if self.turn % 2:
            super()._anneal(steps, temperature)
            return
        window, noise = self.ruin.window, self.ruin.noise
        self._search(ruin_within, self.execution, self.tail, self.rng, steps, temperature, window, noise)


class LimitedPopulation(PopulationChain):
    """A population whose members are executed within capacities and memory."""

    @cached_property
    def execution(self) -> Execution:
        """What executing a member takes."""
        return execution_of(self.problem)

    def value_of(self, member: int) -> float:
        n = self.problem.num_tasks
        start, finish = np.empty(n), np.empty(n)
        assignment, order = self.assigns[member], self.orders[member]
        return float(value_within(self.problem.arrays, self.execution, assignment, order, start, np.inf, start, finish))

    def _evolve(self, steps: int) -> None:
        k = evolve_within(
            self.problem.arrays,
            self.execution,
            self.assigns,
            self.orders,
            self.values,
            steps,
            self.params.mutations,
            self.rng,
        )
        self.best = Solution(float(self.values[k]), self.assigns[k].copy(), self.orders[k].copy())
