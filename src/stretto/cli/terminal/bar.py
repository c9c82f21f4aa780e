"""A progress bar on stderr for work of known length, for people at a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.terminal.bar_line import bar_line, format_clock
from stretto.cli.terminal.console import stderr

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


class ProgressBar:
    """So many steps; the bar vanishes when they are done."""

    def __init__(self, doing: str, total: int) -> None:
        self.doing = doing
        self.total = total
        self.done = 0
        self.note = ""
        self._begin = time.monotonic()
        self._live: Live | None = None
        self._width = 80

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            from rich.live import Live

            console = stderr()
            self._width = console.width
            self._live = Live(
                console=console,
                get_renderable=self._line,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, note: str) -> None:
        """Say that one more is done."""
        self.done += 1
        self.note = note

    def _line(self) -> Text:
        return self.line(self._width)

    def line(self, width: int) -> Text:
        """Return the present line for a terminal of so many columns."""
        clock = f"{self.done}/{self.total} {format_clock(time.monotonic() - self._begin)}"
        return bar_line(self.doing, self.done / max(1, self.total), clock, self.note, width=width)
