"""Draw schedules as Gantt charts, in the format that the file's name asks for."""

from __future__ import annotations

import os
from pathlib import Path

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.reports.gantt import figure as gantt_figure
from stretto.reports.gantt import html as gantt_html
from stretto.reports.gantt.chart import make_chart

ENDINGS = ("png", "svg", "pdf", "html")


def draw_gantt(
    problem: Problem,
    schedule: Schedule,
    path: str | Path,
    *,
    title: str | None = None,
    lower_bound_s: float | None = None,
) -> None:
    """Write a picture of a schedule.

    Parameters
    ----------
    path
        Ends in ``.png``, ``.svg``, ``.pdf`` or ``.html``; the last is one offline page with zoom
        and details on demand. The file appears complete or not at all.
    title
        What stands above; the names of graph and cluster when None.
    lower_bound_s
        Drawn as a line, with the gap, when given.
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ENDINGS:
        raise InvalidInput(f"{target.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(path), field="ending")
    chart = make_chart(problem, schedule, title=title, lower_bound_s=lower_bound_s)
    data = gantt_html.render(chart) if kind == "html" else gantt_figure.render(chart, kind)
    _write(target, data)


def _write(target: Path, data: bytes) -> None:
    """Write beside the target and rename, so that nobody ever sees half a file."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InvalidInput(error.strerror or str(error), source=str(target)) from None
