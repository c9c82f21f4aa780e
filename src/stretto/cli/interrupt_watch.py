"""Ctrl-C while the main thread is inside compiled code and cannot answer: another thread does it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType

from stretto.cli.early_interrupt import leave_at_once

#: How long the main thread has to answer.
_ANSWER_S = 1.0
#: A signal is noted here and in Python's own handler, one a moment before the other.
_SAME_PRESS_S = 0.2
_NOTICE = (
    b"\nstretto: interrupted: the step that is being compiled or computed has to end first; "
    b"press Ctrl-C again to leave at once, without its result\n"
)


class InterruptWatch:
    """Hears signals at once, through a pipe, where Python's handlers wait for compiled code to return.

    Attributes
    ----------
    has_result
        Says whether there is something to keep, which only the main thread can do.
    """

    def __init__(self) -> None:
        self.has_result: Callable[[], bool] = lambda: False
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
        self._heard_s = time.monotonic()

    def _watch(self) -> None:
        is_first = True
        while signals := os.read(self._read, 64):
            if signal.SIGINT not in signals:
                continue
            if not self._is_answered(time.monotonic()):
                if not self.has_result() or not is_first:
                    leave_at_once(is_drawing=True)
                os.write(2, _NOTICE)
            is_first = False
        os.close(self._read)

    def _is_answered(self, pressed_s: float) -> bool:
        end_s = pressed_s + _ANSWER_S
        while self._heard_s < pressed_s - _SAME_PRESS_S:
            if time.monotonic() >= end_s:
                return False
            time.sleep(0.05)
        return True
