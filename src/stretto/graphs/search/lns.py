"""Large-neighbourhood search: ruin a stretch of the plan, recreate it greedily."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.ruin import MAX_WINDOW, ruin_and_recreate
from stretto.graphs.search.annealing import Annealing, AnnealingChain
from stretto.graphs.search.anytime import Solution
from stretto.graphs.search.starts import SearchPlanner


@dataclass(frozen=True)
class LargeNeighbourhood(SearchPlanner):
    """Iterated ruin and recreate on stretches of the order (Shaw 1998; Schrimpf 2000).

    Each move re-sorts up to ``window`` consecutive tasks by noisy remaining path length and places
    them where they end first; acceptance cools like annealing does. Every other slice of time goes to
    annealing moves on the same solution: large moves find a good region, small ones its best plan.

    Parameters
    ----------
    window, noise
        Most tasks that are sorted again, and how far from their remaining paths.
    hot, cold
        First and last temperature of a cycle, as in annealing.
    """

    window: int = 24
    noise: float = 0.5
    hot: float = 0.25
    cold: float = Annealing.cold

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.window <= MAX_WINDOW:
            raise InvalidInput(f"{self.window} is not in 2..{MAX_WINDOW}", field="window")
        checks.not_negative(noise=self.noise)
        Annealing(hot=self.hot, cold=self.cold)  # refuses temperatures that do not fall

    def chain(
        self, problem: Problem, tail: Floats, starts: list[Solution], budget: Budget, stream: int
    ) -> AnnealingChain:
        if self.is_limited(problem):
            from stretto.graphs.search.limited import LimitedRuinChain

            return LimitedRuinChain(problem, tail, starts[stream % len(starts)], self, budget, stream)
        return RuinChain(problem, tail, starts[stream % len(starts)], self, budget, stream)


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
        self._search(ruin_and_recreate, self.tail, self.rng, steps, temperature, self.ruin.window, self.ruin.noise)
