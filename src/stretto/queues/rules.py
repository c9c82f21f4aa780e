"""The rules of a queue as values: its order, its backfilling, its estimates, its choice of pool.

Each is a row with a summary and the number under which compiled code knows it; the rows stand
in ``policies.queueing`` and their names in the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Weights:
    """What makes up a multifactor priority.

    Attributes
    ----------
    age, size, fair_share
        Weights of the three factors, each of which lies between zero and one.
    max_age_s
        The wait at which the age factor is full.
    half_life_s
        Past usage counts half after this time.
    """

    age: float = 1000.0
    size: float = 1000.0
    fair_share: float = 1000.0
    max_age_s: float = 7 * 86400.0
    half_life_s: float = 7 * 86400.0

    def __post_init__(self) -> None:
        for name in ("max_age_s", "half_life_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=f"weights.{name}")


@dataclass(frozen=True)
class Strategy:
    """An order of the waiting jobs."""

    code: int
    summary: str
    uses_weights: bool = False


@dataclass(frozen=True)
class Backfill:
    """Which jobs may start before the head of the queue."""

    code: int
    summary: str


@dataclass(frozen=True)
class EstimateModel:
    """What the scheduler believes that a job will take."""

    code: int
    summary: str


@dataclass(frozen=True)
class PoolRule:
    """Which of several pools a job prefers."""

    code: int
    summary: str
