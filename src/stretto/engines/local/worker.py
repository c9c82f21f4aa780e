"""The process of one device: reads orders from a pipe, runs tasks, keeps data in shared memory."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import Any

from stretto.engines.local import wire
from stretto.engines.local.arena import Arena, Attached, refs_in
from stretto.engines.local.cores import pin
from stretto.engines.local.leash import die_with_parent
from stretto.engines.local.perform import TaskError, perform
from stretto.engines.outputs import digest, num_bytes, outline, rebuild
from stretto.engines.work import Work

#: Longer descriptors go to shared memory, so that messages stay short.
_DESCRIPTOR_BYTES = 2048


@dataclass(frozen=True)
class Setup:
    """What a worker process is told when it is made."""

    work: Work
    core: int | None
    prefix: str  # of the names of its shared memory
    memory_bytes: float
    digests: bool
    announces: bool  # whether to report starts


def main(setup: Setup, orders: Any, reports: Any) -> None:
    """Serve until told to quit, or until the coordinator is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's business
    coordinator = multiprocessing.parent_process()
    if coordinator is not None and coordinator.pid is not None:
        die_with_parent(coordinator.pid)
    gc.freeze()  # collecting what was inherited would copy all its pages, milliseconds at a time
    pin(setup.core)
    worker = Worker(setup, reports.fileno())
    signal.signal(signal.SIGTERM, lambda *_: worker.stop.set())  # commands and sleeps end at once, calls at their end
    inbox = wire.Inbox(orders.fileno())
    while inbox.receive():
        for kind, task, attempt, seconds, _, _, payload in inbox.frames():
            if kind == wire.START:
                worker.start(task, attempt, seconds, payload)
            elif kind == wire.FREE:
                worker.free(task)
            else:
                os._exit(0)  # without waiting for views of shared memory to die
    os._exit(0)


class Worker:
    """Runs one task after the other."""

    def __init__(self, setup: Setup, reports: int) -> None:
        self.setup, self.reports = setup, reports
        self.arena, self.attached = Arena(setup.prefix), Attached()
        self.values: dict[int, Any] = {}  # inputs that may be read again
        self.refs: dict[int, list[Any]] = {}  # blocks of our own, by task
        self.copies: dict[int, list[bytearray]] = {}  # of buffers of other devices, by task
        self.copied_bytes = 0
        self.stop = threading.Event()

    def start(self, task: int, attempt: int, seconds: float, payload: bytes) -> None:
        """Run a task and report how it went."""
        start_s = time.perf_counter()
        if self.setup.announces:
            wire.send(self.reports, wire.pack(wire.STARTED, task, attempt, start_s))
        fetched_s = start_s
        try:
            inputs = self._inputs(task, payload)
            fetched_s = time.perf_counter()
            value = perform(self.setup.work.actions[task], task, inputs, seconds, self.stop)
            text = self._keep(task, value)
            end_s = time.perf_counter()
        except TaskError as error:
            text = json.dumps([error.blame, error.reason[:2000]]).encode()
            end_s = time.perf_counter()
            wire.send(self.reports, wire.pack(wire.FAILED, task, attempt, start_s, end_s, 0.0, text))
            return
        mark = ((digest(value) or "") if self.setup.digests else "").ljust(32).encode()
        report = wire.pack(wire.FINISHED, task, attempt, start_s, end_s, fetched_s - start_s, mark + text)
        wire.send(self.reports, report)

    def _inputs(self, task: int, payload: bytes) -> list[Any]:
        declared = self.setup.work.graph.memory_bytes
        if declared is not None:
            self._need(float(declared[task]), "the task's own memory")
        if not payload:
            return []
        return [self._value(parent, text) for parent, text in wire.unpack_inputs(payload)]

    def _value(self, task: int, text: bytes) -> Any:
        if not text:
            return None
        if wire.is_small(text):
            return rebuild(json.loads(text), self.attached.copy)
        if task not in self.values:
            found = json.loads(text)
            if "j" in found:
                found = json.loads(bytes(self._buffer(found["j"], [])))
            size = sum(ref[2] for ref in refs_in(found) if not self.arena.owns(ref))
            self._need(size, "an input")
            copies = self.copies.setdefault(task, [])
            self.values[task] = rebuild(found, lambda ref: self._buffer(ref, copies))
            self.copied_bytes += sum(map(len, copies))
        return self.values[task]

    def _buffer(self, ref: Any, copies: list[bytearray]) -> Any:
        """Return a buffer of our own as it lies, or a copy of another device's, which is noted."""
        if self.arena.owns(ref):
            return self.arena.view(ref)
        copy = self.attached.copy(ref)
        if isinstance(copy, bytearray):
            copies.append(copy)
        return copy

    def _keep(self, task: int, value: Any) -> bytes:
        """Put an output into shared memory and return its descriptor.

        Later tasks of this device read it there: were the original kept, every output would take fresh pages twice.
        """
        if value is None:
            return b""
        self._need(num_bytes(value), "the output")
        try:
            found = outline(value, self.arena.put)
        except TypeError as error:
            raise TaskError("task", f"{error}; processes exchange numbers, text, bytes and numpy arrays") from error
        except OSError as error:
            raise TaskError("memory", f"no shared memory for the output: {error}") from error
        self.refs[task] = refs_in(found)
        text = json.dumps(found, separators=(",", ":")).encode()
        if len(text) > _DESCRIPTOR_BYTES:
            ref = self.arena.put(text)
            self.refs[task].append(ref)
            text = json.dumps({"j": ref}).encode()
        return text

    def _need(self, size: float, what: str) -> None:
        used = self.arena.used_bytes + self.copied_bytes
        if used + size > self.setup.memory_bytes:
            raise TaskError(
                "memory",
                f"{what} takes {size:,.0f} bytes, the device holds {used:,} of {self.setup.memory_bytes:,.0f}",
            )

    def free(self, task: int) -> None:
        """Let go of an output that nobody will read again."""
        self.values.pop(task, None)
        copies = self.copies.pop(task, [])
        self.copied_bytes -= sum(map(len, copies))
        self.attached.give_back(copies)
        self.arena.free(self.refs.pop(task, ()))
