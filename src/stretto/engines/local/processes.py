"""Devices as processes: for any Python code, with outputs in shared memory and a coordinator that never computes."""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import select
import time
from multiprocessing import resource_tracker

from stretto.core.host.child_python import isolated_starts
from stretto.engines.driver.driver import Driver
from stretto.engines.driver.events import (
    DeviceLost,
    Event,
    Instruction,
    Start,
    TaskFailed,
    TaskFinished,
    TaskStarted,
    Tick,
    Transfer,
)
from stretto.engines.driver.memory import NOWHERE, DeviceMemory
from stretto.engines.driver.states import UNPLACED
from stretto.engines.engine import RunResult
from stretto.engines.local import wire
from stretto.engines.local.arena import Arena, Attached, refs_in, unlink_chunks
from stretto.engines.local.cores import one_blas_thread
from stretto.engines.local.handle import Handle
from stretto.engines.local.perform import patience_s
from stretto.engines.local.setup import LocalSetup
from stretto.engines.local.transfers import PendingTransfers, transfer_s
from stretto.engines.local.worker import WorkerSetup
from stretto.engines.outputs import Outline, outline, rebuild
from stretto.engines.work import Action, Command, OpenReads, Work
from stretto.racks.telemetry.sense import DeviceWorker

#: How often tasks that have a time limit are looked at.
_LOOK_MS = 20
#: How long after the time limit of a command its worker may be silent.
_SILENCE_S = 5.0


class ProcessRun:
    """One run on processes."""

    def __init__(self, setup: LocalSetup, *, max_restarts: int) -> None:
        work, options = setup.work, setup.options
        self.work, self.options, self.max_restarts = work, options, max_restarts
        self.memory = DeviceMemory.of(work, setup.problem, True, self._evict, options.done)
        self.recorder = setup.recorder(self.memory)
        self.driver = self.recorder.driver
        self.prefix = f"stretto-{os.getpid()}-{secrets.token_hex(4)}"
        self.arena, self.attached = Arena(f"{self.prefix}-c"), Attached()
        self.descriptors: dict[int, bytes] = {}
        self.holders: dict[int, set[int]] = {}  # devices that have an output or a copy, by task
        self.reported: dict[tuple[int, int], bytes] = {}  # descriptors that just came, by task and attempt
        self.open_reads = OpenReads(work, options.done)
        self.context = multiprocessing.get_context("fork")
        self.poll = select.poll()
        self.pending_transfers = PendingTransfers()
        self.handles: list[Handle] = []
        self.by_fd: dict[int, Handle] = {}
        self.setups = [
            WorkerSetup(
                work,
                own[0] if own is not None else None,
                f"{self.prefix}-{d}",
                options.digests,
                options.on_event is not None,
                size,
                device=d,
                made_s=time.perf_counter(),
                on_done=options.on_done,
                on_command=options.on_command,
            )
            for d, (own, size) in enumerate(zip(setup.cores, _expected_bytes(work, self.driver), strict=True))
        ]
        self.has_commands = any(isinstance(action, Command) for action in work.actions)
        self.has_timeouts = any(_limit_s(action) is not None for action in work.actions)
        self.begin_s = 0.0

    def run(self) -> RunResult:
        """Run to the end, to a failure, or to Ctrl-C; processes and shared memory never outlive it."""
        # Said before the fork: OpenBLAS, asked in the child, first starts threads that then spin on the device's core.
        with one_blas_thread():
            return self._run()

    def _run(self) -> RunResult:
        is_interrupted = False
        try:
            for task, value in self.open_reads.still_read(self.options.done):
                self.descriptors[task] = _descriptor(value, self.arena)
                self.holders[task] = set()
                if self.memory is not None:
                    self.memory.preload(task, NOWHERE, self._size(self.descriptors[task]))
            with isolated_starts():
                resource_tracker.ensure_running()  # one for all: a worker's own would miss what we clean up
            for setup in self.setups:
                self._add(Handle(self.context, setup, len(self.handles)))
            self._await_workers()
            self.begin_s = time.perf_counter()
            self._execute(self.driver.begin())
            while not self.driver.is_over:
                self._step()
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            self._close()
        return self.recorder.result("local", is_timed=self.work.is_timed, is_interrupted=is_interrupted)

    def _await_workers(self) -> None:
        """Wait until all workers are warm: a late device would look idle."""
        late = {handle.fd for handle in self.handles}
        while late:
            for fd, _ in self.poll.poll():
                # A dead worker is handled in the first step.
                if not self.by_fd[fd].inbox.receive() or list(self.by_fd[fd].inbox.frames()):
                    late.discard(fd)

    # Events ---------------------------------------------------------------------------------------

    def _step(self) -> None:
        events: list[Event] = []
        for fd in self._ready():
            self._read(self.by_fd[fd], events)
        now_s = self._now()
        events += self.pending_transfers.arrivals(now_s)
        if now_s >= self.driver.next_release_s:
            events.append(Tick(now_s))
        if self.has_timeouts:
            self._end_late(now_s, events)
        if events:
            if self.memory is not None:
                events = [self._weighed(event, self.memory) for event in events]
            for event in events:
                self._note(event)
            self._execute(self.driver.handle(events))

    def _ready(self) -> list[int]:
        """Wait for reports, or until something else is due; return the pipes that have some."""
        due_s = min(self.driver.next_release_s, self.pending_transfers.next_s)
        if due_s == float("inf"):
            return [fd for fd, _ in self.poll.poll(_LOOK_MS if self.has_timeouts else None)]
        wait_s = max(0.0, due_s - self._now())
        wait_s = min(wait_s, _LOOK_MS / 1000) if self.has_timeouts else wait_s
        return select.select(list(self.by_fd), [], [], wait_s)[0]  # finer than the milliseconds of poll

    def _read(self, handle: Handle, events: list[Event]) -> None:
        if not handle.inbox.receive():
            self._on_death(handle, events)
            return
        for kind, task, attempt, start_s, end_s, fetch_s, payload in handle.inbox.frames():
            start_s, end_s = start_s - self.begin_s, end_s - self.begin_s
            if kind == wire.READY:
                continue
            if kind == wire.STARTED:
                events.append(TaskStarted(task, handle.device, attempt, start_s))
                continue
            handle.ended(task, self._now())
            if kind == wire.FINISHED:
                self.recorder.fetch_s[task] = fetch_s
                self.reported[task, attempt] = payload[32:]
                mark = payload[:32].decode().strip() or None
                events.append(TaskFinished(task, handle.device, attempt, start_s, end_s, mark))
            else:
                blame, reason = json.loads(payload)
                events.append(TaskFailed(task, handle.device, attempt, end_s, blame, reason))

    def _on_death(self, handle: Handle, events: list[Event]) -> None:
        """Fail the task that ran, restart the process, and send again what was queued behind it."""
        code = handle.await_end()
        self._remove(handle)
        how = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with code {code}"
        if handle.sent:
            order = handle.sent.pop(0)
            blame = handle.verdict or ("worker", how)
            events.append(TaskFailed(order.task, handle.device, order.attempt, self._now(), *blame))
        if handle.num_restarts >= self.max_restarts:
            events.append(DeviceLost(handle.device, self._now(), f"{how}, after {handle.num_restarts} restarts"))
            return
        fresh = Handle(self.context, self.setups[handle.device], handle.device, handle.num_restarts + 1)
        self._add(fresh)
        for order in handle.sent:
            self._send(fresh, order)

    def _end_late(self, now_s: float, events: list[Event]) -> None:
        for handle in list(self.handles):
            if not handle.sent:
                continue
            action = self.work.actions[handle.sent[0].task]
            limit_s = _limit_s(action)
            if limit_s is not None and now_s - handle.since_s > limit_s:
                handle.verdict = ("timeout", _lateness(action))
                handle.kill()
                self._on_death(handle, events)

    def _weighed(self, event: Event, memory: DeviceMemory) -> Event:
        """Return the event, or a failure when it brings an output that there is no room for."""
        if not isinstance(event, TaskFinished) or not self._is_current(event):
            return event
        size = self._size(self.reported[event.task, event.attempt])
        blame = memory.weigh(event.task, event.device, size)
        if blame is None:
            return event
        del self.reported[event.task, event.attempt]
        self.handles[event.device].send(wire.pack(wire.FREE, event.task))
        reason = f"its output takes {size:,} bytes: {memory.fill(event.device)}"
        return TaskFailed(event.task, event.device, event.attempt, event.at_s, blame, reason)

    def _evict(self, task: int, device: int) -> None:
        self.holders[task].discard(device)
        self.handles[device].send(wire.pack(wire.FREE, task))

    def _is_current(self, event: TaskFinished) -> bool:
        return self.driver.is_current(event.task, event.device, event.attempt)

    def _note(self, event: Event) -> None:
        if isinstance(event, TaskFinished):
            text = self.reported.pop((event.task, event.attempt))
            if self._is_current(event):
                self._keep(event.task, event.device, text)
        self.recorder.note(event)

    def _keep(self, task: int, device: int, text: bytes) -> None:
        self.descriptors[task] = text
        if not wire.is_small(text):
            self.holders[task] = {device}
        self.recorder.deliver(task, lambda: self._value(text))
        for unread in self.open_reads.finish(task):
            self._free(unread)

    def _value(self, text: bytes) -> object:
        return rebuild(self._outline(text), self.attached.copy) if text else None

    def _size(self, text: bytes) -> int:
        return 0 if wire.is_small(text) else sum(ref[2] for ref in refs_in(self._outline(text)))

    def _outline(self, text: bytes) -> Outline:
        found: Outline = json.loads(text)
        return dict(json.loads(bytes(self.attached.copy(found["j"])))) if "j" in found else found

    def _free(self, task: int) -> None:
        """Tell the devices that hold an output to free it."""
        if not wire.is_small(self.descriptors.pop(task, b"")):
            frame = wire.pack(wire.FREE, task)
            for device in self.holders.pop(task, ()):
                self.handles[device].send(frame)

    # Orders ---------------------------------------------------------------------------------------

    def _execute(self, instructions: list[Instruction]) -> None:
        for order in instructions:
            if isinstance(order, Start):
                self._send(self.handles[order.device], order)
            elif isinstance(order, Transfer):
                seconds = transfer_s(self.driver.problem, order) * self.work.time_scale
                self.pending_transfers.send(order, self._now() + seconds)

    def _send(self, handle: Handle, order: Start) -> None:
        task = order.task
        seconds = self.recorder.timed_s(task, handle.device)
        parents = self.work.inputs(task)
        payload = b""
        if parents:
            payload = wire.pack_inputs([(parent, self.descriptors[parent]) for parent in parents])
            for parent in parents:
                if not wire.is_small(self.descriptors[parent]):
                    self.holders[parent].add(handle.device)
        if not handle.sent:
            handle.since_s = self._now()
        handle.sent.append(order)
        handle.send(wire.pack(wire.START, task, order.attempt, seconds, payload=payload))

    # Processes ------------------------------------------------------------------------------------

    def _add(self, handle: Handle) -> None:
        if handle.device < len(self.handles):
            self.handles[handle.device] = handle
        else:
            self.handles.append(handle)
        self.by_fd[handle.fd] = handle
        if self.options.on_worker is not None and handle.process.pid is not None:
            core, pid = self.setups[handle.device].core, handle.process.pid
            cores = () if core is None else (core,)
            self.options.on_worker(handle.device, DeviceWorker(pid, pid, cores, has_children=self.has_commands))
        self.poll.register(handle.fd, select.POLLIN | select.POLLHUP)

    def _remove(self, handle: Handle) -> None:
        self.poll.unregister(handle.fd)
        del self.by_fd[handle.fd]
        handle.close()

    def _close(self) -> None:
        for handle in self.handles:
            handle.quit()
        for handle in self.handles:
            handle.await_end()
            handle.close()
            for generation in range(handle.num_restarts + 1):
                unlink_chunks(Handle.prefix(self.setups[handle.device], generation))
        self.attached.close()
        unlink_chunks(self.arena.prefix)

    def _now(self) -> float:
        return time.perf_counter() - self.begin_s


def _limit_s(action: Action) -> float | None:
    """Return after how long a worker is killed; with a command it only has to be if the worker hangs."""
    if isinstance(action, Command) and action.timeout_s is not None:
        return action.timeout_s + _SILENCE_S
    return patience_s(action)


def _lateness(action: Action) -> str:
    reason = f"took longer than {action.timeout_s:g} s"
    if isinstance(action, Command):
        reason += f", and its worker process did not answer for another {_SILENCE_S:g} s (it may have been stopped)"
    return reason


def _expected_bytes(work: Work, driver: Driver) -> list[int]:
    """Return the bytes that the tasks of each device are to make, as far as the graph and a plan say."""
    found = [0] * driver.problem.num_devices
    if work.graph.transfer_unit == "bytes":
        for producer, size in zip(driver.tables.producer, driver.tables.size, strict=True):
            if driver.device[producer] != UNPLACED:
                found[driver.device[producer]] += int(size)
    return found


def _descriptor(value: object, arena: Arena) -> bytes:
    return b"" if value is None else json.dumps(outline(value, arena.put)).encode()
