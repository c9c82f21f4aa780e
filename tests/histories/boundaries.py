"""What stands between production code and the machine, in virtual form: clock, threads, disk, process table.

:func:`installed` puts these in the place of ``time``, ``os``, ``threading``, ``sqlite3`` and ``subprocess`` in the
modules that use them, and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import json
import os
import random
import secrets
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from queue import Empty
from typing import Any
from unittest import mock

from stretto.core.host import private_files
from stretto.engines import completion_log, event_writer
from stretto.engines.driver import dispatch
from stretto.engines.slurm.client import client as slurm_client
from stretto.engines.slurm.steer import claims, label_store, marks, steering_guard
from stretto.engines.slurm.steer import steer as steering
from stretto.runlog import log as run_log
from stretto.runlog import schema
from stretto.runlog.writer import Writer

from .clock import EPOCH_S, Killed, Scheduler, VirtualProcess

api_steer = importlib.import_module("stretto.api.steer")  # stretto.api.steer itself is the verb


class Proxy:
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class Disk:
    """One file system: it may be full for a while, and writes may be torn.

    Attributes
    ----------
    torn_at
        Numbers of writes of which only a part arrives, as on a disk that fills up.
    """

    def __init__(self, clock: Scheduler) -> None:
        self.clock = clock
        self.full_until_s = -1.0
        self.torn_at: set[int] = set()
        self.num_writes = 0
        self.locks: dict[str, object] = {}
        self.connections: list[Connection] = []

    @property
    def is_full(self) -> bool:
        return self.clock.now_s < self.full_until_s

    def write(self, handle: int, data: bytes) -> int:
        """Append some bytes; all, a part, or none arrive."""
        self.clock.op("a write")
        self.num_writes += 1
        if self.is_full or self.num_writes in self.torn_at:
            part = data[: (self.num_writes * 7919) % (len(data) + 1) if self.num_writes in self.torn_at else 0]
            os.write(handle, part)
            self.clock.num_failed_ops += 1
            self.clock.tell(f"write {self.num_writes}: {len(part)} of {len(data)} bytes fit on the disk")
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        self.clock.op("a sync")
        if self.is_full:
            self.clock.num_failed_ops += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    def replace(self, old: Any, new: Any) -> None:
        self.clock.op("a rename")
        os.replace(old, new)
        self.clock.op("the step after a rename")


class Connection:
    """A connection to the run log on a disk that may fail; one writer at a time, waited for in virtual time."""

    def __init__(self, disk: Disk, real: sqlite3.Connection, name: str) -> None:
        self.disk, self.clock, self.real, self.name = disk, disk.clock, real, name
        disk.connections.append(self)
        if self.clock.process is not None:
            self.clock.process.on_death.append(self.drop)

    def execute(self, text: str, values: Any = ()) -> sqlite3.Cursor:
        verb = text.split(None, 1)[0].upper()
        self.clock.op(f"SQLite: {verb}")
        if verb == "BEGIN":
            is_mine = self.clock.wait(lambda: self.disk.locks.get(self.name) is None, 30.0)
            if not is_mine:
                raise sqlite3.OperationalError("database is locked")
            self.disk.locks[self.name] = self
        is_change = verb in ("INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT")
        try:
            if is_change and self.disk.is_full:
                self.clock.num_failed_ops += 1
                raise sqlite3.OperationalError("database or disk is full")
            found = self.real.execute(text, values)
        finally:
            if not self.real.in_transaction:
                self._unlock()
        if verb == "COMMIT":
            self.clock.op("the step after a COMMIT")
        return found

    @property
    def in_transaction(self) -> bool:
        return self.real.in_transaction

    def close(self) -> None:
        self.clock.op("SQLite: close")
        self.drop()

    def drop(self) -> None:
        """Close without committing, as the end of a process does."""
        if self in self.disk.connections:
            self.disk.connections.remove(self)
            self.real.close()
            self._unlock()

    def _unlock(self) -> None:
        if self.disk.locks.get(self.name) is self:
            self.disk.locks[self.name] = None


class Lock:
    """A reentrant lock of virtual threads."""

    def __init__(self, clock: Scheduler) -> None:
        self._clock, self._owner, self._depth = clock, None, 0

    def __enter__(self) -> None:
        import greenlet

        here = greenlet.getcurrent()
        if self._owner not in (None, here):
            self._clock.wait(lambda: self._owner is None, None)
        self._owner, self._depth = here, self._depth + 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None


class Queue:
    """``queue.SimpleQueue`` for virtual threads."""

    def __init__(self, clock: Scheduler) -> None:
        self._clock, self._items = clock, deque[Any]()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        if not self._clock.wait(lambda: bool(self._items), timeout):
            raise Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise Empty
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


class Flag:
    """``threading.Event`` for virtual threads."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


class Thread:
    """``threading.Thread`` as a virtual thread."""

    def __init__(self, clock: Scheduler, *, target: Callable[[], None], name: str = "", daemon: bool = True) -> None:
        self._clock, self._target = clock, target
        self._thread: Any = None

    def start(self) -> None:
        self._thread = self._clock.thread(self._target)

    def join(self) -> None:
        self._clock.wait(lambda: self._thread.is_over, None)


class Promise:
    """A future of a virtual thread."""

    def __init__(self, clock: Scheduler) -> None:
        self._clock = clock
        self._outcome: tuple[Any, BaseException | None] | None = None

    def done(self) -> bool:
        return self._outcome is not None

    def result(self, timeout_s: float | None = None) -> Any:
        if not self._clock.wait(self.done, timeout_s):
            raise Late
        assert self._outcome is not None
        value, error = self._outcome
        if error is not None:
            raise error
        return value

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            self._outcome = (function(*arguments), None)
        except Killed:
            raise
        except BaseException as error:
            self._outcome = (None, error)


class Background:
    """``engines.background.BackgroundThread`` as a virtual thread."""

    def __init__(self, clock: Scheduler) -> None:
        self._clock, self._calls = clock, deque[Callable[[], None]]()
        clock.thread(self._serve)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Promise:
        found = Promise(self._clock)
        self._calls.append(lambda: found.run(function, arguments))
        return found

    def _serve(self) -> None:
        while True:
            self._clock.wait(lambda: bool(self._calls), None)
            self._calls.popleft()()


def in_background(clock: Scheduler, function: Callable[..., Any], *arguments: Any) -> Promise:
    """``engines.background.in_background`` with a virtual thread."""
    found = Promise(clock)
    clock.thread(lambda: found.run(function, arguments))
    return found


class Pipe:
    """The pipe from a steerer to its guard: it ends with the last process that holds it open."""

    def __init__(self, parent: VirtualProcess) -> None:
        self.parent, self.is_closed, self.num_programs = parent, False, 0

    @property
    def is_over(self) -> bool:
        return (self.is_closed or not self.parent.is_running) and self.num_programs == 0


class GuardProcess:
    """The process of a steering guard: production code of ``steering_guard.watch`` in a process of its own."""

    def __init__(self, world: Any, words: list[str], **settings: Any) -> None:
        clock: Scheduler = world.clock
        self._world, self._clock = world, clock
        assert clock.process is not None
        self._pipe = Pipe(clock.process)
        clock.op("the start of a guard")
        known = json.loads(words[-1])
        mark = marks.Mark.parse(known["mark"])
        assert mark is not None
        found = marks.ClusterMarks(label_store.slurm_client(known["conf"], None), Path(known["folder"]))
        self._num_restarts = world.manager.num_restarts
        self._process = clock.start(
            "guard", lambda: steering_guard.watch(mark, found), crash_at=world.next_crash("guard")
        )
        self._process.on_death.append(lambda: self._check(mark))
        self.stdin = self
        world.pipes[self._process.pid] = self._pipe

    def fileno(self) -> int:
        return self._process.pid

    def _check(self, mark: marks.Mark) -> None:
        """A guard that has come to its end by itself has left no mark of its steerer, and no label."""
        manager = self._world.manager
        if not self._process.is_ended or self._process.error is not None or manager.num_restarts != self._num_restarts:
            return
        steering = [seen.token for name in manager.reservations if (seen := marks.Mark.parse(name)) is not None]
        self._clock.need(mark.token not in steering, "the guard has ended, and the mark of its steerer is still there")

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        import subprocess

        self._pipe.is_closed = True
        if not self._clock.wait(lambda: not self._process.is_running, timeout):
            raise subprocess.TimeoutExpired("guard", timeout or 0.0)
        return self._world.said.get(self._process.pid, ""), None


class _Stdin:
    """The pipe between a steerer and its guard."""

    def __init__(self, world: Any) -> None:
        self._world, self.buffer = world, self

    def read(self) -> bytes:
        clock = self._world.clock
        pipe = self._world.pipes[clock.process.pid]
        clock.wait(lambda: pipe.is_over, None)
        return b""


def _virtual_time(clock: Scheduler) -> Proxy:
    def wall() -> float:
        return EPOCH_S + clock.now_s + clock.jump_s

    def strftime(style: str, moment: Any = None) -> str:
        return time.strftime(style, time.gmtime(wall()) if moment is None else moment)

    def now() -> float:
        return clock.now_s

    def since_boot(which: int) -> float:
        return clock.now_s

    return Proxy(
        time,
        time=wall,
        monotonic=now,
        perf_counter=now,
        sleep=clock.sleep,
        strftime=strftime,
        gmtime=lambda moment=None: time.gmtime(wall() if moment is None else moment),
        clock_gettime=since_boot,
    )


def _virtual_os(clock: Scheduler, disk: Disk) -> Proxy:
    def close(handle: int) -> None:
        owner = clock.process
        if owner is not None:
            if owner.is_dead:
                raise Killed
            owner.on_death[:] = [one for one in owner.on_death if getattr(one, "handle", None) != handle]
        os.close(handle)

    def getpid() -> int:
        return clock.process.pid if clock.process is not None else 1

    return Proxy(os, write=disk.write, fsync=disk.sync, replace=disk.replace, close=close, getpid=getpid)


class _CloseAtDeath:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __call__(self) -> None:
        os.close(self.handle)


def _opener(clock: Scheduler, *, is_tracked: bool) -> Callable[[Path, int], int]:
    """Return ``open_private``; files that stay open are closed by the kernel when their process dies."""

    def open_private(path: Path, flags: int) -> int:
        clock.op(f"opening {path.name}")
        handle = private_files.open_private(path, flags)
        if is_tracked and clock.process is not None:
            clock.process.on_death.append(_CloseAtDeath(handle))
        return handle

    return open_private


def _process_table(clock: Scheduler) -> dict[str, Any]:
    def this_process() -> Writer:
        return Writer("host", clock.process.pid if clock.process is not None else 1, "1 boot space")

    def verdict(writer: Writer) -> str:
        found: VirtualProcess | None = clock.processes.get(writer.pid)
        return "alive" if found is not None and found.is_running else "dead"

    return {"this_process": this_process, "verdict": verdict, "is_alive": lambda writer: verdict(writer) != "dead"}


@contextlib.contextmanager
def installed(world: Any) -> Iterator[None]:
    """Have production code run on the clock, the disk and the processes of a world."""
    clock, disk = world.clock, world.disk
    ticks, system = _virtual_time(clock), _virtual_os(clock, disk)
    threads = Proxy(
        __import__("threading"),
        Thread=functools.partial(Thread, clock),
        Event=Flag,
        RLock=functools.partial(Lock, clock),
    )

    def connect(name: str, **settings: Any) -> Any:
        settings["timeout"] = 0.0  # who waits for others waits in virtual time
        return Connection(disk, sqlite3.connect(name, **settings), name.partition("?")[0])

    chance = random.Random(f"claims {world.history.seed}")
    programs = Proxy(__import__("subprocess"), Popen=functools.partial(world.command, world))
    guards = Proxy(__import__("subprocess"), Popen=functools.partial(GuardProcess, world))
    changes: list[tuple[Any, dict[str, Any]]] = [
        (private_files, {"time": ticks}),
        (completion_log, {"os": system, "open_private": _opener(clock, is_tracked=True)}),
        (
            event_writer,
            {"time": ticks, "os": system, "threading": threads, "SimpleQueue": functools.partial(Queue, clock)},
        ),
        (dispatch, {"BackgroundThread": functools.partial(Background, clock)}),
        (run_log, {"time": ticks, "threading": threads, **_process_table(clock)}),
        (schema, {"sqlite3": Proxy(sqlite3, connect=connect)}),
        (slurm_client, {"subprocess": programs, "program": lambda name: name, "os": Proxy(os, environ={})}),
        (label_store, {"os": system, "open_private": _opener(clock, is_tracked=False)}),
        (claims, {"time": ticks, "random": chance}),
        (
            marks,
            {"os": system, "time": ticks, "secrets": Proxy(secrets, token_hex=lambda n: chance.randbytes(n).hex())},
        ),
        (steering, {"time": ticks, "in_background": functools.partial(in_background, clock)}),
        (steering_guard, {"time": ticks, "subprocess": guards, "sys": Proxy(sys, stdin=_Stdin(world))}),
        (
            api_steer,
            {
                "time": ticks,
                "signal": Proxy(__import__("signal"), signal=lambda number, handler: None),
                "Steerer": functools.partial(steering.Steerer, clock=ticks.time),
            },
        ),
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, STRETTO_HOME=str(world.home), SLURM_CONF="/virtual/slurm.conf"))
        stack.enter_context(mock.patch.dict(run_log.RunLog.open.__func__.__kwdefaults__, clock=ticks.time))
        stack.enter_context(mock.patch.object(steering_guard, "print", world.guard_says, create=True))
        for module, names in changes:
            stack.enter_context(mock.patch.multiple(module, **names))
        yield
