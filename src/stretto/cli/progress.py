"""Progress of long work on stderr, for people at a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from stretto.cli.console import stderr
from stretto.cli.interrupt import Patience
from stretto.core.host.safe_text import shown_on_one_line
from stretto.core.units import format_count, format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress as JobsProgress
    from rich.progress import TaskID
    from rich.text import Text

    from stretto.core.planner import Progress

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> T:
    """Run something in another thread and wait for its result; a KeyboardInterrupt leaves the thread behind.

    Compiled code cannot be stopped from outside. The thread is a daemon: it ends with the program.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


#: Columns of the bar on narrow terminals, and on those from this width on.
_NARROW, _BROAD, _WIDE = 10, 24, 110
#: A longer description is cut, so that the bar and the clock stay on the line.
_MOST_DOING = 36


def bar_line(doing: str, share: float, clock: str, news: str, *, width: int) -> Text:
    """Return the line; only the news is cut where the terminal is too narrow.

    Parameters
    ----------
    share
        How much is done, from 0 to 1.
    """
    from rich.text import Text

    doing = shown_on_one_line(doing)
    if len(doing) > _MOST_DOING:
        doing = doing[: _MOST_DOING - 1] + "…"
    length = _BROAD if width >= _WIDE else _NARROW
    full = round(min(1.0, max(0.0, share)) * length)
    line = Text(f"{doing} ", no_wrap=True, overflow="ellipsis")
    line.append("━" * full, "green")
    line.append("╌" * (length - full), "dim")
    line.append(f" {clock}")
    line.append(f"  {shown_on_one_line(news)}" if news else "", "dim")
    line.truncate(width, overflow="ellipsis")
    return line


def format_clock(seconds: float) -> str:
    """Write a time that passes, as ``12 s``, ``3:07`` or ``2:15:00``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


#: Shown while a kernel is compiled, which takes most of the first minute of a new installation.
COMPILING = "compiling, on first use only"


def compiling_note() -> str:
    """Say that a kernel is being compiled; nothing while none is, or before kernels were imported."""
    kernels = sys.modules.get("stretto.core.kernels.compile")
    return COMPILING if kernels is not None and kernels.is_compiling() else ""


#: Work shorter than this passes without a word.
SILENT_S = 2.0


class TerminalDisplay:
    """Something on stderr that vanishes when the block ends; where stderr is no terminal, nothing is shown."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def _show(self) -> None:
        raise NotImplementedError


class LiveLine(TerminalDisplay):
    """One line that is redrawn in place."""

    refresh_per_s = 4.0

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self._begin = time.monotonic()
        self._width = 80

    def _show(self) -> None:
        from rich.live import Live

        console = stderr()
        self._width = console.width
        self._open.enter_context(
            Live(
                console=console,
                get_renderable=lambda: self.line(self._width),
                transient=True,
                refresh_per_second=self.refresh_per_s,
                redirect_stdout=False,
                redirect_stderr=False,
            )
        )

    def line(self, width: int) -> Text:
        """Return the present line for a terminal of so many columns."""
        raise NotImplementedError


class ProgressLine(LiveLine):
    """What is being done, elapsed, evaluations, best so far."""

    refresh_per_s = 5.0

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self.note = ""

    def update(self, progress: Progress) -> None:
        """Take news from a search; this is what ``Budget.on_progress`` calls."""
        self.note = (
            f"{format_count(progress.evaluations, 'evaluation')}, best {format_seconds(progress.best_makespan_s)}"
        )

    def line(self, width: int) -> Text:
        """Return the present line, which the terminal cuts itself; nothing in the first seconds."""
        from rich.text import Text

        elapsed = time.monotonic() - self._begin
        if elapsed < SILENT_S:
            return Text("")
        note = compiling_note() or self.note
        news = f" | {note}" if note else ""
        return Text(f"{self.doing} | {elapsed:.0f} s{news}", style="dim", no_wrap=True, overflow="ellipsis")


class ProgressBar(LiveLine):
    """So many steps; the bar vanishes when they are done."""

    def __init__(self, doing: str, total: int) -> None:
        super().__init__(doing)
        self.total = total
        self.done = 0
        self.note = ""

    def step(self, note: str) -> None:
        """Say that one more is done."""
        self.done += 1
        self.note = note

    def line(self, width: int) -> Text:
        """Return the present line for a terminal of so many columns."""
        clock = f"{self.done}/{self.total} {format_clock(time.monotonic() - self._begin)}"
        return bar_line(self.doing, self.done / max(1, self.total), clock, compiling_note() or self.note, width=width)


class JobsBar(TerminalDisplay):
    """Is told how many jobs have arrived; the first Ctrl-C ends the replay at the next epoch, the second at once."""

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self._patience = Patience()
        self._progress: JobsProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._open.enter_context(self._patience)
        return super().__enter__()

    def _show(self) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class CompilingColumn(ProgressColumn):
            def render(self, task: object) -> Text:
                return Text(compiling_note(), style="dim")

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left", style="dim"),
            CompilingColumn(),
        )
        self._progress = Progress(*columns, console=stderr(), transient=True, redirect_stdout=False)
        self._task = self._progress.add_task(self.doing, total=None)
        self._open.enter_context(self._progress)

    def watch(self, num_arrived: int, num_jobs: int) -> bool:
        """Take news of a replay; return whether to go on."""
        self._patience.has_result = True  # an epoch has ended
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=num_arrived, total=num_jobs)
        return not self._patience.is_over
