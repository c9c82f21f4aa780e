"""Draw a Gantt chart with matplotlib; figures are objects, no global state is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.reports.gantt.chart import GanttChart
from stretto.reports.plots.canvas import DASHED, FAINT, GRID, INK, new_figure, printable, saved, shortened, time_unit
from stretto.reports.plots.colors import text_on

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN = 13.0
#: How many characters fit: left of a row, and in the line of the legend.
_NAME_CHARS, _LEGEND_CHARS = 26, 165
_TRANSFER, _BOUND = "#5f6368", "#b00020"
#: Bars lie between these offsets from the middle of their row, transfers just below.
_BAR = (-0.40, 0.24)
_MOVE = (0.28, 0.42)
#: Beyond this many shapes a vector file is a burden: they become pixels inside it.
_MAX_VECTOR_SHAPES = 50_000


def render(chart: GanttChart, kind: str) -> bytes:
    """Return the picture as the bytes of a ``png``, ``svg`` or ``pdf`` file."""
    num_rows = len(chart.rows)
    row_in = 0.34 if num_rows <= 24 else max(0.03, min(0.34, 13.0 / num_rows))
    height_in = max(1.0, num_rows * row_in) + 1.35
    figure = new_figure(_WIDTH_IN, height_in)
    left = 0.35 + 0.085 * min(_NAME_CHARS, max(len(row.name) for row in chart.rows))
    box = (left / _WIDTH_IN, 0.5 / height_in, (_WIDTH_IN - left - 1.15) / _WIDTH_IN, 1 - 1.35 / height_in)
    axes = figure.add_axes(box)
    side = figure.add_axes((1 - 1.05 / _WIDTH_IN, box[1], 0.9 / _WIDTH_IN, box[3]), sharey=axes)
    unit, unit_s = time_unit(chart.makespan_s)
    end = chart.makespan_s / unit_s or 1.0
    axes.set_xlim(0, end * 1.01)
    axes.set_ylim(num_rows - 0.5, -0.5)
    points = box[2] * _WIDTH_IN * 72 / (end * 1.01)  # per unit of time
    _bars(axes, chart, unit_s, points, row_in * 72)
    _moves(axes, chart, unit_s)
    _rows(axes, chart, row_in * 72)
    _limits(axes, chart, unit, unit_s)
    _utilization(side, chart, row_in * 72)
    _heading(figure, chart, left / _WIDTH_IN, height_in)
    return saved(figure, kind)


def _boxes(left: Floats, right: Floats, row: Ints, span: tuple[float, float]) -> Sequence[Floats]:
    """Return rectangles as polygons, [n, 4, 2]."""
    low, high = row + span[0], row + span[1]
    corners = [[left, low], [right, low], [right, high], [left, high]]
    boxes = np.ascontiguousarray(np.array(corners, dtype=np.float64).transpose(2, 0, 1))
    return cast("Sequence[Floats]", boxes)  # an array is a sequence to matplotlib, and its fast way in


def _bars(axes: Axes, chart: GanttChart, unit_s: float, points: float, row_points: float) -> None:
    from matplotlib.collections import PolyCollection

    span = _span(chart)
    start, finish = chart.start_s / unit_s, chart.finish_s / unit_s
    # Shorter than a hairline would vanish; the outline would drown what is a little longer.
    wide = (finish - start) * points
    finish_drawn = np.where(wide < 0.4, start + 0.4 / points, finish)
    colors = np.array([color for _, color in chart.legend])[chart.color]
    shapes = PolyCollection(
        _boxes(start, finish_drawn, chart.row, span),
        facecolors=colors,
        edgecolors="white",
        linewidths=np.clip((wide - 1.5) / 6, 0.0, 0.7),
        rasterized=len(start) > _MAX_VECTOR_SHAPES,
    )
    axes.add_collection(shapes)
    _labels(axes, chart, (start + finish) / 2, wide, colors, row_points * (span[1] - span[0]))


def _labels(axes: Axes, chart: GanttChart, middle: Floats, wide: Floats, colors: NDArray[np.str_], tall: float) -> None:
    """Write names into the bars that have room for them, a little smaller where that helps."""
    full = min(8.0, tall * 0.72)
    least = max(3.5, 0.75 * full)
    span = _span(chart)
    for task in np.flatnonzero(wide > least) if full >= least else ():
        name = printable(chart.names[task])
        size = min(full, (wide[task] - 2.5) / (0.6 * max(1, len(name))))
        if size >= least:
            axes.text(
                middle[task],
                chart.row[task] + sum(span) / 2,
                name,
                ha="center",
                va="center_baseline",
                fontsize=size,
                color=text_on(str(colors[task])),
                parse_math=False,
                clip_on=True,
            )


def _span(chart: GanttChart) -> tuple[float, float]:
    """Where bars lie in their row: they leave a strip for the transfers, when there are any."""
    moved = chart.transfers
    return _BAR if moved is not None and len(moved.start_s) else (-0.40, 0.40)


def _moves(axes: Axes, chart: GanttChart, unit_s: float) -> None:
    from matplotlib.collections import PolyCollection

    moved = chart.transfers
    if moved is None or not len(moved.start_s):
        return
    boxes = _boxes(moved.start_s / unit_s, moved.finish_s / unit_s, chart.row_of[moved.target], _MOVE)
    axes.add_collection(
        PolyCollection(
            boxes, facecolors=_TRANSFER, alpha=0.45, linewidths=0, rasterized=len(boxes) > _MAX_VECTOR_SHAPES
        )
    )


def _rows(axes: Axes, chart: GanttChart, row_points: float) -> None:
    every = max(1, int(np.ceil(6.0 / row_points)))
    shown = range(0, len(chart.rows), every)
    axes.set_yticks(list(shown), [shortened(chart.rows[i].name, _NAME_CHARS) for i in shown])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0, labelsize=min(8.5, max(4.5, row_points * 0.62)), labelcolor=INK)
    axes.tick_params(axis="x", length=3, labelsize=8, color=FAINT, labelcolor=FAINT)
    for index, row in enumerate(chart.rows):
        if row.starts_group:
            axes.axhline(index - 0.5, color="#bdc1c6", linewidth=0.8)
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for place in ("top", "right", "left"):
        axes.spines[place].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _limits(axes: Axes, chart: GanttChart, unit: str, unit_s: float) -> None:
    axes.set_xlabel(f"time ({unit})", fontsize=8, color=FAINT, labelpad=2)
    axes.axvline(chart.makespan_s / unit_s, color=INK, linewidth=1.0, linestyle=DASHED)
    if chart.lower_bound_s is not None and 0 < chart.lower_bound_s <= chart.makespan_s * 1.0001:
        axes.axvline(chart.lower_bound_s / unit_s, color=_BOUND, linewidth=1.2, linestyle=(0, (1.5, 1.5)))


def _utilization(side: Axes, chart: GanttChart, row_points: float) -> None:
    values = np.array([row.utilization for row in chart.rows])
    places = np.arange(len(values))
    side.barh(places, np.ones(len(values)), height=0.62, color="#eef0f2", linewidth=0)
    side.barh(places, values, height=0.62, color="#8ab4d8", linewidth=0)
    size = min(7.5, row_points * 0.6)
    if size >= 3.5:
        for place, value in enumerate(values):
            side.text(0.97, place, f"{100 * value:.0f} %", ha="right", va="center_baseline", fontsize=size, color=INK)
    side.set_xlim(0, 1)
    side.set_axis_off()
    side.set_title("utilization", fontsize=8, color=FAINT, pad=3)


def _heading(figure: Figure, chart: GanttChart, left: float, height_in: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    top = 1 - 0.22 / height_in
    figure.text(
        left, top, shortened(chart.title, 110), fontsize=12, weight="bold", color=INK, va="center", parse_math=False
    )
    figure.text(left, top - 0.22 / height_in, "  ·  ".join(chart.facts), fontsize=8.5, color=FAINT, va="center")
    entries: list[tuple[Artist, str]] = [(Patch(color=color), label) for label, color in chart.legend if label]
    if chart.transfers is not None and len(chart.transfers.start_s):
        entries.append((Patch(color=_TRANSFER, alpha=0.45), "transfer"))
    entries.append((Line2D([], [], color=INK, linewidth=1.0, linestyle=DASHED), "makespan"))
    if chart.lower_bound_s is not None:
        entries.append((Line2D([], [], color=_BOUND, linewidth=1.2, linestyle=(0, (1.5, 1.5))), "lower bound"))
    legend = figure.legend(
        [handle for handle, _ in entries],
        ["-"] * len(entries),
        loc="center left",
        bbox_to_anchor=(left - 0.005, top - 0.48 / height_in),
        ncols=len(entries),
        frameon=False,
        fontsize=8,
        handlelength=1.4,
        columnspacing=1.2,
        handletextpad=0.5,
    )
    # Set afterwards: matplotlib drops labels that start with an underscore.
    room = 28
    while room > 4 and sum(min(len(label), room) + 5 for _, label in entries) > _LEGEND_CHARS:
        room -= 1
    for text, (_, label) in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        text.set_text(shortened(label, room))
