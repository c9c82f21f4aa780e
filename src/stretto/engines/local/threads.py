"""Devices as threads, nodes as several: for kernels that release the GIL, for commands, and for timed tasks.

There is no coordinating thread. A worker that has finished a task takes the lock, reports to the driver, and passes on
what the driver starts. Its own next task needs no thread switch; any other needs one, which ``wakeup.py`` keeps short.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from queue import SimpleQueue

import numpy as np

from stretto.engines.completion_log import CompletionTicket
from stretto.engines.driver.events import (
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
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.engine import RunResult
from stretto.engines.local.cores import one_blas_thread, pin
from stretto.engines.local.lanes import Lanes
from stretto.engines.local.perform import TaskError, patience_s, perform
from stretto.engines.local.process_guard import ProcessGuard
from stretto.engines.local.setup import LocalSetup
from stretto.engines.local.transfers import TransferThread, transfer_s
from stretto.engines.local.wakeup import Wakeup
from stretto.engines.outputs import digest, frozen, num_bytes
from stretto.engines.work import Command, OpenReads, Work
from stretto.racks.telemetry.sense import DeviceWorker

#: How long the end of a run waits for threads that were told to stop.
_LEAVE_S = 2.0


class ThreadRun:
    """One run on threads."""

    def __init__(self, setup: LocalSetup, *, makes_copies: bool) -> None:
        work, options = setup.work, setup.options
        self.work, self.problem, self.options = work, setup.problem, options
        done = options.done
        self.store = Store(work, makes_copies and not setup.moves_data, done)
        self.memory = DeviceMemory.of(work, setup.problem, self.store.makes_copies, self.store.evict, done)
        self.recorder = setup.recorder(self.memory)
        self.driver = self.recorder.driver
        for task, value in self.store.open_reads.still_read(done):
            self.store.preload(task, self.driver.device[task], value)
            if self.memory is not None:
                self.memory.preload(task, self.driver.device[task], num_bytes(value))
        self.lanes = Lanes(setup.problem, setup.cores)
        num_lanes = len(self.lanes.device)
        self.memory_limit = setup.memory_limits
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.stop = threading.Event()
        self.transfer_thread = TransferThread(self._on_arrival) if setup.moves_data else None
        self.inbox: list[SimpleQueue[Start | None]] = [SimpleQueue() for _ in range(num_lanes)]
        self.wakeup = Wakeup(num_lanes, spins=None not in setup.cores and num_lanes == len(setup.cores))
        self.generation = [0] * num_lanes  # of the thread that is the lane; older ones have hung
        self.running: list[tuple[Start, float] | None] = [None] * num_lanes
        self.has_timeouts = any(patience_s(action) is not None for action in work.actions)
        self.crash: BaseException | None = None
        self.begin_s = 0.0

    def run(self) -> RunResult:
        """Run to the end, to a failure, or to Ctrl-C."""
        is_interrupted = False
        if any(isinstance(action, Command) for action in self.work.actions):
            ProcessGuard.ready()
        with one_blas_thread():
            threads = [self._thread(lane) for lane in range(len(self.lanes.device))]
            if self.transfer_thread is not None:
                self.transfer_thread.start()
            self.begin_s = time.perf_counter()
            try:
                self._report_and_wake([Tick(0.0)])
                self._wait()
            except KeyboardInterrupt:
                is_interrupted = True
            self._leave(threads)
        if self.crash is not None:
            raise self.crash
        return self.recorder.result("local", is_timed=self.work.is_timed, is_interrupted=is_interrupted)

    def _thread(self, lane: int) -> threading.Thread:
        name = f"stretto-{self.problem.cluster.devices[self.lanes.device[lane]].name}"
        generation, inbox = self.generation[lane], self.inbox[lane]
        thread = threading.Thread(target=self._work, args=(lane, generation, inbox), name=name, daemon=True)
        thread.start()
        return thread

    # On the main thread -------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for the end; meanwhile release tasks that are due and fail those that take too long."""
        while not self.over.is_set():
            release_s = self.driver.next_release_s
            if release_s == float("inf") and not self.has_timeouts:
                self.over.wait(0.5)  # an endless wait would not hear Ctrl-C on every system
                continue
            self.over.wait(min(0.02, max(0.0, release_s - self._now())))
            if self._now() >= release_s:
                self._report_and_wake([Tick(self._now())])
            if self.has_timeouts:
                self._end_late()

    def _end_late(self) -> None:
        for lane, current in enumerate(self.running):
            if current is None:
                continue
            order, since_s = current
            limit_s = patience_s(self.work.actions[order.task])
            if limit_s is not None and self._now() - since_s > limit_s:
                self._replace_thread(lane)
                reason = f"took longer than {limit_s:g} s"
                late = TaskFailed(order.task, order.device, order.attempt, self._now(), "timeout", reason)
                self._report_and_wake([late])

    def _replace_thread(self, lane: int) -> None:
        """Abandon a hung thread, and start a new one with what was queued."""
        with self.lock:
            old, self.inbox[lane] = self.inbox[lane], SimpleQueue()
            self.generation[lane] += 1
            self.running[lane] = None
            while not old.empty():
                self.inbox[lane].put(old.get())
            old.put(None)
        self._thread(lane)

    def _leave(self, threads: list[threading.Thread]) -> None:
        with self.lock:
            self.driver.stop()
        self.stop.set()
        if self.transfer_thread is not None:
            self.transfer_thread.close()
        for inbox in self.inbox:
            inbox.put(None)
        self.wakeup.wake(range(len(self.inbox)))
        deadline = time.monotonic() + _LEAVE_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    # On the threads of devices -------------------------------------------------------------------

    def _work(self, lane: int, generation: int, inbox: SimpleQueue[Start | None]) -> None:
        device = self.lanes.device[lane]
        pin(self.lanes.first_cores(lane))
        self._introduce(lane)
        others: list[int] = []  # lanes that our last report gave something to do
        while (order := self.wakeup.next_order(lane, inbox, others)) is not None:
            start_s = self._now()
            self.running[lane] = (order, start_s)
            try:
                pin(self.lanes.cores(order.task))
                event, value = self._attempt(order, device, start_s)
                if generation != self.generation[lane]:
                    return
                self.running[lane] = None
                others = self._report([event], value)
            except BaseException as error:  # our own error, not the task's: end the run
                self.crash = error
                self.over.set()
                return

    def _introduce(self, lane: int) -> None:
        if self.options.on_worker is not None:
            cores = tuple(self.lanes.first_cores(lane) or ())
            worker = DeviceWorker(os.getpid(), threading.get_native_id(), cores, guard=ProcessGuard.pid())
            self.options.on_worker(self.lanes.device[lane], worker)

    def _attempt(self, order: Start, device: int, start_s: float) -> tuple[TaskFinished | TaskFailed, object]:
        task = order.task
        if self.options.on_event is not None:
            self._announce(TaskStarted(task, device, order.attempt, start_s))
        try:
            inputs = self.store.fetch(task, device)
            self.recorder.fetch_s[task] = self._now() - start_s
            action = self.work.actions[task]
            seconds = self.recorder.timed_s(task, device)
            end = self._ticket(order, start_s) if isinstance(action, Command) else None
            value = perform(action, task, inputs, seconds, self.stop, end, self.memory_limit.get(task))
            if self.memory is not None:
                self._weigh(self.memory, order, num_bytes(value))
        except TaskError as error:
            return TaskFailed(task, device, order.attempt, self._now(), error.blame, error.reason), None
        end_s = self._now()
        mark = digest(value) if self.options.digests else None
        event = TaskFinished(task, device, order.attempt, start_s, end_s, mark)
        if self.options.on_done is not None:
            self.options.on_done(event, value)
        return event, value

    def _ticket(self, order: Start, start_s: float) -> CompletionTicket | None:
        ask = self.options.on_command
        return ask(TaskStarted(order.task, order.device, order.attempt, start_s), self.begin_s) if ask else None

    def _weigh(self, memory: DeviceMemory, order: Start, size: int) -> None:
        """Raise TaskError when there is no room for an output."""
        with self.lock:
            if self.driver.is_current(order.task, order.device, order.attempt):
                blame = memory.weigh(order.task, order.device, size)
                if blame is not None:
                    raise TaskError(blame, f"its output takes {size:,} bytes: {memory.fill(order.device)}")

    def _announce(self, event: Event) -> None:
        with self.lock:
            self.recorder.note(event)

    def _on_arrival(self, order: Transfer) -> None:
        self._report_and_wake([TransferFinished(order.item, order.target, self._now())])

    def _report_and_wake(self, events: list[Event]) -> None:
        self.wakeup.wake(self._report(events))

    def _report(self, events: list[Event], value: object = None) -> list[int]:
        """Report to the driver and pass its instructions on; return the lanes to wake."""
        with self.lock:
            for event in events:
                if isinstance(event, TaskFinished) and self.driver.is_current(event.task, event.device, event.attempt):
                    self._keep(event, value)
                if isinstance(event, (TaskFinished, TaskFailed)):
                    self.lanes.end(event.task, event.device)
                self.recorder.note(event)
            instructions = self.driver.handle(events)
            started = self._execute(instructions)
            if not instructions and self.driver.is_over:
                self.over.set()
        return started

    def _keep(self, event: TaskFinished, value: object) -> None:
        if self.options.on_output is not None:
            self.options.on_output(event.task, value)
        if self.recorder.wants_output(event.task):
            self.recorder.outputs[event.task] = value
        self.store.keep(event.task, event.device, value)

    def _execute(self, instructions: list[Instruction]) -> list[int]:
        """Pass instructions on, and return the lanes that have something to do."""
        started: list[int] = []
        for order in instructions:
            if isinstance(order, Start):
                started.append(self.lanes.begin(order.task, order.device))
                self.inbox[started[-1]].put(order)
            elif isinstance(order, Transfer) and self.transfer_thread is not None:
                self.transfer_thread.send(order, transfer_s(self.problem, order) * self.work.time_scale)
        return started

    def _now(self) -> float:
        return time.perf_counter() - self.begin_s


class Store:
    """Values by task. A device may only look at what it made, or at its own copy.

    Parameters
    ----------
    makes_copies
        False lets devices share arrays, which is faster and right when they share a memory anyway.
    """

    def __init__(self, work: Work, makes_copies: bool, done: Collection[int] = ()) -> None:
        self.work, self.makes_copies = work, makes_copies
        self.values: dict[int, object] = {}
        self.home: dict[int, int] = {}
        self.copies: dict[int, dict[int, object]] = {}  # by task and device
        self.open_reads = OpenReads(work, done)

    def preload(self, task: int, device: int, value: object) -> None:
        """Put the output of an earlier run where the plan has its task."""
        self.values[task], self.home[task] = value, device

    def fetch(self, task: int, device: int) -> list[object]:
        """Return the inputs of a task on its device, copied there if need be."""
        return [self._value(parent, device) for parent in self.work.inputs(task)]

    def _value(self, task: int, device: int) -> object:
        value = self.values[task]
        if value is None or self.home[task] == device or not self.makes_copies:
            return value
        copies = self.copies.setdefault(task, {})
        if device not in copies:
            copies[device] = frozen(copied(value))
        return copies[device]

    def evict(self, task: int, device: int) -> None:
        """Let go of a copy; whoever reads it next on that device makes another."""
        self.copies.get(task, {}).pop(device, None)

    def keep(self, task: int, device: int, value: object) -> None:
        """Keep an output, and let go of inputs that nobody else will read; called once per finished task."""
        self.values[task], self.home[task] = frozen(value), device
        for unread in self.open_reads.finish(task):
            del self.values[unread]
            self.copies.pop(unread, None)


def copied(value: object) -> object:
    """Return a value whose arrays are copies; what cannot change is shared."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (tuple, list)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value
