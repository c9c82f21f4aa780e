"""Devices as threads: for kernels that release the GIL, for commands, and for timed tasks.

There is no thread in the middle. A worker that has finished a task takes the lock, tells the driver, and hands out
what the driver wants started; its own next task needs no switch of threads, and any other needs one, which the
doorbell keeps short.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import Any

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver import Driver
from stretto.engines.ends import EndTicket
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.events import (
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
from stretto.engines.local.cores import one_blas_thread, pin
from stretto.engines.local.doorbell import Doorbell
from stretto.engines.local.journeys import is_all_timed, transfer_s
from stretto.engines.local.leash import Leash
from stretto.engines.local.mover import Mover
from stretto.engines.local.perform import TaskError, patience_s, perform
from stretto.engines.local.store import Store
from stretto.engines.memory import Ledger
from stretto.engines.online import Dispatcher
from stretto.engines.outputs import digest, num_bytes
from stretto.engines.recorder import Recorder
from stretto.engines.work import Command, Timed, Work

#: How long the end of a run waits for threads that were told to stop.
_LEAVE_S = 2.0


class ThreadRun:
    """One run on threads."""

    def __init__(
        self,
        work: Work,
        decider: Plan | Dispatcher,
        problem: Problem,
        options: RunOptions,
        *,
        cores: list[int | None],
        num_queued: int,
        makes_copies: bool,
    ) -> None:
        self.work, self.problem, self.options = work, problem, options
        moves_data = is_all_timed(work)
        self.store = Store(work, makes_copies and not moves_data)
        self.memory = Ledger.of(work, problem, self.store.makes_copies, self.store.evict)
        self.driver = Driver(
            problem,
            decider,
            discipline=options.discipline,
            num_queued=num_queued,
            moves_data=moves_data,
            max_attempts=options.max_attempts,
            keep_going=options.keep_going,
            time_scale=work.time_scale,
            done=options.done,
            memory=self.memory,
        )
        self.recorder = Recorder(work, self.driver, options)
        for task, value in options.done.items():
            self.store.preload(task, self.driver.device[task], value)
            if self.memory is not None:
                self.memory.preload(task, self.driver.device[task], num_bytes(value))
        self.cores = cores
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.stop = threading.Event()
        self.mover = Mover(self._on_arrival) if moves_data else None
        self.inbox: list[SimpleQueue[Start | None]] = [SimpleQueue() for _ in cores]
        self.doorbell = Doorbell(len(cores), listens=None not in cores)
        self.generation = [0] * len(cores)  # of the thread that is the device; older ones have hung
        self.running: list[tuple[Start, float] | None] = [None] * len(cores)
        self.has_timeouts = any(patience_s(action) is not None for action in work.actions)
        self.crash: BaseException | None = None
        self.begin_s = 0.0

    def run(self) -> RunResult:
        """Run to the end, to a failure, or to Ctrl-C."""
        is_interrupted = False
        if any(isinstance(action, Command) for action in self.work.actions):
            Leash.ready()
        with one_blas_thread():
            threads = [self._thread(device) for device in range(len(self.cores))]
            if self.mover is not None:
                self.mover.start()
            self.begin_s = time.perf_counter()
            try:
                self._tell_and_ring([Tick(0.0)])
                self._wait()
            except KeyboardInterrupt:
                is_interrupted = True
            self._leave(threads)
        if self.crash is not None:
            raise self.crash
        return self.recorder.result("local", is_timed=self.work.is_timed, is_interrupted=is_interrupted)

    def _thread(self, device: int) -> threading.Thread:
        name = f"stretto-{self.problem.cluster.devices[device].name}"
        generation, inbox = self.generation[device], self.inbox[device]
        thread = threading.Thread(target=self._work, args=(device, generation, inbox), name=name, daemon=True)
        thread.start()
        return thread

    # On the main thread -------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for the end; meanwhile release tasks that are due and give up those that take too long."""
        while not self.over.is_set():
            release_s = self.driver.next_release_s
            if release_s == float("inf") and not self.has_timeouts:
                self.over.wait(0.5)  # an endless wait would not hear Ctrl-C on every system
                continue
            self.over.wait(min(0.02, max(0.0, release_s - self._now())))
            if self._now() >= release_s:
                self._tell_and_ring([Tick(self._now())])
            if self.has_timeouts:
                self._end_late()

    def _end_late(self) -> None:
        for device, current in enumerate(self.running):
            if current is None:
                continue
            order, since_s = current
            limit_s = patience_s(self.work.actions[order.task])
            if limit_s is not None and self._now() - since_s > limit_s:
                self._replace_thread(device)
                reason = f"took longer than {limit_s:g} s"
                self._tell_and_ring([TaskFailed(order.task, device, order.attempt, self._now(), "timeout", reason)])

    def _replace_thread(self, device: int) -> None:
        """Leave a hung thread to itself, and go on with a new one and what was queued."""
        with self.lock:
            old, self.inbox[device] = self.inbox[device], SimpleQueue()
            self.generation[device] += 1
            self.running[device] = None
            while not old.empty():
                self.inbox[device].put(old.get())
            old.put(None)
        self._thread(device)

    def _leave(self, threads: list[threading.Thread]) -> None:
        with self.lock:
            self.driver.stop()
        self.stop.set()
        if self.mover is not None:
            self.mover.close()
        for inbox in self.inbox:
            inbox.put(None)
        self.doorbell.ring(range(len(self.inbox)))
        deadline = time.monotonic() + _LEAVE_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    # On the threads of devices -------------------------------------------------------------------

    def _work(self, device: int, generation: int, inbox: SimpleQueue[Start | None]) -> None:
        pin(self.cores[device])
        others: list[int] = []  # devices that our last report gave something to do
        while (order := self.doorbell.next_order(device, inbox, others)) is not None:
            start_s = self._now()
            self.running[device] = (order, start_s)
            try:
                event, value = self._attempt(order, device, start_s)
                if generation != self.generation[device]:
                    return
                self.running[device] = None
                others = self._tell([event], value)
            except BaseException as error:  # ours, not the task's: the run cannot be trusted any more
                self.crash = error
                self.over.set()
                return

    def _attempt(self, order: Start, device: int, start_s: float) -> tuple[TaskFinished | TaskFailed, Any]:
        task = order.task
        if self.options.on_event is not None:
            self._announce(TaskStarted(task, device, order.attempt, start_s))
        try:
            inputs = self.store.fetch(task, device)
            self.recorder.fetch_s[task] = self._now() - start_s
            action = self.work.actions[task]
            seconds = self.driver.tables.seconds(task, device) * action.scale if isinstance(action, Timed) else 0.0
            end = self._ticket(order, start_s) if isinstance(action, Command) else None
            value = perform(action, task, inputs, seconds, self.stop, end)
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

    def _ticket(self, order: Start, start_s: float) -> EndTicket | None:
        ask = self.options.on_command
        return ask(TaskStarted(order.task, order.device, order.attempt, start_s), self.begin_s) if ask else None

    def _weigh(self, memory: Ledger, order: Start, size: int) -> None:
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
        self._tell_and_ring([TransferFinished(order.item, order.target, self._now())])

    def _tell_and_ring(self, events: list[Event]) -> None:
        self.doorbell.ring(self._tell(events))

    def _tell(self, events: list[Event], value: Any = None) -> list[int]:
        """Tell the driver what happened and pass its orders on; return the devices to ring for."""
        with self.lock:
            for event in events:
                if isinstance(event, TaskFinished) and self.driver.is_current(event.task, event.device, event.attempt):
                    self._keep(event, value)
                self.recorder.note(event)
            instructions = self.driver.handle(events)
            self._obey(instructions)
            if not instructions and self.driver.is_over:
                self.over.set()
        return [order.device for order in instructions if type(order) is Start]

    def _keep(self, event: TaskFinished, value: Any) -> None:
        if self.options.on_output is not None:
            self.options.on_output(event.task, value)
        if self.recorder.wants_output(event.task):
            self.recorder.outputs[event.task] = value
        self.store.keep(event.task, event.device, value)

    def _obey(self, instructions: list[Instruction]) -> None:
        for order in instructions:
            if isinstance(order, Start):
                self.inbox[order.device].put(order)
            elif isinstance(order, Transfer) and self.mover is not None:
                self.mover.send(order, transfer_s(self.problem, order) * self.work.time_scale)

    def _now(self) -> float:
        return time.perf_counter() - self.begin_s
