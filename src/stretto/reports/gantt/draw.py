"""Draw schedules as Gantt charts, in the format that the file's name asks for."""

from __future__ import annotations

from pathlib import Path

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.files.load import write_atomically
from stretto.reports.gantt import figure as gantt_figure
from stretto.reports.gantt import html as gantt_html
from stretto.reports.gantt.chart import make_chart
from stretto.reports.plots.canvas import kind_of

ENDINGS = ("png", "svg", "pdf", "html")


def draw_gantt(
    problem: Problem,
    schedule: Schedule,
    path: str | Path,
    *,
    title: str | None = None,
    lower_bound_s: float | None = None,
    answer: str = "",
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
    answer
        The sentence below the title of a page; pictures have none.
    """
    target = Path(path)
    kind = kind_of(target, ENDINGS)
    chart = make_chart(problem, schedule, title=title, lower_bound_s=lower_bound_s)
    content = gantt_html.render(chart, answer) if kind == "html" else gantt_figure.render(chart, kind)
    write_atomically(target, content)
