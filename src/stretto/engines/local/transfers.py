"""Timed transfers: each takes the seconds that the cluster states, and blocks nobody meanwhile."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from stretto.core.problem import Problem
from stretto.engines.driver.events import Transfer, TransferFinished
from stretto.engines.work import Timed, Work


def is_all_timed(work: Work) -> bool:
    """Say whether no task computes anything; then transfers are timed as well, otherwise they are real copies."""
    return all(isinstance(action, Timed) for action in work.actions)


def transfer_s(problem: Problem, order: Transfer) -> float:
    """Return the seconds of a transfer, by the latency and bandwidth of its link."""
    arrays, pair = problem.arrays, (order.source, order.target)
    return float(arrays.latency[pair]) + float(arrays.object_size[order.item]) * float(arrays.inv_bandwidth[pair])


class PendingTransfers:
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


class TransferThread(threading.Thread):
    """Calls back when each transfer is due; one thread for all links, which do not disturb each other."""

    def __init__(self, on_arrival: Callable[[Transfer], None]) -> None:
        super().__init__(name="stretto-mover", daemon=True)
        self._on_arrival = on_arrival
        self._due: list[tuple[float, int, Transfer]] = []
        self._condition = threading.Condition()
        self._number = 0
        self._is_closed = False

    def send(self, order: Transfer, seconds: float) -> None:
        """Have an object arrive after so many seconds."""
        with self._condition:
            self._number += 1
            heapq.heappush(self._due, (time.perf_counter() + seconds, self._number, order))
            self._condition.notify()

    def close(self) -> None:
        """End the thread; what is under way never arrives."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    def run(self) -> None:
        while True:
            with self._condition:
                while not self._is_closed and not (self._due and self._due[0][0] <= time.perf_counter()):
                    wait_s = self._due[0][0] - time.perf_counter() if self._due else None
                    if wait_s is None or wait_s > 0:
                        self._condition.wait(wait_s)
                if self._is_closed:
                    return
                _, _, order = heapq.heappop(self._due)
            self._on_arrival(order)
