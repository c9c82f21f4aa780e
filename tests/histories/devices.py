"""Virtual devices that fail, and the messages to and from them: what the driver orders here is checked.

The engine keeps an account of its own of what the driver may order, and checks every order against it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import Driver, DriverRules
from stretto.engines.driver.events import (
    CHARGED,
    Cancel,
    DeviceJoined,
    DeviceLost,
    Event,
    Instruction,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    Transfer,
    TransferFinished,
)
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.outputs import digest
from stretto.engines.recorder import Recorder, driver_for
from stretto.engines.work import Work, timed_output

from .bytes_held import BytesHeld

#: Seconds that a decision may take.
DECISION_S = 2.0


@dataclass(frozen=True)
class VirtualEngine(DriverEngine):
    """Runs plans on the virtual devices of a world."""

    world: Any = None

    def available(self) -> str | None:
        return None

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        spec = self.world.truth.spec
        rules = DriverRules(num_queued=spec.num_queued, keeps_data=spec.keeps_data, moves_data=spec.moves_data)
        copies = spec.makes_copies and not spec.moves_data
        held = BytesHeld(self.world.clock, work, problem, options.done, spec.output_bytes, copies)
        if not spec.counts_memory:
            held.account = None
        driver = driver_for(problem, decider, work, options, rules, memory=held.account)
        held.preload(dict(options.done), driver.device)
        return Site(self.world, driver, work, options, held).play()


class Site:
    """Virtual devices and the messages to and from them, as one engine sees them."""

    def __init__(self, world: Any, driver: Driver, work: Work, options: RunOptions, held: BytesHeld) -> None:
        self.world, self.clock, self.truth, self.held = world, world.clock, world.truth, held
        self.driver, self.work, self.options = driver, work, options
        self.recorder = Recorder(work, driver, options)
        self.begin_s = self.clock.now_s
        m = driver.problem.num_devices
        self.alive = [True] * m
        self.told_alive = list(self.alive)  # as far as the driver was told
        self.num_moving = 0
        self.was_alone = False  # the driver once knew of no device
        self.open: dict[tuple[int, int], tuple[int, float]] = {}  # (task, attempt): device, deadline
        self.queues: list[list[Start]] = [[] for _ in range(m)]  # what devices have before them
        self.busy: dict[tuple[int, int], float] = {}  # (task, attempt): started
        self.inbox: list[tuple[float, int, Event]] = []
        self.count = itertools.count()
        self.outputs: dict[int, object] = dict(options.done)
        self.holders: dict[int, set[int]] = {task: {max(driver.device[task], 0)} for task in options.done}
        self.arrived: set[tuple[int, int]] = set()
        self.charged = [0] * work.graph.num_tasks
        self.ended: set[int] = set(options.done)
        self.dropped: set[int] = set()  # tasks whose output was lost
        self.missed: set[int] = set()  # those of which the driver knows
        world.site = self

    # The loop of an engine --------------------------------------------------------------------------------------

    def play(self) -> RunResult:
        driver = self.driver
        self._obey(driver.begin())
        is_interrupted = False
        while not driver.is_over:
            if self.truth.is_cancelled and not driver.is_stopping:
                is_interrupted = True
                self._obey(driver.stop())
            events = self._next_events()
            for event in events:
                self._note(event)
            before_s = self.clock.now_s
            found = driver.handle(events)
            self._check_budget(self.clock.now_s - before_s)
            self._obey(found)
            if not driver.is_stopping:  # then tasks that were cancelled count until they have said so
                self.held.check([(task, device) for (task, _), (device, _) in self.open.items()], self.ended)
        has_failed = any(count >= self.truth.spec.max_attempts for count in self.charged)
        is_meant = driver.is_done or driver.is_stopping or has_failed or self.was_alone
        self.clock.need(is_meant, "the run ends although no task has failed for good")
        self.clock.need(not driver.refused, "a task was refused for want of memory, and there was room")
        return self.recorder.result("virtual", is_timed=True, is_interrupted=is_interrupted)

    def _check_budget(self, seconds: float) -> None:
        # A view is shown again after each answer, so one event may lead to some decisions.
        most = DECISION_S * (1 + self.work.graph.num_tasks) + 1e-6
        self.clock.need(seconds <= most, f"a decision took {seconds:.1f} s: more than the dispatcher's budget")

    def _next_events(self) -> list[Event]:
        now = self._now()
        due = min(
            self.driver.next_release_s,
            self.inbox[0][0] if self.inbox else math.inf,
            min((deadline for _, deadline in self.open.values()), default=math.inf),
            now + 1.0 if self.num_moving else math.inf,
        )
        self.clock.need(due < math.inf or self.truth.is_cancelled, "the run is stuck: nothing runs, and nothing is due")
        # Whoever drives a run looks up at least once a second: for Ctrl-C, and for devices.
        self.clock.wait(lambda: bool(self.inbox) and self.inbox[0][0] <= self._now(), min(max(due - now, 1e-9), 1.0))
        self.clock.op("looking for messages")
        events: list[Event] = []
        while self.inbox and self.inbox[0][0] <= self._now():
            events.append(heapq.heappop(self.inbox)[2])
        for (task, attempt), (device, deadline) in list(self.open.items()):
            if deadline <= self._now() and not any(_is_about(event, task, attempt) for event in events):
                self._stop(task, attempt, device)
                events.append(TaskFailed(task, device, attempt, self._now(), "timeout", "gave no sign of life"))
        return [*events, Tick(self._now())]

    def _note(self, event: Event) -> None:
        driver = self.driver
        if isinstance(event, (TaskFinished, TaskFailed)):
            is_current = driver.is_current(event.task, event.device, event.attempt)
            if is_current:
                self.open.pop((event.task, event.attempt), None)
            if isinstance(event, TaskFailed):
                self.charged[event.task] += is_current and event.blame in CHARGED
                self.dropped.update(event.lost)
            elif is_current:
                self._finish(event)
                return
        elif isinstance(event, DeviceLost):
            self.open = {key: (device, due) for key, (device, due) in self.open.items() if device != event.device}
            self.missed |= self.dropped
            self.told_alive[event.device] = False
            self.was_alone = self.was_alone or not any(self.told_alive)
        elif isinstance(event, DeviceJoined):
            self.told_alive[event.device] = True
        self.recorder.note(event)

    def _finish(self, event: TaskFinished) -> None:
        """Take an end: what the log has when this returns is committed, unless the disk has failed meanwhile."""
        task = event.task
        value = self.outputs.get(task, self.truth.expected[task])
        failed = self.clock.num_failed_ops
        self.recorder.deliver(task, lambda: value)
        self.recorder.note(event)
        if self.clock.num_failed_ops == failed:
            self.truth.committed.add(task)
        self.clock.tell(f"the end of task {task}, attempt {event.attempt}, is recorded")
        self.ended.add(task)
        self.held.keep(task, event.device)
        if self.holders[task]:
            self.dropped.discard(task)
            self.missed.discard(task)

    # What the driver orders -----------------------------------------------------------------------------------------

    def _obey(self, orders: Sequence[Instruction]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self._check_start(order)
                self._send(order)
            elif isinstance(order, Cancel):
                self._stop(order.task, order.attempt, order.device)
                self._post(0.1, TaskFailed(order.task, order.device, order.attempt, self._now(), "cancelled", "asked"))
            elif isinstance(order, Transfer):
                self._move(order)
        for device in range(len(self.queues)):
            self._work(device)

    def _check_start(self, order: Start) -> None:
        need, driver, task, device = self.clock.need, self.driver, order.task, order.device
        what = f"task {task} on device {device}, attempt {order.attempt}"
        need(self.told_alive[device], f"{what}: that device is lost")
        need(driver.tables.can_run(task, device), f"{what}: that device cannot run it")
        need(not driver.is_stopping, f"{what}: started although the run is stopping")
        need(all(one != task for one, _ in self.open), f"{what}: it is already running")
        need(
            task not in self.truth.committed or task in self.dropped,
            f"{what}: started again although its end was committed",
        )
        for parent in self.work.parents[task]:
            is_there = parent in self.ended and (parent not in self.missed or self.truth.spec.moves_data)
            need(is_there, f"{what}: its parent {parent} has not ended")
        if self.truth.spec.moves_data:
            for item in driver.tables.reads[task]:
                producer = driver.tables.producer[item]
                is_here = device in self.holders.get(producer, ()) or (item, device) in self.arrived
                is_gone = not self.alive[device]  # the driver may not know yet
                need(driver.tables.size[item] == 0 or is_here or is_gone, f"{what}: object {item} has not arrived")
        need(self.charged[task] < self.truth.spec.max_attempts, f"{what}: it has failed for good")
        self.open[task, order.attempt] = (device, math.inf)
        self.held.start(order)
        self._check_capacity(device, what)

    def _check_capacity(self, device: int, what: str) -> None:
        here = [task for (task, _), (where, _) in self.open.items() if where == device]
        node = self.driver.problem.cluster.devices[device]
        if node.packs:
            graph = self.work.graph
            cores = sum(graph.cores[here]) if graph.cores is not None else len(here)
            memory = sum(graph.memory_bytes[here]) if graph.memory_bytes is not None else 0
            is_kept = cores <= node.cores and memory <= node.memory_bytes
            self.clock.need(is_kept, f"{what}: the node is asked for {cores} cores and {memory:,.0f} bytes")
        else:
            most = 1 + self.truth.spec.num_queued
            self.clock.need(len(here) <= most, f"{what}: the device has {len(here)} tasks, {most} at most")

    # Devices ----------------------------------------------------------------------------------------------------------

    def _send(self, order: Start) -> None:
        self.clock.tell(f"task {order.task}, attempt {order.attempt}, is sent to device {order.device}")
        fate = self.world.message_fate("order")
        deadline = self._now() + 15.0 * (1 + len(self.queues[order.device])) + 30.0
        self.open[order.task, order.attempt] = (order.device, deadline)
        if fate != "lost" and self.alive[order.device]:
            self.queues[order.device].append(order)

    def _work(self, device: int) -> None:
        """Have a device begin what it has before it: a node everything, another device one task at a time."""
        packs = self.driver.problem.packing is not None and self.driver.problem.packing.packs[device]
        for place, order in enumerate(list(self.queues[device])):
            if (place > 0 and not packs) or (order.task, order.attempt) in self.busy or not self.alive[device]:
                continue
            self._begin(order)

    def _begin(self, order: Start) -> None:
        key = order.task, order.attempt
        self.busy[key] = self._now()
        if self.world.message_fate("start report") == "":
            self._post(0.05, TaskStarted(order.task, order.device, order.attempt, self._now()))
        lost = [parent for parent in self.work.parents[order.task] if not self._has_data(parent)]
        if lost:
            self.clock.tell(f"task {order.task} misses the outputs of {lost}")
        seconds = self.driver.tables.seconds(order.task, order.device) * self.world.slowness(order.device)
        self.clock.at(self.clock.now_s + (0.05 if lost else seconds), lambda: self._end(order, tuple(lost)))

    def _has_data(self, task: int) -> bool:
        spec = self.truth.spec
        return spec.keeps_data or spec.moves_data or task in self.options.done or bool(self.holders.get(task))

    def _end(self, order: Start, lost: tuple[int, ...]) -> None:
        key = order.task, order.attempt
        process = self.world.run_process
        if key not in self.busy or self.world.site is not self or not process.is_running:
            return
        start_s, task = self.busy.pop(key), order.task
        if order in self.queues[order.device]:
            self.queues[order.device].remove(order)
        trouble = self.world.trouble()
        if not trouble and not lost and self.driver.is_current(task, order.device, order.attempt):
            trouble = self.held.end(order) or ""
        if lost:
            self._report(TaskFailed(task, order.device, order.attempt, self._now(), "input", "its input is gone", lost))
        elif trouble:
            self._report(TaskFailed(task, order.device, order.attempt, self._now(), trouble, "a fault"))
        else:
            value = timed_output(task, [self.outputs[parent] for parent in self.work.inputs(task)])
            self.clock.need(value == self.truth.expected[task], f"task {task} was given wrong inputs")
            event = TaskFinished(task, order.device, order.attempt, start_s, self._now(), digest(value))
            self.outputs[task] = value
            self.holders[task] = {order.device}
            if self.truth.spec.logs_at_worker and self.options.on_done is not None:
                self.options.on_done(event, value)
            self._report(event)
        self._work(order.device)

    def _report(self, event: TaskFinished | TaskFailed) -> None:
        fate = self.world.message_fate("report")
        if fate != "lost":
            self._post(20.0 if fate == "late" else 0.05, event)
        if fate == "doubled":
            self._post(7.0, event)

    def _move(self, order: Transfer) -> None:
        producer = self.driver.tables.producer[order.item]
        need = self.clock.need
        is_there = order.source in self.holders.get(producer, ()) or (order.item, order.source) in self.arrived
        is_gone = not self.alive[order.source]  # the driver may not know yet
        need(is_there or is_gone, f"object {order.item} is to be sent from device {order.source}, which lacks it")
        fate = self.world.message_fate("transfer")

        def arrive() -> None:
            self.num_moving -= 1
            if self.alive[order.target] and self.world.site is self:
                self.arrived.add((order.item, order.target))
                self._post(0.0, TransferFinished(order.item, order.target, self._now()))
                if fate == "doubled":
                    self._post(3.0, TransferFinished(order.item, order.target, self._now()))

        self.num_moving += 1
        self.clock.at(self.clock.now_s + (12.0 if fate in ("late", "lost") else 0.5), arrive)

    def lose(self, device: int) -> None:
        """Lose a device with what it runs and, unless data is kept elsewhere, what it holds."""
        if device >= len(self.alive) or not self.alive[device] or sum(self.alive) == 1:
            return
        self.clock.tell(f"device {device} is lost")
        self.alive[device] = False
        for order in self.queues[device]:
            self.busy.pop((order.task, order.attempt), None)
        self.queues[device] = []
        if not self.truth.spec.keeps_data:
            self.arrived = {(item, where) for item, where in self.arrived if where != device}
            for task, where in self.holders.items():
                where.discard(device)
                if not where:
                    self.dropped.add(task)
        self._post(0.2, DeviceLost(device, self._now(), "a fault"))

    def join(self, device: int) -> None:
        """Bring a lost device back."""
        if device < len(self.alive) and not self.alive[device]:
            self.clock.tell(f"device {device} is back")
            self.alive[device] = True
            self._post(0.3, DeviceJoined(device, self._now()))

    def _stop(self, task: int, attempt: int, device: int) -> None:
        self.open.pop((task, attempt), None)
        self.busy.pop((task, attempt), None)
        self.queues[device] = [one for one in self.queues[device] if (one.task, one.attempt) != (task, attempt)]

    def _post(self, delay_s: float, event: Event) -> None:
        heapq.heappush(self.inbox, (self._now() + delay_s, next(self.count), event))

    def _now(self) -> float:
        return self.clock.now_s - self.begin_s


def _is_about(event: Event, task: int, attempt: int) -> bool:
    return isinstance(event, (TaskFinished, TaskFailed)) and (event.task, event.attempt) == (task, attempt)
