"""A chain of single-task moves that are judged by the longest path through the task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stretto.core.csr import Floats
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.path_state import PathState, load_paths, new_path_state
from stretto.graphs.kernels.search.paths import anneal_paths, path_rise
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution

_SAMPLES = 500


class PathChain(AnnealingChain):
    """An annealing chain whose proposals cost the reads of one task, whatever the size of the graph."""

    def __init__(
        self, problem: Problem, tail: Floats, start: Solution, params: Annealing, budget: Budget, stream: int
    ) -> None:
        self.paths: PathState = _new_state(problem)
        super().__init__(problem, tail, start, params, budget, stream)

    @property
    def _size(self) -> int:
        """Of the order of the reads of a task for each device, in place of all tasks and reads."""
        return 4 * self.problem.num_devices

    def _load(self, solution: Solution) -> None:
        self.value = load_paths(self.problem.arrays, self.paths, solution.assignment, solution.order)
        self.state.assign[:], self.state.order[:] = solution.assignment, solution.order

    def _mean_rise(self) -> float:
        return float(path_rise(self.problem.arrays, self.paths, self.rng, _SAMPLES, self.value)) or 0.02 * self.value

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal_paths, self.rng, steps, temperature)

    def _search(self, kernel: Callable[..., tuple[float, float]], *settings: object) -> None:
        best = self.best
        self.value, best_s = kernel(
            self.problem.arrays, self.paths, *settings, self.value, best.makespan_s, best.assignment, best.order
        )
        self.best = Solution(best_s, best.assignment, best.order)


def _new_state(problem: Problem) -> PathState:
    n, m = problem.num_tasks, problem.num_devices
    needs = MemoryNeeds.of(problem)
    if needs is None:
        return new_path_state(n, m, np.zeros(n), np.zeros(n), np.full(m, np.inf))
    return new_path_state(n, m, needs.resident, needs.running, needs.limit)
