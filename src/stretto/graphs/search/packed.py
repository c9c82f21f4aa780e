"""The search chain for nodes that pack: annealing over assignment and order, with windows rebuilt by earliest fit."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stretto.core.csr import Ints
from stretto.graphs.kernels.search.anneal import AnnealState, new_state
from stretto.graphs.kernels.search.decode_packed import (
    PackScratch,
    anneal_packed,
    load_packed,
    mean_rise_packed,
    new_scratch,
)
from stretto.graphs.search.annealing import AnnealingChain
from stretto.graphs.search.anytime import Solution


class PackedChain(AnnealingChain):
    """A chain whose proposals are decoded on nodes; what it finds is executed in sequence."""

    cost = 4

    @cached_property
    def scratch(self) -> PackScratch:
        """Room for decoding."""
        packing = self.problem.packing
        assert packing is not None, "devices that run one task at a time have chains of their own"
        return new_scratch(packing.need, packing.capacity)

    def _load(self, solution: Solution) -> None:
        order = np.ascontiguousarray(solution.order, dtype=np.int32)
        assignment = np.ascontiguousarray(solution.assignment, dtype=np.int32)
        self.value = self._put(self.state, assignment, order)

    def _put(self, state: AnnealState, assignment: Ints, order: Ints) -> float:
        """Put a solution into a state; return its makespan."""
        return float(load_packed(self.problem.arrays, self.scratch, state, assignment, order))

    def _mean_rise(self) -> float:
        state = new_state(self.problem.num_tasks, self.problem.num_devices)
        value = self._put(state, self.state.assign, self.state.order)
        rise = mean_rise_packed(self.problem.arrays, state, self.scratch, self.rng, 200, value)
        return float(rise) or 0.02 * value

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal_packed, self.scratch, self.tail, self.rng, steps, temperature)
