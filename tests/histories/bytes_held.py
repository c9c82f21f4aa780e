"""What devices hold in memory, by an account of its own that the driver's account must equal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from stretto.core.problem import Problem
from stretto.engines.driver.events import Start
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.work import OpenReads, Work


class BytesHeld:
    """Outputs that somebody will read, copies, and what tasks under way have reserved.

    Parameters
    ----------
    sizes
        Of the outputs, which nobody knows before they are there.
    """

    def __init__(
        self, clock: Any, work: Work, problem: Problem, done: Collection[int], sizes: Sequence[int], makes_copies: bool
    ) -> None:
        self.clock, self.work, self.sizes, self.makes_copies = clock, work, sizes, makes_copies
        declared = work.graph.memory_bytes
        self.own = declared.tolist() if declared is not None else [0.0] * work.graph.num_tasks
        self.expected: dict[int, int] = {}  # sizes that were seen
        self.reserved: dict[int, float] = {}  # by tasks when they started, or when their output was there
        self.copies: set[tuple[int, int]] = set()
        self.home: dict[int, int] = {}
        self.readers: list[set[int]] = [set() for _ in sizes]
        for task in range(len(sizes)):
            for parent in work.inputs(task):
                self.readers[parent].add(task)
        self.account = DeviceMemory.of(work, problem, makes_copies, self._evict, done)

    def preload(self, done: dict[int, object], device: Sequence[int]) -> None:
        """Have the outputs of an earlier part of the run, as the engine ``local`` does."""
        self.home = {task: device[task] for task in done}
        if self.account is not None:
            for task, _ in OpenReads(self.work, done).still_read(done):
                self.account.preload(task, device[task], self.sizes[task])

    def start(self, order: Start) -> None:
        """Note what a task will read: where copies are made, it has one of each foreign input."""
        self.reserved[order.task] = self.own[order.task] + self.expected.get(order.task, 0)
        if self.makes_copies:
            foreign = [parent for parent in self.work.inputs(order.task) if self.home[parent] != order.device]
            self.copies |= {(parent, order.device) for parent in foreign}

    def end(self, order: Start) -> str | None:
        """Weigh an output; return the blame where there is no room for it."""
        if self.account is None:
            return None
        task, size = order.task, self.sizes[order.task]
        self.expected[task] = size
        blame = self.account.weigh(task, order.device, size)
        if blame is None:
            self.reserved[task] = self.own[task] + size
        return blame

    def keep(self, task: int, device: int) -> None:
        """Note where an output is."""
        self.home[task] = device

    def check(self, under_way: Collection[tuple[int, int]], ended: Collection[int]) -> None:
        """Compare both accounts; ``under_way`` are tasks and their devices."""
        if self.account is None:
            return
        mine = [0.0] * len(self.account.used)
        for task, device in under_way:
            mine[device] += self.reserved[task]
        for task in ended:
            places = {device for copied, device in self.copies if copied == task} | {self.home[task]}
            if self.readers[task] - set(ended):
                for device in places - {-1}:
                    mine[device] += self.sizes[task]
        for device, (used, limit) in enumerate(zip(self.account.used, self.account.limit, strict=True)):
            told = f"device {device} holds {mine[device]:,.0f} of {limit:,.0f} bytes"
            self.clock.need(mine[device] <= limit, told)
            self.clock.need(abs(used - mine[device]) < 0.5, f"{told}, and the driver counts {used:,.0f}")

    def _evict(self, task: int, device: int) -> None:
        self.clock.need((task, device) in self.copies, f"device {device} is to let go of a copy that it does not have")
        self.copies.discard((task, device))
