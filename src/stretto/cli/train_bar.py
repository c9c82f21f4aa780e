"""A progress bar for trainings, on stderr and for people at a terminal only."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.console import stderr
from stretto.domain.units import format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from stretto.training.trainer import TrainingRow

#: Columns from which on there is room for both times.
_WIDE = 110
#: Episodes per second are those of the last so many rows.
_RECENT = 20


class TrainingBar:
    """How much of the budget is used, best and mean makespan, episodes per second."""

    def __init__(self, doing: str, *, time_limit_s: float | None, episodes: int | None) -> None:
        self.doing = doing
        self.time_limit_s = time_limit_s
        self.episodes = episodes
        self._begin = time.monotonic()
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> TrainingBar:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.table import Column

            def clock() -> Column:
                return Column(min_width=7, no_wrap=True)  # a time that is cut short says nothing

            is_wide = stderr().width >= _WIDE
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24 if is_wide else 8),
                *([TimeElapsedColumn(table_column=clock())] if is_wide else []),
                TextColumn("eta", style="dim"),
                TimeRemainingColumn(table_column=clock()),
                TextColumn("{task.fields[note]}", style="dim", markup=False),
            )
            self._progress = Progress(
                *columns, console=stderr(), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._progress.add_task(self.doing, total=1.0, note="compiling")
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, row: TrainingRow) -> None:
        """Take news of a step on a graph."""
        self.tell(row.episode, self.words(row), row.stage)

    @staticmethod
    def words(row: TrainingRow) -> list[str]:
        """Return what there is to say of a step on a graph."""
        return [
            f"best {format_seconds(row.best_s)}",
            f"mean {format_seconds(row.mean_s)}",
            f"{row.episode:,} episodes",
        ]

    def tell(self, done: int, words: Sequence[str], stage: str = "") -> None:
        """Take news of a step: how many rounds are done, and what there is to say."""
        if self._progress is None or self._task is None:
            return
        elapsed_s = time.monotonic() - self._begin
        self._recent.append((elapsed_s, done))
        shares = [0.0]
        if self.time_limit_s is not None:
            shares.append(elapsed_s / self.time_limit_s)
        if self.episodes is not None:
            shares.append(done / self.episodes)
        self._progress.update(self._task, completed=min(1.0, max(shares)), note=self.note(words, stage))

    def note(self, words: Sequence[str], stage: str = "") -> str:
        """Return the news in words, with the rate of late."""
        (first_s, first), (last_s, last) = self._recent[0], self._recent[-1]
        rate = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        speed = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:,.2g}/s"] if rate > 0 else []
        return ", ".join([*words, *speed, *([stage] if stage else [])])
