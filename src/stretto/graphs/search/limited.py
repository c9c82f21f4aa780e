"""Search chains for nodes that pack and for devices whose memory binds: every proposal is executed within both."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.anneal import new_state
from stretto.graphs.kernels.search.decode_packed import mean_rise_packed
from stretto.graphs.kernels.search.within_memory import (
    anneal_within,
    evolve_within,
    load_within,
    ruin_within,
    value_within,
)
from stretto.graphs.memory.execution import execution_of, progress
from stretto.graphs.memory.repair import fit_memory
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution
from stretto.graphs.search.genetic import PopulationChain
from stretto.graphs.search.lns import LargeNeighbourhood


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


class LimitedChain(AnnealingChain):
    """An annealing chain whose proposals are executed within capacities and memory."""

    cost = 20

    def __init__(
        self, problem: Problem, tail: Floats, start: Solution, params: Annealing, budget: Budget, stream: int
    ) -> None:
        self.execution = execution_of(problem)
        super().__init__(problem, tail, start, params, budget, stream)

    def _load(self, solution: Solution) -> None:
        order = np.ascontiguousarray(solution.order, dtype=np.int32)
        assignment = np.ascontiguousarray(solution.assignment, dtype=np.int32)
        self.value = load_within(self.problem.arrays, self.execution, self.state, assignment, order)

    def _mean_rise(self) -> float:
        state = new_state(self.problem.num_tasks, self.problem.num_devices)
        value = load_within(self.problem.arrays, self.execution, state, self.state.assign, self.state.order)
        rise = mean_rise_packed(self.problem.arrays, state, self.execution.packs, self.rng, 200, value)
        return float(rise) or 0.02 * value

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

    def value_of(self, member: int) -> float:
        if not hasattr(self, "execution"):
            self.execution = execution_of(self.problem)
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
