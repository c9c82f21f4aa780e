"""The search chain for nodes that pack: annealing over assignment and order, with windows rebuilt by earliest fit."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.nodes.packing import Packing
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.anneal import new_state
from stretto.graphs.kernels.search.decode_packed import anneal_packed, load_packed, mean_rise_packed, new_scratch
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution


class PackedChain(AnnealingChain):
    """A chain whose proposals are decoded on nodes; what it finds is executed in sequence."""

    cost = 4

    def __init__(
        self,
        problem: Problem,
        packing: Packing,
        tail: Floats,
        start: Solution,
        params: Annealing,
        budget: Budget,
        stream: int,
    ) -> None:
        self.scratch = new_scratch(packing.need, packing.capacity)
        super().__init__(problem, tail, start, params, budget, stream)

    def _load(self, solution: Solution) -> None:
        order = np.ascontiguousarray(solution.order, dtype=np.int32)
        assignment = np.ascontiguousarray(solution.assignment, dtype=np.int32)
        self.value = load_packed(self.problem.arrays, self.scratch, self.state, assignment, order)

    def _mean_rise(self) -> float:
        state = new_state(self.problem.num_tasks, self.problem.num_devices)
        value = load_packed(self.problem.arrays, self.scratch, state, self.state.assign, self.state.order)
        rise = mean_rise_packed(self.problem.arrays, state, self.scratch, self.rng, 200, value)
        return float(rise) or 0.02 * value

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal_packed, self.scratch, self.tail, self.rng, steps, temperature)
