"""News of long work on stderr, for people at a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.terminal.console import stderr
from stretto.core.units import format_count, format_seconds

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from stretto.core.planner import Progress

#: Work shorter than this passes without a word.
SILENT_S = 2.0


class ProgressLine:
    """One line that is redrawn in place: what is being done, elapsed, evaluations, best so far."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.note = ""
        self._begin = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> ProgressLine:
        if sys.stderr.isatty():
            from rich.live import Live

            self._live = Live(
                console=stderr(),
                get_renderable=self._line,
                transient=True,
                refresh_per_second=5,
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

    def update(self, progress: Progress) -> None:
        """Take news from a search; this is what ``Budget.on_progress`` calls."""
        self.note = (
            f"{format_count(progress.evaluations, 'evaluation')}, best {format_seconds(progress.best_makespan_s)}"
        )

    def _line(self) -> Text:
        from rich.text import Text

        elapsed = time.monotonic() - self._begin
        if elapsed < SILENT_S:
            return Text("")
        news = f" | {self.note}" if self.note else ""
        return Text(f"{self.doing} | {elapsed:.0f} s{news}", style="dim", no_wrap=True, overflow="ellipsis")
