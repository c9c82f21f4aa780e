"""Tabu search over device sequences, with exact weighing of every place."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.kernels.rng import seeded
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.kernels.search.tabu import tabu_search
from stretto.graphs.kernels.search.tabu_state import load_tabu, new_tabu_state
from stretto.graphs.search.anytime import ROUNDS, Slice, Solution, run_chains
from stretto.graphs.search.starts import floor_s, starting_points

#: Rounds before which the chains that lag behind take over the best solution of all.
MEETINGS = (ROUNDS // 3, 2 * ROUNDS // 3)
#: Task and read visits between looks at the clock.
CHUNK_WORK = 4_000_000


@dataclass(frozen=True)
class TabuSearch:
    """Tabu search on the critical path (Nowicki 1996; Mastrolilli 2000), with exact evaluations.

    A move takes a critical task out of its device's sequence and puts it where the makespan becomes
    least, over all devices and all places that are safe; where it came from is barred for a while. When that leads
    nowhere, the best solution is shaken. The strongest search here from ten to some thousand tasks.

    Parameters
    ----------
    max_evaluations
        Stop after this many moves, each of which weighs all places of some tasks; the result is then the
        same on every run with a seed.
    patience
        Moves in vain before the best solution is shaken.
    """

    max_evaluations: int | None = None
    patience: int = 1000
    starts: tuple[str, ...] = ("heft", "peft")

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise InvalidInput(f"{self.patience} must be positive", field="patience")
        if self.max_evaluations is not None and self.max_evaluations < 1:
            raise InvalidInput(f"{self.max_evaluations} must be positive", field="max_evaluations")

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        starts = starting_points(problem, self.starts, budget.seed)
        chains = [
            TabuChain(problem, starts[stream % len(starts)], self.patience, budget.seed, stream)
            for stream in range(max(1, budget.num_threads))
        ]
        floor = floor_s(problem, tails(problem.arrays))
        return run_chains(chains, budget, max_evaluations=self.max_evaluations, floor_s=floor).plan()


class TabuChain:
    """One chain: sequences in compiled code, and the best seen."""

    def __init__(self, problem: Problem, start: Solution, patience: int, seed: int, stream: int) -> None:
        self.problem, self.patience = problem, patience
        self.rng = seeded(seed, stream)
        self.state = new_tabu_state(problem.num_tasks, problem.num_devices)
        self.evaluations = 0
        self.adopt(start)
        self.advance(0)  # compiles before the clock starts

    def adopt(self, solution: Solution) -> None:
        """Go on from a solution."""
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
        assignment, order = self.best.assignment, self.best.order
        self.value, best = tabu_search(
            self.problem.arrays,
            self.state,
            self.rng,
            moves,
            self.patience,
            self.value,
            self.best.makespan_s,
            assignment,
            order,
        )
        self.best = Solution(best, assignment, order)
