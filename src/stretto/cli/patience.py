"""Ctrl-C as a wish: what is going on ends after its present step, and keeps what it has."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Patience:
    """Turns the first Ctrl-C into a wish that is granted after the current step; the second one means now."""

    def __init__(self) -> None:
        self.is_over = False
        self._previous: Any = None

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_over:
            raise KeyboardInterrupt
        self.is_over = True
