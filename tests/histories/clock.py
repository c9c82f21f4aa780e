"""A virtual clock and a scheduler of virtual processes, whose threads are greenlets."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import greenlet

from stretto.errors import StrettoError

#: The wall clock when a history begins, in Unix seconds.
EPOCH_S = 1_700_000_000.0
#: A history that takes more switches than this does not come to an end.
MOST_SWITCHES = 60_000
MOST_PROCESSES = 120


class Killed(BaseException):
    """Raised in the threads of a process that was killed: whatever they try from then on has no effect."""


class Violation(BaseException):
    """An invariant does not hold; no code of the system can catch this by accident and go on."""


@dataclass(eq=False)
class VirtualProcess:
    """A process: threads that die together, and what the kernel cleans up after them.

    Attributes
    ----------
    crash_at
        The number of the operation (write, message, command) at which it is killed; 0 = none.
    """

    name: str
    pid: int
    crash_at: int = 0
    is_dead: bool = False
    is_ended: bool = False
    num_ops: int = 0
    error: BaseException | None = None
    threads: list[VirtualThread] = field(default_factory=list)
    on_death: list[Callable[[], None]] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        return not (self.is_dead or self.is_ended)


class VirtualThread(greenlet.greenlet):
    """A thread of a virtual process."""

    process: VirtualProcess
    token: int = 0
    is_ready: Callable[[], bool] | None = None
    is_over: bool = False


class Scheduler:
    """Runs threads one at a time; who is next at equal times is drawn with the seed."""

    def __init__(self, seed: int) -> None:
        self.now_s = 0.0
        self.jump_s = 0.0
        self.processes: dict[int, VirtualProcess] = {}
        self.story: list[str] = []
        self.after_step: Callable[[], None] = lambda: None
        self.num_failed_ops = 0  # operations that a fault has made fail
        self.violation: Violation | None = None
        self._rng = random.Random(f"schedule {seed}")
        self._heap: list[tuple[float, float, int, int, Any]] = []
        self._sequence = itertools.count()
        self._waiting: list[VirtualThread] = []
        self._pids = itertools.count(1000)
        self._reap: list[VirtualProcess] = []
        self._hub = greenlet.getcurrent()

    # What the world calls ------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Add a line to the story of this history."""
        self.story.append(f"{self.now_s:9.2f} s  {text}")

    def need(self, is_kept: bool, rule: str) -> None:
        """End the history where an invariant does not hold."""
        if not is_kept:
            self.violation = self.violation or Violation(rule)
            raise self.violation

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Have something happen at a time, outside of all processes."""
        self._push(max(time_s, self.now_s), 0, action)

    def start(self, name: str, main: Callable[[], None], *, crash_at: int = 0) -> VirtualProcess:
        """Start a process."""
        process = VirtualProcess(name, next(self._pids), crash_at)
        self.need(len(self.processes) < MOST_PROCESSES, f"{name} is restarted without end")
        self.processes[process.pid] = process
        self.tell(f"{name} starts as process {process.pid}")

        def run_main() -> None:
            try:
                main()
            except (Killed, Violation):
                raise
            except BaseException as error:  # what a user would see as the last line
                process.error = error
            finally:
                if not process.is_dead:
                    self._end(process)

        self.thread(run_main, process)
        return process

    def thread(self, function: Callable[[], None], process: VirtualProcess | None = None) -> VirtualThread:
        """Start a thread, of the present process unless told otherwise."""
        owner = process if process is not None else self.process
        assert owner is not None

        def body() -> None:
            try:
                function()
            except Killed:
                pass
            finally:
                found.is_over = True

        found = VirtualThread(body, self._hub)
        found.process = owner
        owner.threads.append(found)
        self._push(self.now_s, found.token, found)
        return found

    def kill(self, process: VirtualProcess, reason: str) -> None:
        """End a process as SIGKILL does: no code of it has any effect from now on."""
        if process.is_running:
            self.tell(f"{process.name} ({process.pid}) is killed {reason}")
            process.is_dead = True
            for action in process.on_death:
                action()
            self._reap.append(process)

    def interrupt(self, process: VirtualProcess, error: BaseException) -> None:
        """Raise an error in the first thread of a process, wherever it waits; as a signal does."""
        thread = process.threads[0]
        if process.is_running and thread and not thread.is_over:
            self.tell(f"{process.name} ({process.pid}) is interrupted")
            if thread in self._waiting:
                self._waiting.remove(thread)
            thread.token += 1
            thread.is_ready = None
            thread.throw(error)

    def run(self, until_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run until a time, until nothing is left to do, or until told to end."""
        switches = 0
        while not is_over():
            self._wake()
            if not self._heap or self._heap[0][0] > until_s:
                break
            time_s, _, _, token, what = heapq.heappop(self._heap)
            self.now_s = max(self.now_s, time_s)
            if isinstance(what, VirtualThread):
                if what.is_over or token != what.token:
                    continue
                self._resume(what)
            else:
                what()
            while self._reap:
                self._end_threads(self._reap.pop())
            if self.violation is not None:
                raise self.violation
            self.after_step()
            switches += 1
            self.need(switches <= MOST_SWITCHES, "the history does not come to an end")

    def close(self) -> None:
        """End all processes."""
        for process in list(self.processes.values()):
            self.kill(process, "at the end of the history")
        while self._reap:
            self._end_threads(self._reap.pop())

    # What threads call ---------------------------------------------------------------------------------

    @property
    def process(self) -> VirtualProcess | None:
        """The process of the thread that asks; None outside of all."""
        found = greenlet.getcurrent()
        return found.process if isinstance(found, VirtualThread) else None

    def op(self, what: str) -> None:
        """Pass a boundary: here a process may be killed, and a dead one gets no further."""
        process = self.process
        if process is None:
            return
        if process.is_dead:
            raise Killed
        process.num_ops += 1
        if process.num_ops == process.crash_at:
            self.kill(process, f"at its operation {process.num_ops}, {what}")
            raise Killed

    def sleep(self, seconds: float) -> None:
        """Let time pass for this thread."""
        self.wait(None, seconds)

    def wait(self, is_ready: Callable[[], bool] | None, timeout_s: float | None) -> bool:
        """Wait for a condition, or a time; return whether the condition holds."""
        thread = greenlet.getcurrent()
        if not isinstance(thread, VirtualThread):
            raise Violation("something waits outside of all processes")
        if thread.process.is_dead:
            raise Killed
        if is_ready is not None and is_ready():
            return True
        thread.token += 1
        thread.is_ready = is_ready
        if timeout_s is not None:
            self._push(self.now_s + max(0.0, timeout_s), thread.token, thread)
        if is_ready is not None:
            self._waiting.append(thread)
        self._hub.switch()
        if thread.process.is_dead:
            raise Killed
        return is_ready is not None and is_ready()

    # The hub ---------------------------------------------------------------------------------------------

    def _push(self, time_s: float, token: int, what: Any) -> None:
        heapq.heappush(self._heap, (time_s, self._rng.random(), next(self._sequence), token, what))

    def _wake(self) -> None:
        for thread in [one for one in self._waiting if one.is_ready is not None and one.is_ready()]:
            self._waiting.remove(thread)
            thread.is_ready = None
            thread.token += 1
            self._push(self.now_s, thread.token, thread)

    def _resume(self, thread: VirtualThread) -> None:
        if thread in self._waiting:
            self._waiting.remove(thread)
        thread.is_ready = None
        thread.switch()

    def _end(self, process: VirtualProcess) -> None:
        """Clean up after a process that has come to its end; its other threads die with it."""
        if process.is_running:
            process.is_ended = process.is_dead = True
            ended = "" if process.error is None else f": {type(process.error).__name__}: {process.error}"
            self.tell(f"{process.name} ({process.pid}) ends{ended}")
            is_told = process.error is None or isinstance(process.error, (StrettoError, OSError, KeyboardInterrupt))
            self.violation = self.violation or (
                None if is_told else Violation(f"{process.name} ends with a traceback{ended}")
            )
            for action in process.on_death:
                action()
            self._reap.append(process)

    def _end_threads(self, process: VirtualProcess) -> None:
        for thread in process.threads:
            if thread in self._waiting:
                self._waiting.remove(thread)
            if not thread.is_over and thread is not greenlet.getcurrent():
                with contextlib.suppress(Killed):  # from a thread that had not begun
                    thread.throw(Killed)
                thread.is_over = True
