"""The books of one run on Dask: which attempts are where, and who has the outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from stretto.engines.events import Start
from stretto.engines.work import Work

Attempt = tuple[int, int]  # a task and the number of the attempt


class Ledger:
    """Attempts from their order to their end.

    Attributes
    ----------
    outbox, sent
        By device: orders that wait here, and those that its worker has, in order.
    begun
        When the attempts that run have begun.
    future
        What Dask calls the attempts under way.
    output
        By task: the future of its output, as long as somebody may still read it.
    """

    def __init__(self, work: Work, num_devices: int) -> None:
        self.work = work
        self.outbox: list[deque[Start]] = [deque() for _ in range(num_devices)]
        self.sent: list[list[Start]] = [[] for _ in range(num_devices)]
        self.begun: dict[Attempt, float] = {}
        self.future: dict[Attempt, Any] = {}
        self.output: dict[int, Any] = {}
        self._num_readers = list(work.num_children)

    def find(self, task: int, attempt: int) -> Start | None:
        """Return the order of an attempt that its worker has, or None."""
        orders = (order for sent in self.sent for order in sent)
        return next((order for order in orders if (order.task, order.attempt) == (task, attempt)), None)

    def end(self, task: int, attempt: int) -> tuple[Start | None, Any]:
        """Take an attempt off the books; return its order and its future, where it was there."""
        order = self.find(task, attempt)
        self.begun.pop((task, attempt), None)
        if order is not None:
            self.sent[order.device].remove(order)
        return order, self.future.pop((task, attempt), None)

    def drop(self, task: int, attempt: int) -> None:
        """Forget an attempt, sent or not."""
        for waiting in self.outbox:
            for order in [order for order in waiting if (order.task, order.attempt) == (task, attempt)]:
                waiting.remove(order)
        _, future = self.end(task, attempt)
        if future is not None:
            future.release()  # nobody else wants it: Dask takes it back

    def lose(self, tasks: Iterable[int]) -> set[int]:
        """Strike out outputs that are gone; return those that were still wanted."""
        return {task for task in tasks if self.output.pop(task, None) is not None}

    def readers_of(self, lost: set[int]) -> list[tuple[Start, tuple[int, ...]]]:
        """Return the attempts under way that read any of these outputs, and which."""
        found = []
        for order in [order for sent in self.sent for order in sent]:
            read = tuple(parent for parent in self.work.inputs(order.task) if parent in lost)
            if read:
                found.append((order, read))
        return found

    def has_read(self, task: int) -> None:
        """Let Dask forget outputs that all their readers have had; should one run again, they are made again."""
        for parent in set(self.work.inputs(task)):
            self._num_readers[parent] -= 1
            if self._num_readers[parent] <= 0:
                self.output.pop(parent, None)

    def close(self) -> None:
        """Give everything back to Dask."""
        for future in (*self.future.values(), *self.output.values()):
            future.release()
