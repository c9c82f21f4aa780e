"""Episodes whose policies evolve on the problem at hand: each generation varies the weights, the best ones lead on."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Discipline
from stretto.core.problem import Problem
from stretto.graphs.doppler.linear import LINEAR, linear_heads, weight_scale
from stretto.graphs.doppler.rollout import Player, Sampling
from stretto.graphs.doppler.tuning import TUNED
from stretto.graphs.search.anytime import Slice, Solution
from stretto.learning.cma import Cma

_GREEDY = Sampling("greedy")


class PolicyChain:
    """A search chain that plays greedy episodes of linear policies and adapts their weights (CMA-ES).

    It keeps what it has learned from one turn to the next; :meth:`begin` starts a turn. Generations without a better
    plan end an evolution, and the next turn starts another one, from the next policy.
    """

    def __init__(
        self, problem: Problem, start: Solution, policies: Floats, discipline: Discipline, seed: int, stream: int
    ) -> None:
        self.problem, self.policies = problem, policies
        self.player = Player(problem, LINEAR, discipline=discipline, num_threads=1)
        self.rng = np.random.default_rng([seed, stream, 0xE9])
        self.best, self.evaluations = start, 0
        self._next_policy = stream
        self._restart()

    def _restart(self) -> None:
        policy = self.policies[self._next_policy % len(self.policies)]
        self._next_policy += 1
        self.cma = Cma(policy, TUNED.policy_step, weight_scale(policy), TUNED.population)
        self._population: Floats = np.zeros((0, len(policy)))
        self._values: list[float] = []
        self._least_s, self._num_idle = float("inf"), 0

    @property
    def is_over(self) -> bool:
        """Whether the evolution has found nothing better for some generations."""
        return self._num_idle >= TUNED.idle_generations

    def begin(self, base: Solution) -> PolicyChain:
        """Start a turn: what is better than the base counts as found in it."""
        self.best, self.evaluations = base, 0
        if self.is_over:
            self._restart()
        return self

    def run(self, part: Slice) -> None:
        made = 0
        while not self.is_over and not part.is_over(made, self.best.makespan_s):
            self._play()
            made += 1
        self.evaluations += made

    def meet(self, best: Solution, next_round: int) -> None:
        """Other chains' plans say nothing of its weights."""

    def _play(self) -> None:
        if len(self._values) == len(self._population):
            if self._values:
                self._learn(np.array(self._values))
            self._population, self._values = self.cma.ask(self.rng), []
        found = played_policy(self.problem, self.player, self._population[len(self._values)])
        self._values.append(found.makespan_s)
        if found.makespan_s < self.best.makespan_s:
            self.best = found

    def _learn(self, values: Floats) -> None:
        self.cma.tell(values)
        least_s = float(values.min())
        self._num_idle = 0 if least_s < self._least_s else self._num_idle + 1
        self._least_s = min(least_s, self._least_s)


def played_policy(problem: Problem, player: Player, policy: Floats) -> Solution:
    """Play the greedy episode of a policy."""
    found = player.play(linear_heads(policy, problem), [(0, 0)], _GREEDY)
    return Solution(float(found.makespan_s[0]), found.assignment[0].copy(), found.order[0].copy())
