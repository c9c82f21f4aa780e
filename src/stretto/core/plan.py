"""A plan: which device runs each task, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from stretto.core.csr import Floats, Ints

Discipline = Literal["sequence", "work-conserving"]
DISCIPLINES: tuple[Discipline, ...] = ("sequence", "work-conserving")


@dataclass(frozen=True, eq=False)
class Plan:
    """An assignment and an order, before anything has run.

    Attributes
    ----------
    assignment
        The device of each task.
    order
        All tasks, first to last. Under ``sequence`` a device runs its tasks in this order and
        waits for the next one; under ``work-conserving`` it takes, of those ready, the one
        that stands first here.
    discipline
        What the planner had in mind; a plan can be executed under either.
    info
        What the planner has to say: evaluations, status, its own bound.
    """

    assignment: Ints  # [n]
    order: Ints  # [n]
    discipline: Discipline = "sequence"
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> Ints:
        """The position of each task in the order."""
        rank = np.empty(len(self.order), dtype=np.int32)
        rank[self.order] = np.arange(len(self.order), dtype=np.int32)
        return rank

    @staticmethod
    def from_times(assignment: Ints, start_s: Floats, finish_s: Floats, topo: Ints, **info: object) -> Plan:
        """Make the plan whose execution in sequence has these times.

        Tasks of no length come before the longer one that starts with them, and among
        themselves in topological order.
        """
        position = np.empty(len(topo), dtype=np.int32)
        position[topo] = np.arange(len(topo), dtype=np.int32)
        order = np.lexsort((position, finish_s, start_s)).astype(np.int32)
        return Plan(np.ascontiguousarray(assignment, dtype=np.int32), order, "sequence", info)
