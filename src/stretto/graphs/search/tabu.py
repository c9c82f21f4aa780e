"""Tabu search over device sequences, with an exact evaluation of every place."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.tabu import tabu_search
from stretto.graphs.kernels.search.tabu_state import TabuState, load_tabu, new_tabu_state
from stretto.graphs.memory.limits import NO_LIMITS, binding_needs, open_room
from stretto.graphs.search.anytime import ROUNDS, KernelChain, Slice, Solution
from stretto.graphs.search.starts import SearchPlanner

#: Rounds before which the chains that lag behind take over the best solution of all.
MEETINGS = (ROUNDS // 3, 2 * ROUNDS // 3)
#: Task and read visits between looks at the clock.
CHUNK_WORK = 4_000_000


@dataclass(frozen=True)
class TabuSearch(SearchPlanner):
    """Tabu search on the critical path (Nowicki 1996; Mastrolilli 2000), with exact evaluations.

    A move takes a critical task out of its device's sequence and puts it where the makespan becomes
    least, over all devices and all places that are safe; where it came from is barred for a while. When that leads
    no further, the best solution is changed at random. The strongest search here from ten to some thousand tasks.

    Parameters
    ----------
    patience
        Moves without improvement before the best solution is changed at random.
    """

    patience: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least(1, patience=self.patience)

    def supports(self, problem: Problem) -> str | None:
        if problem.packing is not None:
            return (
                "it evaluates places in the sequences of devices that run one task at a time, and nodes that pack have "
                "no such sequence; for nodes use annealing, lns, genetic or cp-sat"
            )
        return super().supports(problem)

    def chain(self, problem: Problem, tail: Floats, starts: list[Solution], budget: Budget, stream: int) -> TabuChain:
        return TabuChain(problem, starts[stream % len(starts)], self.patience, budget.seed, stream)


class TabuChain(KernelChain):
    """One chain: sequences in compiled code, and the best seen."""

    def __init__(self, problem: Problem, start: Solution, patience: int, seed: int, stream: int) -> None:
        self.problem, self.patience = problem, patience
        self.rng = seeded(seed, stream)
        self.state: TabuState = new_tabu_state(problem.num_tasks, problem.num_devices)
        needs = binding_needs(problem)
        self.room = NO_LIMITS if needs is None else open_room(problem, needs)
        self.evaluations = 0
        self.adopt(start)
        self.advance(0)  # compiles before the clock starts

    def adopt(self, solution: Solution) -> None:
        """Continue from a solution."""
        self.value = load_tabu(self.problem.arrays, self.state, solution.assignment, solution.order)
        self.best = Solution(self.value, solution.assignment.copy(), solution.order.copy())

    def meet(self, best: Solution, next_round: int) -> None:
        if next_round in MEETINGS and best.makespan_s < self.best.makespan_s:
            self.adopt(best)

    def run(self, part: Slice) -> None:
        size = self.problem.num_tasks + len(self.problem.arrays.in_task)
        chunk = min(512, max(1, CHUNK_WORK // (10 * size)))
        made = 0
        while not part.is_over(made, self.best.makespan_s):
            moves = min(chunk, part.evaluations - made)
            self.advance(moves)
            made += moves

    def advance(self, moves: int) -> None:
        """Make so many moves."""
        self.evaluations += moves
        self._search(tabu_search, self.room, self.rng, moves, self.patience)
