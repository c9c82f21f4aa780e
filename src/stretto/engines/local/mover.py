"""Timed transfers: they take the seconds that the cluster says, and block nobody meanwhile."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from stretto.engines.events import Transfer


class Mover(threading.Thread):
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
