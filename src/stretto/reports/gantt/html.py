"""A Gantt chart as one HTML page, and as the JSON that any page draws."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.reports.gantt.chart import GanttChart
from stretto.reports.gantt.delays import Delays
from stretto.reports.page.html import answer_html, document
from stretto.reports.page.view_types import Column, DelaysJson, GanttJson, TransferBars
from stretto.reports.plots.colors import text_on

#: Relative precision of the times in the page; a screen cannot show more.
_DIGITS = 9
#: Shorter waits, as shares of the makespan, cannot be seen.
_SEEN = 1e-5


def render(chart: GanttChart, answer: str = "") -> bytes:
    """Return the page, with the answer of its result below the title."""
    body = [
        '<main class="wide">',
        f"<h1>{html.escape(chart.title)}</h1>",
        answer_html(answer),
        f'<p class="faint">{html.escape(" · ".join(chart.facts))}</p>',
        '<div id="gantt"></div>',
        "</main>",
    ]
    return document(chart.title, body, chart_json(chart), ("base.js", "gantt.js", "gantt_page.js"))


def chart_json(chart: GanttChart) -> GanttJson:
    """Return what a page draws."""
    order = np.lexsort((chart.finish_s, chart.start_s, chart.row))  # the page searches rows by time
    named = any(name != f"t{task}" for task, name in enumerate(chart.names))
    drawn: GanttJson = {
        "rows": [(row.name, round(row.utilization, 4), int(row.starts_group)) for row in chart.rows],
        "legend": legend_json(chart.legend),
        "makespan": chart.makespan_s,
        "bound": chart.lower_bound_s,
        "task": order.tolist(),
        "row": chart.row[order].tolist(),
        "start": _rounded(chart.start_s[order], chart.makespan_s),
        "length": _rounded((chart.finish_s - chart.start_s)[order], chart.makespan_s),
        "color": chart.color[order].tolist(),
        "names": [chart.names[task] for task in order] if named else None,
        "moves": _moves(chart),
        "colored_by": chart.colored_by,
        "by_job": None
        if chart.by_job is None
        else {"legend": legend_json(chart.by_job.legend), "color": chart.by_job.color[order].tolist()},
    }
    if chart.delays is not None:
        told = delays_json(chart.delays, order, chart.makespan_s)
        drawn["waits"], drawn["critical"] = told["waits"], told["critical"]
    return drawn


def legend_json(legend: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return what colors stand for: label, color, and the color of text on it."""
    return [(label, color, text_on(color)) for label, color in legend]


def delays_json(delays: Delays, order: NDArray[np.intp], scale_s: float) -> DelaysJson:
    """Return waits for data and the critical path, by the places of the bars in a chart.

    Parameters
    ----------
    order
        The task of each bar.
    """
    place = np.full(len(delays.parent), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    late = np.flatnonzero(delays.idle_s[order] > _SEEN * scale_s)
    return {
        "waits": {
            "bar": late.tolist(),
            "length": _rounded(delays.idle_s[order][late], scale_s),
            "source": place[delays.parent[order][late]].tolist(),
        },
        "critical": [int(place[task]) for task in delays.critical],
    }


def _moves(chart: GanttChart) -> TransferBars | None:
    moved = chart.transfers
    if moved is None or not len(moved.start_s):
        return None
    row = chart.row_of[moved.target]
    order = np.lexsort((moved.finish_s, moved.start_s, row))
    return {
        "row": row[order].tolist(),
        "source": chart.row_of[moved.source][order].tolist(),
        "start": _rounded(moved.start_s[order], chart.makespan_s),
        "length": _rounded((moved.finish_s - moved.start_s)[order], chart.makespan_s),
        "names": [chart.transfer_names[index] for index in order],
    }


def _rounded(values: Floats, scale: float) -> Column:
    """Drop digits that cannot be seen, so that the page stays small."""
    decimals = _DIGITS - int(np.ceil(np.log10(scale))) if scale > 0 else _DIGITS
    rounded: Column = np.round(values, decimals).tolist()
    return rounded
