"""How far a replay is: the share of jobs that have arrived and the time left; Ctrl-C stops it and keeps its result."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from stretto.cli.terminal.console import stderr
from stretto.cli.terminal.interrupt import Patience

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class JobsBar:
    """Is told how many jobs have arrived; the first Ctrl-C ends the replay at the next epoch, the second at once."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self._patience = Patience()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> JobsBar:
        self._patience.__enter__()
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=16),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                TextColumn("left", style="dim"),
            )
            self._progress = Progress(*columns, console=stderr(), transient=True, redirect_stdout=False)
            self._task = self._progress.add_task(self.doing, total=None)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._patience.__exit__(kind, error, trace)

    def watch(self, num_arrived: int, num_jobs: int) -> bool:
        """Take news of a replay; return whether to go on."""
        self._patience.has_result = True  # an epoch has ended
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=num_arrived, total=num_jobs)
        return not self._patience.is_over
