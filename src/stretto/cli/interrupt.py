"""Ctrl-C during a search or a training ends that, not the program: what was found is kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from stretto.domain.plan import Plan


class _OnInterrupt:
    """Hears Ctrl-C while it is active, in the main thread; what that means, each kind says itself."""

    def __init__(self) -> None:
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt


class Interrupt(_OnInterrupt):
    """Remembers that Ctrl-C was pressed while it was active.

    The search gets KeyboardInterrupt as usual and returns its best plan. Since it then looks
    like any other result, somebody has to remember that it was cut short; and whatever
    would run next (another policy, another graph) has to be stopped: that is :meth:`check`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pressed = False

    def note(self, plan: Plan) -> None:
        """Take a planner's own word for it; OR-tools, for one, catches the signal before we do."""
        self.pressed |= plan.info.get("interrupted") is True

    def check(self) -> None:
        """Raise KeyboardInterrupt when Ctrl-C has been pressed; called where stopping is safe."""
        if self.pressed:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        super()._on_signal(number, frame)


class Patience(_OnInterrupt):
    """Turns the first Ctrl-C into a wish that is granted after the current step; the second one means now."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_over:
            super()._on_signal(number, frame)
        self.is_over = True
