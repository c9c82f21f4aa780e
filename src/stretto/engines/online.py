"""Online decisions: somebody who is shown the present state and places ready tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stretto.core.problem import Problem
from stretto.engines.tables import Tables
from stretto.errors import InvalidPlan


@dataclass(frozen=True)
class View:
    """What is known at the moment of a decision.

    Attributes
    ----------
    ready
        Tasks whose parents have ended and that have no device yet.
    issued
        By device: the task that runs there and those placed behind it, in order.
    """

    problem: Problem
    now_s: float
    ready: tuple[int, ...]
    issued: tuple[tuple[int, ...], ...]
    is_alive: tuple[bool, ...]
    price_usd_per_hour: tuple[float, ...]


class Dispatcher(Protocol):
    """Places ready tasks one view at a time."""

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        """Return pairs of a task and a device, first things first; an empty answer means "wait"."""
        ...


@dataclass(frozen=True)
class GreedyDispatcher:
    """Gives each idle device the ready task that it runs fastest; the simplest useful dispatcher."""

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        seconds = view.problem.device_duration
        left = set(view.ready)
        chosen = []
        for device, tasks in enumerate(view.issued):
            able = [t for t in left if seconds[t, device] < float("inf")]
            if view.is_alive[device] and not tasks and able:
                task = min(able, key=lambda t: (seconds[t, device], t))
                left.discard(task)
                chosen.append((task, device))
        return chosen


def checked_choice(view: View, tables: Tables, chosen: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the choice, or raise InvalidPlan where it names a task or a device that cannot be meant."""
    ready = set(view.ready)
    for task, device in chosen:
        if task not in ready:
            raise InvalidPlan(f"the dispatcher placed task {task}, which is not ready or was placed before")
        if not (0 <= device < len(view.is_alive) and view.is_alive[device] and tables.can_run(task, device)):
            raise InvalidPlan(f"the dispatcher placed task {task} on device {device}, which cannot run it")
        ready.discard(task)
    return chosen
