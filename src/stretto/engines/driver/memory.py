"""Memory of devices, in bytes: a task starts only where it fits together with its inputs and outputs.

A device holds outputs that were made there and copies of what its tasks read, until no task will read them again.
Copies are evicted when room is needed, since they can be made again. While a task runs, its own bytes and its expected
output are reserved. Outputs are expected to be as large as the graph says, or as large as they were before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from stretto.core.problem import Problem
from stretto.engines.work import Call, OpenReads, Work

NOWHERE = -1


class DeviceMemory:
    """Accounts bytes by task and device; the driver asks it before every start.

    Parameters
    ----------
    makes_copies
        False where devices read each other's data in place.
    on_evict
        Called with a task and a device whose copy of the task's output is evicted.
    done
        Tasks of an earlier part of the run.
    """

    def __init__(
        self,
        work: Work,
        problem: Problem,
        makes_copies: bool,
        on_evict: Callable[[int, int], None],
        done: Collection[int] = (),
    ) -> None:
        self.limit = [device.memory_bytes for device in problem.cluster.devices]
        self.used = [0.0] * len(self.limit)
        self.never_fits: set[int] = set()  # tasks that did not even fit into an empty device
        self._work, self._makes_copies, self._on_evict = work, makes_copies, on_evict
        declared = work.graph.memory_bytes
        self._own = declared.tolist() if declared is not None else [0.0] * work.graph.num_tasks
        self._expected = _declared_outputs(work)
        self._size: dict[int, float] = {}  # of outputs that are there
        self._home: dict[int, int] = {}
        self._copies: dict[int, set[int]] = {}  # devices that have a copy, by task
        self._reserved: dict[int, tuple[int, float]] = {}  # device and bytes, by task under way
        self._open_reads = OpenReads(work, done)

    @staticmethod
    def of(
        work: Work,
        problem: Problem,
        makes_copies: bool,
        on_evict: Callable[[int, int], None],
        done: Collection[int] = (),
    ) -> DeviceMemory | None:
        """Return the accounts, or None when no device has a limit."""
        limits = [device.memory_bytes for device in problem.cluster.devices]
        return DeviceMemory(work, problem, makes_copies, on_evict, done) if min(limits) < float("inf") else None

    def preload(self, task: int, device: int, size: float) -> None:
        """Record an output of an earlier run that somebody will read; ``NOWHERE`` when it lies on no device."""
        self._size[task], self._home[task] = size, device
        if device != NOWHERE:
            self.used[device] += size

    # Before a task -------------------------------------------------------------------------------

    def admits(self, task: int, device: int, under_way: Collection[int]) -> bool:
        """Say whether a task fits on a device now, after evicting copies that no running task reads if need be."""
        inputs = {parent: self._size[parent] for parent in self._work.inputs(task)}
        fixed = self._own[task] + self._expected[task]
        missing = fixed + sum(size for parent, size in inputs.items() if self._is_missing(parent, device))
        if self.used[device] + missing <= self.limit[device]:
            return True
        foreign = sum(size for p, size in inputs.items() if self._home[p] != device) if self._makes_copies else 0.0
        local = sum(size for parent, size in inputs.items() if self._home[parent] == device)
        if fixed + foreign + local > self.limit[device]:
            self.never_fits.add(task)
            return False
        return self._make_room(self.used[device] + missing - self.limit[device], device, {task, *under_way})

    def _is_missing(self, task: int, device: int) -> bool:
        return self._makes_copies and self._home[task] != device and device not in self._copies.get(task, ())

    def _make_room(self, size: float, device: int, readers: Iterable[int]) -> bool:
        kept = {parent for reader in readers for parent in self._work.inputs(reader)}
        spare = [task for task, devices in self._copies.items() if device in devices and task not in kept]
        if sum(self._size[task] for task in spare) < size:
            return False
        spare.sort(key=lambda task: (-self._size[task], task))
        while size > 0:
            task = spare.pop(0)
            size -= self._size[task]
            self.used[device] -= self._size[task]
            self._copies[task].discard(device)
            self._on_evict(task, device)
        return True

    def reserve(self, task: int, device: int) -> None:
        """Record what a task that starts will take, and the copies it reads."""
        for parent in set(self._work.inputs(task)):
            if self._is_missing(parent, device):
                self._copies.setdefault(parent, set()).add(device)
                self.used[device] += self._size[parent]
        size = self._own[task] + self._expected[task]
        self._reserved[task] = (device, size)
        self.used[device] += size

    # After a task --------------------------------------------------------------------------------

    def weigh(self, task: int, device: int, size: float) -> Literal["memory", "full"] | None:
        """Note how large an output is; return None when it fits, or the blame of the failure.

        ``memory``: it is larger than the device could ever hold; ``full``: there is no room for it now.
        """
        more = size - self._expected[task]
        self._expected[task] = size
        if self.used[device] + more <= self.limit[device]:
            self._reserved[task] = (device, self._own[task] + size)
            self.used[device] += more
            return None
        return "memory" if size + self._own[task] > self.limit[device] else "full"

    def withdraw(self, task: int) -> None:
        """Record that a task is no longer under way."""
        device, size = self._reserved.pop(task, (NOWHERE, 0.0))
        if device != NOWHERE:
            self.used[device] -= size

    def finish(self, task: int, device: int) -> set[int]:
        """Record an output, release what nobody will read again, and return the devices with more room."""
        self._size[task], self._home[task] = self._expected[task], device
        self.used[device] += self._expected[task]
        freed = {device}
        for unread in self._open_reads.finish(task):
            freed |= self._drop(unread)
        return freed

    def _drop(self, task: int) -> set[int]:
        size, places = self._size[task], self._copies.pop(task, set())
        if self._home[task] != NOWHERE:
            places.add(self._home[task])
        for device in places:
            self.used[device] -= size
        return places

    def fill(self, device: int) -> str:
        """Return how full a device is, in words."""
        return f"the device holds {self.used[device]:,.0f} of {self.limit[device]:,.0f}"

    def why_not(self, task: int, device: int) -> str:
        """Return why a task does not fit, in words."""
        inputs = sum(self._size[parent] for parent in set(self._work.inputs(task)))
        return (
            f"does not fit: it takes {self._own[task]:,.0f} bytes itself, {inputs:,.0f} of inputs and "
            f"{self._expected[task]:,.0f} of outputs; {self.fill(device)}, and no running task will free more"
        )


def _declared_outputs(work: Work) -> list[float]:
    """Return the bytes that tasks say they will make; files of commands and outputs of timed tasks stay elsewhere.

    Objects of one task may be parts or the same data: the largest counts, since too much could keep a task from ever
    being tried.
    """
    graph = work.graph
    found = [0.0] * graph.num_tasks
    if graph.transfer_unit != "bytes":
        return found
    for task, size in zip(graph.object_task.tolist(), graph.object_size.tolist(), strict=True):
        if isinstance(work.actions[task], Call):
            found[task] = max(found[task], size)
    return found
