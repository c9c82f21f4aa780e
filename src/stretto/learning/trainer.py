"""What a training is to the rest of Stretto: steps, rows of news, a best plan, a state that can be put away."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]


class TrainingRow(NamedTuple):
    """One line of news from a training; what was not measured is NaN.

    ``episode`` counts all episodes so far, ``best_s`` is the best makespan of any of them, ``mean_s`` the mean of the
    latest ones, ``greedy_s`` what the policy gives without chance, ``entropy`` how undecided it is.
    """

    episode: int
    seconds: float
    best_s: float
    mean_s: float = math.nan
    greedy_s: float = math.nan
    entropy: float = math.nan
    stage: str = ""

    @staticmethod
    def of(row: TrainingRow | Mapping[str, Any]) -> TrainingRow:
        """Return a row from a mapping with the same names."""
        if isinstance(row, TrainingRow):
            return row
        unknown = set(row) - set(TrainingRow._fields)
        if unknown or not {"episode", "seconds", "best_s"} <= set(row):
            raise InvalidInput(f"{sorted(row)} are not the fields of a row of training", field="rows")
        return TrainingRow(**row)


class Executor(Protocol):
    """Runs plans for real, or as if."""

    def execute(self, plan: Plan) -> float:
        """Run a plan and return the seconds that it took."""
        ...


@dataclass(frozen=True)
class TrainingSpec:
    """What a training is to be, besides its problem.

    Attributes
    ----------
    episodes
        How many are planned: rates of learning fall towards this number. None leaves it to the algorithm.
    time_limit_s
        The budget, for algorithms that plan by it.
    start
        ``scratch``, ``generalist`` (the weights that come with Stretto), or a checkpoint's file; None is the
        algorithm's own choice.
    engine
        Where the last stage measures its plans; None stays with the simulator.
    """

    seed: int = 0
    episodes: int | None = None
    time_limit_s: float | None = None
    start: str | None = None
    num_threads: int = 2
    engine: Executor | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidInput(f"{self.seed} must not be negative", field="seed")
        if self.episodes is not None and self.episodes < 1:
            raise InvalidInput(f"{self.episodes} must be at least 1", field="episodes")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InvalidInput(f"{self.time_limit_s} must be positive", field="budget")


class Trainer(Protocol):
    """A training that goes step by step, keeps its best plan, and can be put away and taken up again."""

    @property
    def is_done(self) -> bool:
        """True when all planned episodes have been played."""
        ...

    def compile(self) -> None:
        """Do what is done once per machine and shape, so that it does not count as training."""
        ...

    def step(self) -> TrainingRow:
        """Play and learn from one batch; ``seconds`` of the row is left to the caller."""
        ...

    def best_plan(self) -> Plan | None:
        """Return the best plan seen, None before there is one."""
        ...

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return everything that the next step depends on, as arrays and JSON."""
        ...

    def restore(self, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        ...


def fingerprint(problem: Problem) -> str:
    """Return a hash of everything about a problem that a plan depends on."""
    digest = hashlib.sha256()
    for name in problem.arrays._fields:
        array = np.asarray(getattr(problem.arrays, name))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
