"""The driver's state: how far each task is, what it waits for, and what each device runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from stretto.core.plan import Discipline
from stretto.engines.driver.events import Instruction, Start, Transfer
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.driver.rooms import NodeRooms
from stretto.engines.driver.tables import Tables

WAITING, READY, ISSUED, DONE, FAILED = range(5)
UNPLACED = -1


class TaskStates:
    """The state of all tasks, objects and devices.

    The end of a task is recorded at once and touches only what depends on it. Losses and failures are rare: they
    change the facts (states, devices, holders) and set ``is_stale``, and :meth:`rebuild` derives the rest again.
    """

    def __init__(
        self,
        tables: Tables,
        device: list[int],
        rank: list[int],
        discipline: Discipline,
        *,
        capacity: int,
        moves_data: bool,
        absent: Iterable[int],
        memory: DeviceMemory | None = None,
        rooms: NodeRooms | None = None,
    ) -> None:
        n, m = len(tables.reads), len(tables.device_class)
        self.tables, self.discipline, self.capacity, self.memory = tables, discipline, capacity, memory
        self.rooms = rooms
        self.device, self.rank = device, rank
        self.travels = [moves_data and size > 0 for size in tables.size]
        self.carries_data = [not moves_data or size > 0 for size in tables.size]
        self.is_alive = [True] * m
        for gone in absent:
            self.is_alive[gone] = False
        self.state = [WAITING] * n
        self.attempt = [0] * n
        self.holders: list[set[int]] = [set() for _ in tables.size]  # devices that have an object
        self.moving: set[tuple[int, int]] = set()  # objects on their way, and where to
        self.issued: list[list[int]] = [[] for _ in range(m)]
        self.is_released = [release_s <= 0 for release_s in tables.release_s]
        self.num_done = 0
        self.touched: set[int] = set()  # devices that may have something new to start
        self.is_stale = True
        self._missing = [0] * n
        self._heaps: list[list[tuple[int, int]]] = [[] for _ in range(m)]
        self._requests: list[tuple[int, int]] = []

    # Frequent events ---------------------------------------------------------------------------

    def settle(self, task: int, device: int) -> None:
        """Record that a task is done and its outputs are on a device."""
        self.state[task] = DONE
        self.num_done += 1
        for item in self.tables.outputs[task]:
            self.holders[item] = {device}

    def finish(self, task: int, device: int) -> None:
        """Record the end of a running task: readers may get ready, and outputs have to move."""
        self.withdraw(task, device)
        self.settle(task, device)
        if self.memory is not None:
            self.touched |= self.memory.finish(task, device)
        if self.is_stale:
            return
        state, missing = self.state, self._missing
        for item in self.tables.outputs[task]:
            stays = not self.travels[item]
            for reader in self.tables.readers[item]:
                if state[reader] != WAITING:
                    continue
                target = self.device[reader]
                if stays or target in (device, UNPLACED):
                    missing[reader] -= 1
                    if missing[reader] == 0 and self.is_released[reader]:
                        self._make_ready(reader)
                elif target not in self.holders[item] and (item, target) not in self.moving:
                    self._requests.append((item, target))

    def withdraw(self, task: int, device: int) -> None:
        """Record that a device no longer runs a task."""
        self.issued[device].remove(task)
        self.touched.add(device)
        if self.rooms is not None:
            self.rooms.give(task)
        if self.memory is not None:
            self.memory.withdraw(task)

    def arrive(self, item: int, target: int) -> None:
        """Record that an object has come to a device."""
        if (item, target) not in self.moving:
            return  # it was on its way when its target was lost
        self.moving.discard((item, target))
        is_known = target in self.holders[item]
        self.holders[item].add(target)
        if self.is_stale or is_known or self.state[self.tables.producer[item]] != DONE:
            return  # a producer that runs again counts when it ends
        for reader in self.tables.readers[item]:
            if self.state[reader] == WAITING and self.device[reader] == target:
                self._missing[reader] -= 1
                if self._missing[reader] == 0 and self.is_released[reader]:
                    self._make_ready(reader)

    def release(self, task: int) -> None:
        """Record that a task may start from now on."""
        self.is_released[task] = True
        if self.state[task] == WAITING and self._missing[task] == 0 and not self.is_stale:
            self._make_ready(task)

    def _make_ready(self, task: int) -> None:
        self.state[task] = READY
        device = self.device[task]
        if device == UNPLACED:
            return
        if self.discipline == "work-conserving":
            heapq.heappush(self._heaps[device], (self.rank[task], task))
        self.touched.add(device)

    # Instructions ------------------------------------------------------------------------------

    def orders(self) -> list[Instruction]:
        """Return what the touched devices start, in the order of devices, and then what has to move."""
        found: list[Instruction] = []
        if self.touched:
            for device in sorted(self.touched) if len(self.touched) > 1 else self.touched:
                self._fill(device, found)
            self.touched.clear()
        if self._requests:
            for item, target in sorted(set(self._requests)):
                self.moving.add((item, target))
                found.append(Transfer(item, min(self.holders[item]), target))
            self._requests.clear()
        return found

    def _fill(self, device: int, found: list[Instruction]) -> None:
        """Send a device its next tasks, as far as it has room; a node takes all that fit."""
        heap, issued, state = self._heaps[device], self.issued[device], self.state
        if not self.is_alive[device]:
            return
        rooms = self.rooms if self.rooms is not None and self.rooms.is_node(device) else None
        held: list[tuple[int, int]] = []  # they do not fit now; others may go first
        while heap and (rooms is not None or len(issued) < self.capacity):
            task = heap[0][1]
            if state[task] == READY and self.device[task] == device:
                if (rooms is not None and not rooms.fits(task, device)) or (
                    self.memory is not None and not self.memory.admits(task, device, issued)
                ):
                    if self.discipline == "sequence":
                        return
                    held.append(heapq.heappop(heap))
                    continue
                if rooms is not None:
                    rooms.take(task, device)
                if self.memory is not None:
                    self.memory.reserve(task, device)
                heapq.heappop(heap)
                state[task] = ISSUED
                self.attempt[task] += 1
                issued.append(task)
                found.append(Start(task, device, self.attempt[task]))
            elif state[task] == WAITING and self.device[task] == device and self.discipline == "sequence":
                return
            else:
                heapq.heappop(heap)  # from before it moved, or failed for good
        for entry in held:
            heapq.heappush(heap, entry)

    def held_back(self) -> list[int]:
        """Return the ready tasks that have a device, in order: they wait for room or for their turn."""
        placed = [(self.rank[t], t) for t, state in enumerate(self.state) if state == READY and self.device[t] >= 0]
        return [task for _, task in sorted(placed) if self.is_alive[self.device[task]]]

    def waits_for_device(self) -> bool:
        """Say whether some task only waits for a device that has not joined yet."""
        return any(
            state == READY and device != UNPLACED and not self.is_alive[device]
            for state, device in zip(self.state, self.device, strict=True)
        )

    # After losses and failures --------------------------------------------------------------------

    def open_tasks(self) -> tuple[list[int], list[list[int]]]:
        """Return the ready tasks without a device, and what each device has before it: issued first, then placed."""
        ready: list[int] = []
        placed: list[tuple[int, int]] = []
        for task, state in enumerate(self.state):
            if state == READY and self.device[task] == UNPLACED:
                ready.append(task)
            elif state in (WAITING, READY) and self.device[task] != UNPLACED:
                placed.append((self.rank[task], task))
        given = [list(tasks) for tasks in self.issued]
        for _, task in sorted(placed):
            given[self.device[task]].append(task)
        return ready, given

    def rebuild(self) -> None:
        """Derive again which tasks wait for what, and what has to move."""
        self._heaps = [[] for _ in self._heaps]
        self._requests.clear()
        self.is_stale = False
        for task, state in enumerate(self.state):
            if state not in (WAITING, READY):
                continue
            device = self.device[task]
            gone = [item for item in self.tables.reads[task] if not self._is_there(item, device)]
            self._missing[task] = len(gone)
            self.state[task] = WAITING
            if device != UNPLACED and self.discipline == "sequence":
                self._heaps[device].append((self.rank[task], task))
            if not gone and self.is_released[task]:
                self._make_ready(task)
            if device != UNPLACED:
                made = [item for item in gone if self.state[self.tables.producer[item]] == DONE]
                self._requests += [
                    (item, device) for item in made if self.holders[item] and (item, device) not in self.moving
                ]
        for heap in self._heaps:
            heapq.heapify(heap)
        self.touched.update(device for device, is_alive in enumerate(self.is_alive) if is_alive)

    def _is_there(self, item: int, device: int) -> bool:
        if self.state[self.tables.producer[item]] != DONE:
            return False
        return not self.travels[item] or device == UNPLACED or device in self.holders[item]
