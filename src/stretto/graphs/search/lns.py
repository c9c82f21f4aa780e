"""Large-neighbourhood search: ruin a stretch of the plan, recreate it greedily."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.kernels.search.ruin import MAX_WINDOW, ruin_and_recreate
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution, run_chains
from stretto.graphs.search.starts import floor_s, starting_points


@dataclass(frozen=True)
class LargeNeighbourhood:
    """Iterated ruin and recreate on stretches of the order (Shaw 1998; Schrimpf 2000).

    Each move re-sorts up to ``window`` consecutive tasks by noisy remaining path length and places
    them where they end first; acceptance cools like annealing does. Every other slice of time goes to
    annealing moves on the same solution: big moves find the basin, small ones its floor.

    Parameters
    ----------
    window, noise
        Tasks that are sorted anew at most, and how far from their remaining paths.
    hot, cold
        First and last temperature of a cycle, as in annealing.
    """

    max_evaluations: int | None = None
    window: int = 24
    noise: float = 0.5
    hot: float = 0.25
    cold: float = Annealing.cold
    starts: tuple[str, ...] = ("heft", "peft")

    def __post_init__(self) -> None:
        if not 2 <= self.window <= MAX_WINDOW:
            raise InvalidInput(f"{self.window} is not in 2..{MAX_WINDOW}", field="window")
        if self.noise < 0:
            raise InvalidInput(f"{self.noise} must not be negative", field="noise")
        Annealing(hot=self.hot, cold=self.cold)  # refuses temperatures that do not fall

    def supports(self, problem: Problem) -> str | None:
        return no_projects(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        tail = tails(problem.arrays)
        starts = starting_points(problem, self.starts, budget.seed)
        chains = [
            RuinChain(problem, tail, starts[stream % len(starts)], self, budget, stream)
            for stream in range(max(1, budget.num_threads))
        ]
        floor = floor_s(problem, tail)
        return run_chains(chains, budget, max_evaluations=self.max_evaluations, floor_s=floor).plan()


class RuinChain(AnnealingChain):
    """An annealing chain that also makes window moves."""

    def __init__(
        self,
        problem: Problem,
        tail: Floats,
        start: Solution,
        params: LargeNeighbourhood,
        budget: Budget,
        stream: int,
    ) -> None:
        self.ruin = params
        self.turn = 0
        annealing = Annealing(
            max_evaluations=params.max_evaluations, hot=params.hot, cold=params.cold, starts=params.starts
        )
        super().__init__(problem, tail, start, annealing, budget, stream)

    def _anneal(self, steps: int, temperature: float) -> None:
        self.turn += 1
        if self.turn % 2 and not self.greedy:
            super()._anneal(steps, temperature)
            return
        assignment, order = self.best.assignment, self.best.order
        self.value, best = ruin_and_recreate(
            self.problem.arrays,
            self.state,
            self.tail,
            self.rng,
            steps,
            temperature,
            self.ruin.window,
            self.ruin.noise,
            self.value,
            self.best.makespan_s,
            assignment,
            order,
        )
        self.best = Solution(best, assignment, order)
