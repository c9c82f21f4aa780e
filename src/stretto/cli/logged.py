"""What commands keep in the run log: nothing, unless they are told to or usually do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stretto.cli.console import remark

if TYPE_CHECKING:
    from stretto.reports.record import Rows
    from stretto.runlog import Run


@contextmanager
def kept(
    wanted: bool, kind: str, name: str, settings: Mapping[str, Any], *, usual: bool = False, resume: str | None = None
) -> Iterator[Run | None]:
    """Begin a run where one is wanted; otherwise there is None to write to.

    Parameters
    ----------
    usual
        The command keeps runs unless told otherwise: a log that cannot be written is then no reason to stop.
    resume
        A run that is resumed, in place of a new one.
    """
    if not wanted:
        yield None
        return
    from stretto.reports.record import command_line, recording
    from stretto.runlog import RunLog

    log = RunLog.open_or_remark(remark) if usual and resume is None else RunLog.open()
    if log is None:
        yield None
        return
    with log, recording(log, kind, name, {**settings, "command": command_line()}, resume=resume) as run:
        yield run


@contextmanager
def news(run: Run | None, kind: str) -> Iterator[Rows | None]:
    """Write rows of news into a run, where there is one."""
    if run is None:
        yield None
        return
    from stretto.reports.record import Rows

    with Rows(run, kind) as rows:
        yield rows
