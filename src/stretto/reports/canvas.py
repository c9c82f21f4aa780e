"""What all figures of a report share: a sheet with a title, axes that look alike, and files that stay the same."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto.reports.gantt.chart import time_unit
from stretto.reports.gantt.figure import shortened

INK, FAINT, GRID = "#202124", "#5f6368", "#e3e5e8"
WIDTH_IN, HEIGHT_IN = 9.0, 3.4
#: Room for names of devices and parts, as a share of the width.
NAMES = 0.16
View = Mapping[str, Any]
#: Names in a row of a legend, and the height of such a row.
_NAMES_PER_ROW, _ROW_IN = 6, 0.19


def axes_of(view: View, what: str, *, height_in: float = HEIGHT_IN, left: float = 0.08) -> tuple[Any, Any]:
    """Return a figure with the name of its run above it, and its axes with so much room left of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=150, facecolor="white")
    below = above = 0.54 / height_in
    axes = figure.add_axes((left, below, 0.98 - left, 1.0 - below - above))
    by = view["settings"].get("policy") or view["settings"].get("strategy") or view["settings"].get("algorithm")
    title = f"{view['name']}{f' by {by}' if by else ''}: {what}"
    figure.text(
        0.012, 1.0 - 0.24 / height_in, shortened(title, 100), fontsize=11, weight="bold", color=INK, parse_math=False
    )
    return figure, axes


def finished(figure: Any, axes: Any, x_label: str, *, has_legend: bool = True) -> Any:
    """Return the figure with everything around its curves in place."""
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=8, color=FAINT, labelcolor=FAINT)
    for place in ("top", "right"):
        axes.spines[place].set_visible(False)
    for place in ("left", "bottom"):
        axes.spines[place].set_color(FAINT)
    axes.margins(x=0)
    axes.set_xlabel(x_label, fontsize=9, color=FAINT)
    if has_legend and len(axes.get_legend_handles_labels()[0]) > 1:
        _legend(figure, axes)
    return figure


def _legend(figure: Any, axes: Any) -> None:
    """Put the names above the axes and below the title; the axes make room for rows beyond the first."""
    num_rows = -(-len(axes.get_legend_handles_labels()[0]) // _NAMES_PER_ROW)
    box = axes.get_position()
    room = (num_rows - 1) * _ROW_IN / figure.get_size_inches()[1]
    axes.set_position((box.x0, box.y0, box.width, box.height - room))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=_NAMES_PER_ROW, fontsize=8, frameon=False)


def middles(end_s: float, count: int) -> tuple[Any, str]:
    """Return the middles of so many bins, in the unit that suits the end, and that unit."""
    unit, seconds = time_unit(end_s)
    return (np.arange(count) + 0.5) * end_s / count / seconds, unit


def numbers(values: Sequence[float | None]) -> Any:
    """Return values as an array, NaN where there is none."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def saved(figure: Any, kind: str) -> bytes:
    """Return a figure as a file."""
    import matplotlib

    buffer = io.BytesIO()
    # The same run gives the same file: no date inside, no random ids, text stays text.
    without = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.hashsalt": "stretto", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format=kind, metadata=without)
    return buffer.getvalue()
