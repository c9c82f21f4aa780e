"""The protocol of all trainers: what a training is to the loop, the command line and the reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stretto.core.plan import Plan
from stretto.errors import InvalidInput

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
Arrays = dict[str, NDArray[np.generic]]
#: What JSON can hold of a trainer's state.
Meta = dict[str, object]


@dataclass(frozen=True)
class StepRow:
    """What every step of every trainer reports: how far the training is. Each family adds its own figures.

    ``episode`` counts from the start of the training, in the unit of the family.
    """

    unit: ClassVar[str] = "episode"

    episode: int
    seconds: float

    @property
    def figures(self) -> dict[str, float]:
        """What the family adds, by name; NaN where it was not measured."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name not in ("episode", "seconds", "stage")}

    def to_json(self) -> dict[str, object]:
        """Return the row as the run log and JSON output hold it."""
        values = asdict(self)
        return {self.unit: values.pop("episode"), **values}

    @classmethod
    def numbers(cls) -> list[str]:
        """Return the names of all fields but the stage, which is text."""
        return [one.name for one in fields(cls) if one.name != "stage"]


@dataclass(frozen=True)
class TrainingRow(StepRow):
    """A step of a trainer of plans; what was not measured is NaN.

    ``best_s`` is the best makespan of any episode so far, ``mean_s`` the mean of the latest ones, ``greedy_s`` what the
    policy gives without chance, ``entropy`` how undecided it is.
    """

    best_s: float
    mean_s: float = math.nan
    greedy_s: float = math.nan
    entropy: float = math.nan
    stage: str = ""

    @staticmethod
    def of(row: TrainingRow | Mapping[str, object]) -> TrainingRow:
        """Return a row from a mapping with the same names."""
        if isinstance(row, TrainingRow):
            return row
        names = {one.name for one in fields(TrainingRow)}
        if set(row) - names or not {"episode", "seconds", "best_s"} <= set(row):
            raise InvalidInput(f"{sorted(row)} are not the fields of a row of training", field="rows")
        return TrainingRow(**row)  # type: ignore[arg-type]  # a field of the wrong type shows when it is drawn


@dataclass(frozen=True)
class Judged:
    """Held-out figures of a training; less is better in all of them.

    Attributes
    ----------
    measure
        What was measured, with its unit.
    trained, untrained
        What was learned, and its untrained start; NaN where the start is not known.
    others
        What it is compared with, by name.
    uses
        Figures of other ways of using what was learned, by name.
    """

    measure: str
    trained: float
    untrained: float
    others: Mapping[str, float]
    uses: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_better(self) -> bool:
        """True when training improved on the untrained start."""
        return self.trained < self.untrained

    @property
    def best_other(self) -> str:
        """The best of the others."""
        return min(self.others, key=lambda name: self.others[name])

    def to_json(self) -> dict[str, object]:
        """Return all figures; NaN becomes None."""
        start = None if math.isnan(self.untrained) else self.untrained
        parts: dict[str, object] = {"others": dict(self.others), "uses": dict(self.uses)}
        return {"measure": self.measure, "trained": self.trained, "untrained": start, **parts}


class Executor(Protocol):
    """Runs plans for real, or as if."""

    def execute(self, plan: Plan) -> float:
        """Run a plan and return the seconds that it took."""
        ...


class Farm(Protocol):
    """Workers elsewhere, which call a function for many items."""

    def map(self, function: Callable[[S, T], R], shared: S, items: Sequence[T]) -> list[R]:
        """Return ``function(shared, item)`` of every item, in their order; what is shared travels once."""
        ...


@dataclass(frozen=True)
class TrainingSpec:
    """The settings of a training, besides what it learns on.

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
    farm
        Workers that play streams, for algorithms that can use them; None plays in threads of this process.
    """

    seed: int = 0
    episodes: int | None = None
    time_limit_s: float | None = None
    start: str | None = None
    num_threads: int = 2
    engine: Executor | None = None
    farm: Farm | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidInput(f"{self.seed} must not be negative", field="seed")
        if self.episodes is not None and self.episodes < 1:
            raise InvalidInput(f"{self.episodes} must be at least 1", field="episodes")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InvalidInput(f"{self.time_limit_s} must be positive", field="budget")


RowT_co = TypeVar("RowT_co", bound=StepRow, covariant=True)


class Trainer(Protocol[RowT_co]):
    """A training that goes step by step, can be saved and restored exactly, and is judged on what it did not see."""

    @property
    def row_type(self) -> type[RowT_co]:
        """The class of the rows that :meth:`step` returns."""
        ...

    @property
    def identity(self) -> Mapping[str, object]:
        """What a checkpoint must agree on to be of this training, as JSON values."""
        ...

    @property
    def judging_s(self) -> float:
        """Seconds of the budget that are reserved for :meth:`judge`; known after :meth:`compile`."""
        ...

    @property
    def is_done(self) -> bool:
        """True when all planned episodes have been played."""
        ...

    def compile(self) -> None:
        """Do what is done once, before the first step, and does not count as training."""
        ...

    def step(self) -> RowT_co:
        """Play and learn from one batch; ``seconds`` of the row is set by the loop."""
        ...

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on, as arrays and JSON."""
        ...

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned."""
        ...

    def weights(self) -> Arrays:
        """Return the best weights; empty for a trainer that has none."""
        ...

    def judge(self) -> Judged:
        """Return the figures that say whether training improved on the untrained start."""
        ...
