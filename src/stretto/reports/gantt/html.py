"""A Gantt chart as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.reports.colours import text_on
from stretto.reports.gantt.chart import GanttChart
from stretto.reports.gantt.page import PAGE

#: Relative precision of the times in the page; a screen cannot show more.
_DIGITS = 9


def render(chart: GanttChart) -> bytes:
    """Return the page."""
    parts = {
        "@TITLE@": html.escape(_clean(chart.title)),
        "@FACTS@": html.escape(" · ".join(chart.facts)),
        "@DATA@": script_json(chart_json(chart)),
    }
    # In one pass: a title that spells a placeholder stays a title.
    return re.sub("|".join(parts), lambda match: parts[match.group()], PAGE).encode()


def script_json(value: Any) -> str:
    """Write JSON that may stand inside a script element, whatever its strings contain."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _clean(text: str) -> str:
    """Replace lone surrogates, which no encoding can write."""
    return text.encode(errors="replace").decode()


def chart_json(chart: GanttChart) -> dict[str, Any]:
    """Return what the page, or any other, draws."""
    order = np.lexsort((chart.finish_s, chart.start_s, chart.row))  # the page searches rows by time
    named = any(name != f"t{task}" for task, name in enumerate(chart.names))
    return {
        "rows": [[row.name, round(row.utilisation, 4), int(row.starts_group)] for row in chart.rows],
        "legend": [[label, colour, text_on(colour)] for label, colour in chart.legend],
        "makespan": chart.makespan_s,
        "bound": chart.lower_bound_s,
        "task": order.tolist(),
        "row": chart.row[order].tolist(),
        "start": _rounded(chart.start_s[order], chart.makespan_s),
        "length": _rounded((chart.finish_s - chart.start_s)[order], chart.makespan_s),
        "colour": chart.colour[order].tolist(),
        "names": [chart.names[task] for task in order] if named else None,
        "moves": _moves(chart),
    }


def _moves(chart: GanttChart) -> dict[str, Any] | None:
    moved = chart.transfers
    if moved is None or not len(moved.start_s):
        return None
    row = chart.row_of[moved.target]
    order = np.lexsort((moved.finish_s, moved.start_s, row))
    return {
        "row": row[order].tolist(),
        "from": chart.row_of[moved.source][order].tolist(),
        "start": _rounded(moved.start_s[order], chart.makespan_s),
        "length": _rounded((moved.finish_s - moved.start_s)[order], chart.makespan_s),
        "names": [chart.transfer_names[index] for index in order],
    }


def _rounded(values: Floats, scale: float) -> list[float]:
    """Drop digits that cannot be seen, so that the page stays small."""
    decimals = _DIGITS - int(np.ceil(np.log10(scale))) if scale > 0 else _DIGITS
    rounded: list[float] = np.round(values, decimals).tolist()
    return rounded
