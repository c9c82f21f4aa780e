"""Ctrl-C while the main thread is inside compiled code and cannot answer: another thread does it."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType

from stretto.cli.terminal.early_interrupt import leave_at_once

#: How long the main thread has to answer; and how long where it has heard, and only has to leave an import first.
_ANSWER_S, _PENDING_S = 1.0, 10.0
#: A signal is noted here and in Python's own handler, one a moment before the other.
_SAME_PRESS_S = 0.2
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
        while self._heard_s < pressed_s - _SAME_PRESS_S:
            can_wait = self.is_pending and is_first and not self.has_result()
            if time.monotonic() >= pressed_s + (_PENDING_S if can_wait else _ANSWER_S):
                return False
            is_again, _, _ = select.select([self._read], [], [], 0.05)
            if is_again and time.monotonic() > pressed_s + _SAME_PRESS_S:
                return False
            time.sleep(0.02)
        return True
