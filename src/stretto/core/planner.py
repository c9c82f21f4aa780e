"""What a planner is: it gets a problem and a budget, and returns a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Progress:
    """A line of news from a long search."""

    elapsed_s: float
    evaluations: int
    best_makespan_s: float


@dataclass(frozen=True)
class Budget:
    """How long a planner may think, and with which randomness.

    Attributes
    ----------
    time_limit_s
        Anytime planners stop here; None leaves it to the planner's own default.
        Constructive heuristics take no notice.
    num_threads
        How many cores an anytime planner may use.
    on_progress
        Called now and then with news; raising KeyboardInterrupt inside ends the search
        early, and the best plan so far is returned.
    """

    seed: int = 0
    time_limit_s: float | None = None
    num_threads: int = 2
    on_progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InvalidInput(f"{self.time_limit_s} must be positive", field="time_limit_s")
        if self.seed < 0:
            raise InvalidInput(f"{self.seed} must not be negative", field="seed")


class Planner(Protocol):
    """Decides device and order of every task of a problem.

    Implementations are frozen dataclasses whose fields are their parameters.
    """

    def supports(self, problem: Problem) -> str | None:
        """Return None when the problem can be planned, or the reason why not."""
        ...

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Return a complete plan."""
        ...


def no_projects(problem: Problem) -> str | None:
    """The usual ``supports``: devices yes, shared renewable resources (RCPSP) no."""
    if problem.graph.resources is not None:
        return "projects with renewable resources need one of: annealing, cp-sat"
    return None
