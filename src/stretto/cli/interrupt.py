"""Ctrl-C: it ends a search or a training, not the program, and keeps what was found."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from stretto.cli.early_interrupt import is_leaving_on_ctrl_c, leave_at_once, leave_on_ctrl_c

if TYPE_CHECKING:
    from stretto.core.plan import Plan

#: How long the main thread has to answer; and how long where it has heard, and only has to leave an import first.
_ANSWER_S, _PENDING_S = 1.0, 10.0
#: Two signals within this time are one key press: a shell and a wrapper may both pass it on, and the watch and Python's
#: own handler hear of it one a moment before the other.
SAME_PRESS_S = 0.2
_NOTICE = (
    b"\nstretto: waiting for the step that is being compiled or computed; "
    b"press Ctrl-C again to leave at once, without its result\n"
)


class InterruptWatch:
    """Hears signals at once, through a pipe, where Python's handlers wait for compiled code to return.

    Attributes
    ----------
    has_result
        Says whether there is something to keep, which only the main thread can do.
    is_ours
        Says whether it is us who answer Ctrl-C at the moment; a library such as uvicorn has handlers of its own, and
        takes its time to shut down.
    is_pending
        Whether the main thread has heard of Ctrl-C, and cannot answer yet.
    """

    def __init__(self) -> None:
        self.has_result: Callable[[], bool] = lambda: False
        self.is_ours: Callable[[], bool] = lambda: True
        self.is_pending = False
        self._heard_s = float("-inf")
        self._previous = -1

    def __enter__(self) -> InterruptWatch:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._previous = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="stretto-interrupts", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._previous)
        os.close(self._write)  # the thread reads the end of the pipe

    def heard(self) -> None:
        """Say that the main thread has answered."""
        self.is_pending = False
        self._heard_s = time.monotonic()

    def _watch(self) -> None:
        is_first = True
        while signals := os.read(self._read, 64):
            if signal.SIGINT not in signals or not self.is_ours():
                continue
            if not self._is_answered(time.monotonic(), is_first=is_first):
                if not self.has_result() or not is_first:
                    leave_at_once(is_drawing=True)
                os.write(2, _NOTICE)
            is_first = False
        os.close(self._read)

    def _is_answered(self, pressed_s: float, *, is_first: bool) -> bool:
        while self._heard_s < pressed_s - SAME_PRESS_S:
            can_wait = self.is_pending and is_first and not self.has_result()
            if time.monotonic() >= pressed_s + (_PENDING_S if can_wait else _ANSWER_S):
                return False
            is_again, _, _ = select.select([self._read], [], [], 0.05)
            if is_again and time.monotonic() > pressed_s + SAME_PRESS_S:
                return False
            time.sleep(0.02)
        return True


#: Packages that do not survive an exception out of nowhere: imports stay half done, compilers call Python from C++
#: (and the process crashes) or turn the exception into an error of their own, and weak references swallow it.
_FRAGILE = frozenset({"importlib", "numba", "llvmlite", "jax", "jaxlib", "optax", "rich", "weakref"})
#: How long to wait before looking again whether Python has left them.
_RETRY_S = 0.02

_watch: InterruptWatch | None = None
_is_pending = False


@contextmanager
def answering_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt while a command runs; only where the process is ours to end."""
    global _watch
    if not is_leaving_on_ctrl_c():
        yield
        return
    _watch = InterruptWatch()
    _watch.is_ours = _is_ours
    try:
        with _watch:
            signal.signal(signal.SIGINT, _on_signal)
            yield
            _raise_pending()
    finally:
        _forget_pending()
        leave_on_ctrl_c()
        _watch = None


def _on_signal(number: int, frame: FrameType | None) -> None:
    raise_where_safe(frame)


def _is_ours() -> bool:
    """Say whether Ctrl-C is answered by this module, and not by a library that the command runs in."""
    handler = signal.getsignal(signal.SIGINT)
    return handler is _on_signal or isinstance(getattr(handler, "__self__", None), _OnInterrupt)


def raise_where_safe(frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt in the frame of a signal handler, or shortly after where it would do harm there."""
    global _is_pending
    if _is_fragile(frame):
        _is_pending = True
        if _watch is not None:
            _watch.is_pending = True
        signal.signal(signal.SIGALRM, _retry)
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
        return
    _raise_now()


def _raise_now() -> NoReturn:
    _forget_pending()
    if _watch is not None:
        _watch.heard()
    raise KeyboardInterrupt


def _raise_pending() -> None:
    """Raise what could not be raised yet; called where it is safe."""
    if _is_pending:
        _raise_now()


def _forget_pending() -> None:
    global _is_pending
    _is_pending = False
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def _retry(number: int, frame: FrameType | None) -> None:
    raise_where_safe(frame)


def _is_fragile(frame: FrameType | None) -> bool:
    """Say whether Python is inside an import, a compiler or a finaliser."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _FRAGILE or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class _OnInterrupt:
    """Hears Ctrl-C while it is active, in the main thread; what that means, each kind says itself.

    Attributes
    ----------
    has_result
        Whether something has been found that is worth waiting for.
    """

    def __init__(self, *, has_result: bool = False) -> None:
        self.has_result = has_result
        self._previous: Any = None
        self._last_s = float("-inf")

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _raise_pending()
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
            if _watch is not None:
                _watch.has_result = lambda: self.has_result
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            if _watch is not None:
                _watch.has_result = lambda: False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        last_s, self._last_s = self._last_s, time.monotonic()
        if self._last_s - last_s > SAME_PRESS_S:
            self._on_press(frame)

    def _on_press(self, frame: FrameType | None) -> None:
        raise_where_safe(frame)


class Interrupt(_OnInterrupt):
    """Remembers that Ctrl-C was pressed while it was active.

    The search gets KeyboardInterrupt as usual and returns its best plan. Since it then looks
    like any other result, somebody has to remember that it was cut short; and whatever
    would run next (another policy, another graph) has to be stopped: that is :meth:`check`.
    """

    def __init__(self) -> None:
        super().__init__(has_result=True)  # many a planner has its first plan before it tells of one
        self.pressed = False

    def note(self, plan: Plan) -> None:
        """Take a planner's own word for it; OR-tools, for one, catches the signal before we do."""
        self.pressed |= plan.info.get("interrupted") is True

    def check(self) -> None:
        """Raise KeyboardInterrupt when Ctrl-C has been pressed; called where a result can be kept."""
        if self.pressed:
            _raise_now()

    def _on_press(self, frame: FrameType | None) -> None:
        self.pressed = True
        super()._on_press(frame)


class Patience(_OnInterrupt):
    """Turns the first Ctrl-C into a wish that is granted after the current step; the second one means now.

    Before the first step has ended there is nothing to keep, and the first one means now.
    """

    def __init__(self, *, has_result: bool = False) -> None:
        super().__init__(has_result=has_result)
        self.is_over = False

    def _on_press(self, frame: FrameType | None) -> None:
        if self.is_over or not self.has_result:
            super()._on_press(frame)
            return
        self.is_over = True
        if _watch is not None:
            _watch.heard()
