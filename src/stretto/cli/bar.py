"""A progress bar on stderr for work of known length, for people at a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.console import stderr

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """So many steps; the bar vanishes when they are done."""

    def __init__(self, doing: str, total: int) -> None:
        self.doing = doing
        self.total = total
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}", style="dim", markup=False),
            )
            self._progress = Progress(
                *columns, console=stderr(), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._progress.add_task(self.doing, total=self.total, note="")
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self, note: str) -> None:
        """Say that one more is done."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=1, note=note)
