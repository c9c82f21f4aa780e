"""Which operator to run next: the one that has lately gained most per unit of budget, now and then any other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Operator:
    """One way to look for a better plan, and what it has brought.

    Attributes
    ----------
    rate
        Relative gain per unit of budget (a second, or a plan tried), recent turns first; infinite until it has run.
    turns
        How often it has run.
    """

    name: str
    rate: float = float("inf")
    turns: int = 0


@dataclass
class OperatorBandit:
    """A seeded bandit over operators.

    An operator that has not run comes first. Then the one with the highest rate is chosen, or, with the chance
    ``explore`` and where nobody gains anything, the one that has had the fewest turns.

    Attributes
    ----------
    explore
        Chance of a turn for the operator that has had the fewest.
    memory
        Weight of earlier turns in the rate.
    """

    names: tuple[str, ...]
    seed: int
    explore: float
    memory: float
    operators: list[Operator] = field(init=False)

    def __post_init__(self) -> None:
        self.operators = [Operator(name) for name in self.names]
        self._rng = np.random.default_rng([self.seed, 0xBA])

    def choose(self, number: int) -> list[str]:
        """Return the operators of the next turn, one for each core; each at most once while there are enough."""
        chosen: list[Operator] = []
        while len(chosen) < number:
            left = [one for one in self.operators if one not in chosen] or self.operators
            if self._rng.random() < self.explore or not any(one.rate > 0 for one in left):
                chosen.append(min(left, key=lambda one: one.turns))
            else:
                chosen.append(max(left, key=lambda one: one.rate))
        return [one.name for one in chosen]

    def credit(self, name: str, gain: float, spent: float) -> None:
        """Tell what an operator has gained in a turn, as a share of the makespan that it began with."""
        one = next(operator for operator in self.operators if operator.name == name)
        rate = max(gain, 0.0) / max(spent, 1e-9)
        one.rate = rate if one.turns == 0 else self.memory * one.rate + (1 - self.memory) * rate
        one.turns += 1

    def drop(self, name: str) -> None:
        """Give an operator no more turns."""
        self.operators = [one for one in self.operators if one.name != name] or self.operators

    def shares(self) -> dict[str, int]:
        """Return the turns of each operator."""
        return {one.name: one.turns for one in self.operators}
