"""The driver: what happened goes in, what to do next comes out.

It is synchronous and knows no threads, sockets or clocks, so that every engine, and the simulator, runs the same
decisions. :meth:`Driver.handle` takes the events of one instant together, as a round of ``sim.reference`` does.

What it keeps, whatever an engine reports and in whichever order:

- a task starts after everything it reads exists (and, where the driver moves the data, has arrived), once per attempt;
- on the device of the plan, until that device is lost or the task failed there;
- of the tasks of one device, in the order of the discipline;
- with at most one task running and ``num_queued`` waiting on each device;
- an end is counted once: reports of attempts that are over are ignored, reports of attempts that never were are errors.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

from stretto.domain.plan import Discipline, Plan
from stretto.domain.problem import Problem
from stretto.engines.events import (
    CHARGED,
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    PriceChanged,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.online import Dispatcher, View, checked_choice
from stretto.engines.tables import Tables, ranks
from stretto.errors import EngineFailure

WAITING, READY, ISSUED, DONE, FAILED = range(5)
UNPLACED = -1


class Driver:
    """Executes a plan, or the choices of an online dispatcher.

    Parameters
    ----------
    decider
        A plan, or a :class:`~stretto.engines.online.Dispatcher` that is asked whenever tasks could be placed.
    num_queued
        Tasks that a device may be sent while it still runs another; 0 keeps decisions as late as possible, 1 hides
        the way to the device. Under ``work-conserving`` a queued task is not overtaken by one that gets ready later.
    moves_data
        True: the driver orders transfers and starts a task when its data is there. False: the engine fetches
        data by itself, and a task may start when its parents have ended.
    keeps_data
        True when outputs survive the loss of their device (shared memory, a shared file system). Otherwise what is
        lost and still needed is computed again.
    max_attempts
        How often a task may fail before it counts as failed. Until then it moves to another device that can run it.
    keep_going
        What happens when a task has failed for good: go on with what does not depend on it, or start nothing more.
    time_scale
        Seconds of the engine's clock per second of the problem, for release times.
    done
        Tasks that ended in an earlier run; their outputs are there.
    absent
        Devices that have not joined yet; their tasks wait for them.
    """

    def __init__(
        self,
        problem: Problem,
        decider: Plan | Dispatcher,
        *,
        discipline: Discipline | None = None,
        num_queued: int = 0,
        moves_data: bool = False,
        keeps_data: bool = True,
        max_attempts: int = 3,
        keep_going: bool = False,
        time_scale: float = 1.0,
        done: Iterable[int] = (),
        absent: Iterable[int] = (),
    ) -> None:
        n, m = problem.num_tasks, problem.num_devices
        self.problem = problem
        self.tables = Tables.of(problem)
        self.dispatcher = None if isinstance(decider, Plan) else decider
        planned: Discipline = decider.discipline if isinstance(decider, Plan) else "work-conserving"
        self.discipline: Discipline = discipline or planned
        self.capacity = 1 + num_queued
        self.keeps_data, self.max_attempts, self.keep_going = keeps_data, max_attempts, keep_going
        if isinstance(decider, Plan):
            self.device: list[int] = decider.assignment.tolist()
            self.rank = ranks(problem, decider, self.discipline)
        else:
            self.device, self.rank = [UNPLACED] * n, [0] * n
        self.travels = [moves_data and size > 0 for size in self.tables.size]
        self.carries_data = [not moves_data or size > 0 for size in self.tables.size]
        self.is_alive = [True] * m
        for gone in absent:
            self.is_alive[gone] = False
        self.price_usd_per_hour = [device.price_usd_per_hour for device in problem.cluster.devices]
        self.state = [WAITING] * n
        self.attempt = [0] * n
        self.failures: list[list[TaskFailed]] = [[] for _ in range(n)]
        self.holders: list[set[int]] = [set() for _ in self.tables.size]
        self.moving: set[tuple[int, int]] = set()
        self.issued: list[list[int]] = [[] for _ in range(m)]
        self.num_done = 0
        self.now_s = 0.0
        self.is_stopping = False
        self._decisions = 0
        self._releases = sorted((r * time_scale, t) for t, r in enumerate(self.tables.release_s) if r > 0)
        self._is_released = [r <= 0 for r in self.tables.release_s]
        self._missing = [0] * n
        self._heaps: list[list[tuple[int, int]]] = [[] for _ in range(m)]
        self._requests: list[tuple[int, int]] = []
        self._touched: set[int] = set()
        self._is_stale = True  # the derived state (missing, heaps, requests) is to be built anew
        for task in done:
            self._settle(task, max(self.device[task], 0))

    # What engines call -------------------------------------------------------------------------

    def begin(self) -> list[Instruction]:
        """Return what can start at time zero."""
        return self.handle((Tick(0.0),))

    def handle(self, events: Collection[Event]) -> list[Instruction]:
        """Take what happened at one instant and return what to do, transfers last."""
        for event in events:
            _HANDLERS[type(event)](self, event)
        if self._is_stale:
            self._rebuild()
        instructions: list[Instruction] = []
        if self.is_stopping:
            return instructions
        if self.dispatcher is not None:
            self._ask()
        if self._touched:
            for device in sorted(self._touched) if len(self._touched) > 1 else self._touched:
                self._fill(device, instructions)
            self._touched.clear()
        if self._requests:
            for item, target in sorted(set(self._requests)):
                self.moving.add((item, target))
                instructions.append(Transfer(item, min(self.holders[item]), target))
            self._requests.clear()
        return instructions

    def stop(self) -> list[Instruction]:
        """Start nothing more, and return orders to cancel what is under way."""
        self.is_stopping = True
        return [Cancel(t, d, self.attempt[t]) for d, tasks in enumerate(self.issued) for t in tasks]

    @property
    def is_over(self) -> bool:
        """True when everything is done, or nothing is under way and nothing will be."""
        if self.num_done == len(self.state):
            return True
        if any(self.issued):
            return False
        return self.is_stopping or not (self.moving or self._releases or self._waits_for_device())

    @property
    def is_done(self) -> bool:
        return self.num_done == len(self.state)

    @property
    def next_release_s(self) -> float:
        """When the next tasks are released; the engine sends a Tick then."""
        return self._releases[0][0] if self._releases else math.inf

    # Events ------------------------------------------------------------------------------------

    def _on_finished(self, event: TaskFinished) -> None:
        if not self.is_current(event.task, event.device, event.attempt):
            return
        task, device = event.task, event.device
        self.now_s = event.at_s
        self.issued[device].remove(task)
        self._touched.add(device)
        self._settle(task, device)
        if self._is_stale:
            return
        tables, state, missing = self.tables, self.state, self._missing
        for item in tables.outputs[task]:
            stays = not self.travels[item]
            for reader in tables.readers[item]:
                if state[reader] != WAITING:
                    continue
                target = self.device[reader]
                if stays or target in (device, UNPLACED):
                    missing[reader] -= 1
                    if missing[reader] == 0 and self._is_released[reader]:
                        self._make_ready(reader)
                elif target not in self.holders[item] and (item, target) not in self.moving:
                    self._requests.append((item, target))

    def _on_failed(self, event: TaskFailed) -> None:
        if not self.is_current(event.task, event.device, event.attempt):
            return
        task, device = event.task, event.device
        self.now_s = event.at_s
        self.issued[device].remove(task)
        self.state[task] = WAITING
        self._is_stale = True
        self._forget_data(event.lost)
        if event.blame not in CHARGED:
            if not self.is_alive[device]:
                self._move(task)
            return
        self.failures[task].append(event)
        if len(self.failures[task]) >= self.max_attempts:
            self._give_up(task)
        else:
            self._move(task, avoid={failure.device for failure in self.failures[task]})

    def _on_transferred(self, event: TransferFinished) -> None:
        self.now_s = event.at_s
        if (event.item, event.target) not in self.moving:
            return  # on its way when its target was lost
        self.moving.discard((event.item, event.target))
        self.holders[event.item].add(event.target)
        for reader in self.tables.readers[event.item]:
            if self.state[reader] == WAITING and self.device[reader] == event.target and not self._is_stale:
                self._missing[reader] -= 1
                if self._missing[reader] == 0 and self._is_released[reader]:
                    self._make_ready(reader)

    def _on_joined(self, event: DeviceJoined) -> None:
        self.now_s = event.at_s
        self.is_alive[event.device] = True
        self._touched.add(event.device)
        self._is_stale = True

    def _on_lost(self, event: DeviceLost) -> None:
        self.now_s = event.at_s
        lost = event.device
        self.is_alive[lost] = False
        for task in self.issued[lost]:
            self.state[task] = WAITING
        self.issued[lost].clear()
        self.moving = {(item, target) for item, target in self.moving if target != lost}
        if not self.keeps_data:
            for holders in self.holders:
                holders.discard(lost)
            self._revive()
        for task, device in enumerate(self.device):
            if device == lost and self.state[task] in (WAITING, READY):
                self._move(task)
        self._is_stale = True

    def _on_tick(self, event: Tick) -> None:
        self.now_s = event.at_s
        while self._releases and self._releases[0][0] <= event.at_s:
            _, task = self._releases.pop(0)
            self._is_released[task] = True
            if self.state[task] == WAITING and self._missing[task] == 0 and not self._is_stale:
                self._make_ready(task)

    def _on_price(self, event: PriceChanged) -> None:
        self.now_s = event.at_s
        self.price_usd_per_hour[event.device] = event.price_usd_per_hour

    def _on_started(self, event: TaskStarted) -> None:
        self.is_current(event.task, event.device, event.attempt)

    # State -------------------------------------------------------------------------------------

    def is_current(self, task: int, device: int, attempt: int) -> bool:
        """Say whether a report is about the attempt under way; raise when there never was such an attempt."""
        if not (0 <= task < len(self.state) and 0 < attempt <= self.attempt[task]):
            raise EngineFailure(f"a report about attempt {attempt} of task {task}, which was never started")
        return attempt == self.attempt[task] and self.state[task] == ISSUED and task in self.issued[device]

    def _settle(self, task: int, device: int) -> None:
        self.state[task] = DONE
        self.num_done += 1
        for item in self.tables.outputs[task]:
            self.holders[item] = {device}

    def _make_ready(self, task: int) -> None:
        self.state[task] = READY
        device = self.device[task]
        if device == UNPLACED:
            return
        if self.discipline == "work-conserving":
            heapq.heappush(self._heaps[device], (self.rank[task], task))
        self._touched.add(device)

    def _fill(self, device: int, instructions: list[Instruction]) -> None:
        """Send a device its next tasks, as far as it has room."""
        heap, issued, state = self._heaps[device], self.issued[device], self.state
        if not self.is_alive[device]:
            return
        while heap and len(issued) < self.capacity:
            task = heap[0][1]
            if state[task] == READY and self.device[task] == device:
                heapq.heappop(heap)
                state[task] = ISSUED
                self.attempt[task] += 1
                issued.append(task)
                instructions.append(Start(task, device, self.attempt[task]))
            elif state[task] == WAITING and self.device[task] == device and self.discipline == "sequence":
                return
            else:
                heapq.heappop(heap)  # from before it moved, or failed for good

    def _rebuild(self) -> None:
        """Work out anew who waits for what; after losses and failures, which are rare."""
        tables = self.tables
        self._heaps = [[] for _ in self._heaps]
        self._requests.clear()
        self._is_stale = False
        for task, state in enumerate(self.state):
            if state not in (WAITING, READY):
                continue
            device = self.device[task]
            gone = [item for item in tables.reads[task] if not self._is_there(item, device)]
            self._missing[task] = len(gone)
            self.state[task] = WAITING
            if device != UNPLACED and self.discipline == "sequence":
                self._heaps[device].append((self.rank[task], task))
            if not gone and self._is_released[task]:
                self._make_ready(task)
            self._requests += [
                (item, device)
                for item in gone
                if self.holders[item] and device != UNPLACED and (item, device) not in self.moving
            ]
        for heap in self._heaps:
            heapq.heapify(heap)
        self._touched.update(device for device, is_alive in enumerate(self.is_alive) if is_alive)

    def _is_there(self, item: int, device: int) -> bool:
        if self.state[self.tables.producer[item]] != DONE:
            return False
        return not self.travels[item] or device == UNPLACED or device in self.holders[item]

    # Failures ----------------------------------------------------------------------------------

    def _move(self, task: int, avoid: Collection[int] = ()) -> None:
        """Place a task on the remaining device that would be through with it first, by what is left to do there."""
        if self.dispatcher is not None:
            self.device[task] = UNPLACED
            return
        able = [d for d, is_alive in enumerate(self.is_alive) if is_alive and self.tables.can_run(task, d)]
        if not able:
            self._give_up(task)
            return
        fresh = [d for d in able if d not in avoid] or able
        load = [0.0] * len(self.is_alive)
        for other, device in enumerate(self.device):
            if other != task and self.state[other] in (WAITING, READY, ISSUED):
                load[device] += self.tables.seconds(other, device)
        self.device[task] = min(fresh, key=lambda d: (load[d] + self.tables.seconds(task, d), d))

    def _give_up(self, task: int) -> None:
        """Count a task as failed, and with it all that can never run without it."""
        self.is_stopping = self.is_stopping or not self.keep_going
        hopeless = [task]
        while hopeless:
            current = hopeless.pop()
            self.state[current] = FAILED
            readers = (reader for item in self.tables.outputs[current] for reader in self.tables.readers[item])
            hopeless += [reader for reader in readers if self.state[reader] in (WAITING, READY)]

    def _forget_data(self, lost: Iterable[int]) -> None:
        for task in lost:
            for item in self.tables.outputs[task]:
                self.holders[item].clear()
        self._revive()

    def _revive(self) -> None:
        """Have every task run again whose output is gone and still needed, by somebody unfinished or so revived."""
        wanted = [t for t, state in enumerate(self.state) if state in (WAITING, READY, ISSUED)]
        while wanted:
            for item in self.tables.reads[wanted.pop()]:
                producer = self.tables.producer[item]
                if self.state[producer] == DONE and self.carries_data[item] and not self.holders[item]:
                    self.state[producer] = WAITING
                    self.num_done -= 1
                    wanted.append(producer)
                    if not self.is_alive[self.device[producer]]:
                        self._move(producer)
        self._is_stale = True

    def _waits_for_device(self) -> bool:
        """Say whether some task only waits for a device that has not joined yet."""
        return any(
            state == READY and device != UNPLACED and not self.is_alive[device]
            for state, device in zip(self.state, self.device, strict=True)
        )

    # Online ------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Let the dispatcher place ready tasks, until it has nothing more to say."""
        assert self.dispatcher is not None
        while True:
            ready = tuple(t for t, s in enumerate(self.state) if s == READY and self.device[t] == UNPLACED)
            if not ready or not any(self.is_alive):
                return
            view = View(
                self.problem,
                self.now_s,
                ready,
                tuple(tuple(tasks) for tasks in self.issued),
                tuple(self.is_alive),
                tuple(self.price_usd_per_hour),
            )
            chosen = checked_choice(view, self.tables, self.dispatcher.choose(view))
            for task, device in chosen:
                self.device[task], self.rank[task] = device, self._decisions
                self._decisions += 1
            if not chosen:
                return
            self._rebuild()


_HANDLERS: dict[type, Callable[[Driver, Any], None]] = {
    TaskFinished: Driver._on_finished,
    TaskFailed: Driver._on_failed,
    TransferFinished: Driver._on_transferred,
    DeviceJoined: Driver._on_joined,
    DeviceLost: Driver._on_lost,
    Tick: Driver._on_tick,
    PriceChanged: Driver._on_price,
    TaskStarted: Driver._on_started,
}
