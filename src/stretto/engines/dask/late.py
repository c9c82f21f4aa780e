"""An online dispatcher for engines: decide as late as a busy worker allows, by the longest way to go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stretto.core.problem import Problem
from stretto.engines.online import View

#: What runs has on average this share of its time left.
_LEFT = 0.5


@dataclass
class LateDispatcher:
    """Places the ready task with the longest way to go where it is expected to end first, but only with room there.

    A task whose best device is full waits for it, and its load is counted, rather than settle for a slower one; so each
    decision is made with all that has happened until a device has room.

    Attributes
    ----------
    num_queued
        Tasks that may wait on a device behind the one that runs, so that the way to it is not idle time.
    """

    num_queued: int = 1
    _levels: tuple[Problem, list[float]] | None = field(default=None, repr=False)

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        seconds = view.problem.device_duration
        levels = self._levels_of(view.problem)
        held = view.issued
        alive = [device for device, is_alive in enumerate(view.is_alive) if is_alive]
        load = {
            device: sum(seconds[task, device] * (1.0 if place else _LEFT) for place, task in enumerate(held[device]))
            for device in alive
        }
        room = {device: 1 + self.num_queued - len(held[device]) for device in alive}
        chosen: list[tuple[int, int]] = []
        for task in sorted(view.ready, key=lambda task: (-levels[task], task)):
            if max(room.values()) <= 0:
                break
            best = min(alive, key=lambda device: (load[device] + seconds[task, device], device))
            load[best] += seconds[task, best]
            if seconds[task, best] < float("inf") and room[best] > 0:
                room[best] -= 1
                chosen.append((task, best))
        return chosen

    def _levels_of(self, problem: Problem) -> list[float]:
        if self._levels is None or self._levels[0] is not problem:
            from stretto.graphs.planners.averages import MeanLink, b_levels

            self._levels = (problem, b_levels(problem.arrays, MeanLink.of(problem, "all")).tolist())
        return self._levels[1]
