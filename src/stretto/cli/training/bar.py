"""A progress bar for trainings, on stderr and for people at a terminal only."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.terminal.bar_line import bar_line, format_clock
from stretto.cli.terminal.console import stderr
from stretto.core.units import format_count, format_seconds

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from stretto.learning.trainer import TrainingRow

#: Episodes per second are those of the last so many rows.
_RECENT = 20


class TrainingBar:
    """How much of the budget is used, best and mean makespan, episodes per second."""

    def __init__(self, doing: str, *, time_limit_s: float | None, episodes: int | None) -> None:
        self.doing = doing
        self.time_limit_s = time_limit_s
        self.episodes = episodes
        self.done = 0
        self.news = "compiling"
        self._begin = time.monotonic()
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)
        self._live: Live | None = None
        self._width = 80

    def __enter__(self) -> TrainingBar:
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

    def show(self, row: TrainingRow) -> None:
        """Take news of a step on a graph."""
        self.tell(row.episode, self.words(row), row.stage)

    @staticmethod
    def words(row: TrainingRow) -> list[str]:
        """Return what there is to say of a step on a graph."""
        return [
            f"best {format_seconds(row.best_s)}",
            f"mean {format_seconds(row.mean_s)}",
            format_count(row.episode, "episode"),
        ]

    def tell(self, done: int, words: Sequence[str], stage: str = "") -> None:
        """Take news of a step: how many rounds are done, and what there is to say."""
        self.done = done
        self._recent.append((time.monotonic() - self._begin, done))
        self.news = self.note(words, stage)

    def _line(self) -> Text:
        return self.line(self._width)

    def line(self, width: int) -> Text:
        """Return the present line for a terminal of so many columns; its clock goes on while nothing is told."""
        elapsed_s = time.monotonic() - self._begin
        clock, shares = format_clock(elapsed_s), [0.0]
        if self.time_limit_s is not None:
            clock += f" of {format_clock(self.time_limit_s)}"
            shares.append(elapsed_s / self.time_limit_s)
        if self.episodes is not None:
            shares.append(self.done / self.episodes)
        return bar_line(self.doing, max(shares), clock, self.news, width=width)

    def note(self, words: Sequence[str], stage: str = "") -> str:
        """Return the news in words, with the rate of late."""
        (first_s, first), (last_s, last) = self._recent[0], self._recent[-1]
        rate = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        speed = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:,.2g}/s"] if rate > 0 else []
        return ", ".join([*words, *speed, *([stage] if stage else [])])
