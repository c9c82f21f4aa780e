"""The process of one device: reads orders from a pipe, runs tasks, keeps data in shared memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from stretto.engines.completion_log import CompletionTicket
from stretto.engines.driver.events import TaskFinished, TaskStarted
from stretto.engines.local import wire
from stretto.engines.local.arena import Arena, Attached, refs_in
from stretto.engines.local.cores import pin
from stretto.engines.local.perform import TaskError, perform
from stretto.engines.local.process_guard import ProcessGuard, die_with_parent
from stretto.engines.outputs import Reference, digest, outline, rebuild
from stretto.engines.work import Call, Command, Work

#: Longer descriptors go to shared memory, so that messages stay short.
_DESCRIPTOR_BYTES = 2048


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker process is told when it is made."""

    work: Work
    core: int | None
    prefix: str  # of the names of its shared memory
    digests: bool
    announces: bool  # whether to report starts
    arena_bytes: int  # of shared memory to have at hand from the beginning
    device: int
    made_s: float  # when the run began, nearly
    on_done: Callable[[TaskFinished, object], None] | None  # told before the coordinator is
    on_command: Callable[[TaskStarted, float], CompletionTicket] | None  # asked before a command starts


def main(setup: WorkerSetup, orders: Connection, reports: Connection) -> None:
    """Serve until told to quit, or until the coordinator is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's business
    coordinator = multiprocessing.parent_process()
    if coordinator is not None and coordinator.pid is not None:
        die_with_parent(coordinator.pid)
    gc.freeze()  # collecting what was inherited would copy all its pages, milliseconds at a time
    pin(setup.core)
    worker = WorkerProcess(setup, reports.fileno())
    worker.warm_up()
    signal.signal(signal.SIGTERM, lambda *_: worker.stop.set())  # commands and sleeps end at once, calls at their end
    inbox = wire.Inbox(orders.fileno())
    while inbox.receive():
        for kind, task, attempt, seconds, _, _, payload in inbox.frames():
            if kind == wire.START:
                worker.start(task, attempt, seconds, payload)
            elif kind == wire.FREE:
                worker.free(task)
            else:
                ProcessGuard.dismiss()
                os._exit(0)  # without waiting for views of shared memory to die
    os._exit(0)


class WorkerProcess:
    """Runs one task after the other."""

    def __init__(self, setup: WorkerSetup, reports: int) -> None:
        self.setup, self.reports = setup, reports
        self.arena, self.attached = Arena(setup.prefix), Attached()
        self.values: dict[int, object] = {}  # inputs that may be read again
        self.refs: dict[int, list[Reference]] = {}  # blocks of our own, by task
        self.copies: dict[int, list[bytearray]] = {}  # of buffers of other devices, by task
        self.stop = threading.Event()

    def warm_up(self) -> None:
        """Make everything ready that tasks will need, and say so."""
        if any(isinstance(action, Call) for action in self.setup.work.actions):
            keep_freed_memory()
            touch_products()
            self.arena.prepare(self.setup.arena_bytes)
        if any(isinstance(action, Command) for action in self.setup.work.actions):
            ProcessGuard.ready()
        wire.send(self.reports, wire.pack(wire.READY))

    def start(self, task: int, attempt: int, seconds: float, payload: bytes) -> None:
        """Run a task and report how it went."""
        start_s = time.perf_counter()
        if self.setup.announces:
            wire.send(self.reports, wire.pack(wire.STARTED, task, attempt, start_s))
        fetched_s = start_s
        try:
            inputs = [self._value(parent, text) for parent, text in wire.unpack_inputs(payload)]
            fetched_s = time.perf_counter()
            action = self.setup.work.actions[task]
            end = self._ticket(task, attempt, start_s) if isinstance(action, Command) else None
            value = perform(action, task, inputs, seconds, self.stop, end)
            text = self._keep(task, value)
            end_s = time.perf_counter()
        except TaskError as error:
            text = json.dumps([error.blame, error.reason[:2000]]).encode()
            end_s = time.perf_counter()
            wire.send(self.reports, wire.pack(wire.FAILED, task, attempt, start_s, end_s, 0.0, text))
            return
        mark = ((digest(value) or "") if self.setup.digests else "").ljust(32).encode()
        if self.setup.on_done is not None:
            times = start_s - self.setup.made_s, end_s - self.setup.made_s
            finished = TaskFinished(task, self.setup.device, attempt, *times, mark.decode().strip() or None)
            self.setup.on_done(finished, value)
        report = wire.pack(wire.FINISHED, task, attempt, start_s, end_s, fetched_s - start_s, mark + text)
        wire.send(self.reports, report)

    def _ticket(self, task: int, attempt: int, start_s: float) -> CompletionTicket | None:
        ask, zero_s = self.setup.on_command, self.setup.made_s
        return ask(TaskStarted(task, self.setup.device, attempt, start_s - zero_s), zero_s) if ask else None

    def _value(self, task: int, text: bytes) -> object:
        if not text:
            return None
        if wire.is_small(text):
            return rebuild(json.loads(text), self.attached.copy)
        if task not in self.values:
            found = json.loads(text)
            if "j" in found:
                found = json.loads(bytes(self._buffer(found["j"], [])))
            copies = self.copies.setdefault(task, [])
            self.values[task] = rebuild(found, lambda ref: self._buffer(ref, copies))
        return self.values[task]

    def _buffer(self, ref: Reference, copies: list[bytearray]) -> bytes | bytearray | memoryview:
        """Return a buffer of our own as it lies, or a copy of another device's, which is noted."""
        if self.arena.owns(ref):
            return self.arena.view(ref)
        copy = self.attached.copy(ref)
        if isinstance(copy, bytearray):
            copies.append(copy)
        return copy

    def _keep(self, task: int, value: object) -> bytes:
        """Put an output into shared memory and return its descriptor.

        Later tasks of this device read it there: were the original kept, every output would take fresh pages twice.
        """
        if value is None:
            return b""
        try:
            found = outline(value, self.arena.put)
        except TypeError as error:
            raise TaskError(
                "task", f"{error}; worker processes exchange numbers, text, bytes and numpy arrays"
            ) from error
        except OSError as error:
            raise TaskError("memory", f"no shared memory for the output: {error}") from error
        self.refs[task] = refs_in(found)
        text = json.dumps(found, separators=(",", ":")).encode()
        if len(text) > _DESCRIPTOR_BYTES:
            ref = self.arena.put(text)
            self.refs[task].append(ref)
            text = json.dumps({"j": ref}).encode()
        return text

    def free(self, task: int) -> None:
        """Let go of an output that nobody will read again."""
        self.values.pop(task, None)
        self.attached.release(self.copies.pop(task, []))
        self.arena.free(self.refs.pop(task, ()))


#: At least so large a product uses all buffers that the library of products sets aside.
_PRODUCT = 256

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h of glibc
_KEPT_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let this process keep freed memory for its next arrays, instead of returning it to the system; glibc only."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def touch_products() -> None:
    """Have numpy's matrix products set up their buffers."""
    for kind in (np.float32, np.float64):
        square = np.ones((_PRODUCT, _PRODUCT), dtype=kind)
        square @ square
