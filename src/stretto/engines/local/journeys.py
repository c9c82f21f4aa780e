"""Timed transfers that one loop looks after: each takes the seconds that the cluster says."""

from __future__ import annotations

import heapq

from stretto.core.problem import Problem
from stretto.engines.events import Transfer, TransferFinished
from stretto.engines.work import Timed, Work


def is_all_timed(work: Work) -> bool:
    """Say whether no task computes anything; then transfers are timed as well, otherwise they are real copies."""
    return all(isinstance(action, Timed) for action in work.actions)


def transfer_s(problem: Problem, order: Transfer) -> float:
    """Return the seconds of a transfer, by the latency and bandwidth of its link."""
    arrays, pair = problem.arrays, (order.source, order.target)
    return float(arrays.latency[pair]) + float(arrays.object_size[order.item]) * float(arrays.inv_bandwidth[pair])


class Journeys:
    """What is on its way, and until when."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, int]] = []

    def send(self, order: Transfer, due_s: float) -> None:
        heapq.heappush(self._due, (due_s, order.item, order.target))

    @property
    def next_s(self) -> float:
        """When the next arrival is due."""
        return self._due[0][0] if self._due else float("inf")

    def arrivals(self, now_s: float) -> list[TransferFinished]:
        """Take out what has arrived."""
        found = []
        while self._due and self._due[0][0] <= now_s:
            due_s, item, target = heapq.heappop(self._due)
            found.append(TransferFinished(item, target, due_s))
        return found
