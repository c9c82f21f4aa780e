"""A schedule: what happened, with times."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.csr import Floats, Ints
from stretto.core.plan import Discipline


@dataclass(frozen=True, eq=False)
class Transfers:
    """Movements of objects between devices."""

    object_index: Ints  # [T]
    source: Ints  # [T] device
    target: Ints  # [T] device
    start_s: Floats  # [T] when it began to move, after any wait for its link
    finish_s: Floats  # [T] when it was there


@dataclass(frozen=True, eq=False)
class Schedule:
    """Device, start and finish of each task, and the transfers where they were recorded."""

    device: Ints  # [n]
    start_s: Floats  # [n]
    finish_s: Floats  # [n]
    discipline: Discipline
    contention: str = "none"
    transfers: Transfers | None = None

    @property
    def makespan_s(self) -> float:
        """The last finish; time zero is when the first graph may start."""
        return float(self.finish_s.max())
