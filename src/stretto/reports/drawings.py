"""Figures of what was executed, how a search came down, and where tasks of a graph lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.reports.canvas import FAINT, HEIGHT_IN, NAMES, View, axes_of, finished
from stretto.reports.colours import PALETTE
from stretto.reports.gantt.chart import time_unit
from stretto.reports.gantt.figure import shortened

#: Of so many bars, edges would hide the bars.
_MANY = 2000
#: Devices that a legend has room for.
_MAX_NAMED = 12
#: Of devices whose colours are used up.
_MARKS = ("o", "s", "^")
_LINK, _INSIDE = PALETTE[3], "#9aa0a6"


def executed(view: View) -> Any:
    """Return the schedule of what has really run: a bar per task, coloured by how it ended."""
    chart = view["gantt"]
    rows = [row[0] for row in chart["rows"]]
    figure, axes = axes_of(view, "what ran when", height_in=max(HEIGHT_IN, 1.4 + 0.17 * len(rows)), left=NAMES)
    unit, seconds = time_unit(chart["makespan"])
    start, length = (np.array(chart[name], dtype=np.float64) / seconds for name in ("start", "length"))
    row, colour = np.array(chart["row"]), np.array(chart["colour"])
    edge = {"edgecolor": "white", "linewidth": 0.4 if len(row) < _MANY else 0.0}
    for code, (label, fill, _) in enumerate(chart["legend"]):
        mine = np.flatnonzero(colour == code)
        if len(mine):
            axes.barh(row[mine], length[mine], left=start[mine], height=0.78, color=fill, label=label, **edge)
    axes.set_yticks(np.arange(len(rows)), [shortened(name, 22) for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    whole = finished(figure, axes, f"time ({unit})")
    axes.set_xlim(left=0.0)
    return whole


def search(view: View) -> Any:
    """Return the best makespan by time of search, with what cannot be beaten."""
    figure, axes = axes_of(view, "best makespan found so far")
    times, best = np.array(view["progress"], dtype=np.float64).T
    bound = view["summary"].get("lower_bound_s")
    unit, seconds = time_unit(float(best.max()))
    axes.step(times, best / seconds, where="post", color=PALETTE[0], linewidth=1.4, label="best")
    if isinstance(bound, (int, float)):
        axes.axhline(bound / seconds, color=PALETTE[3], linewidth=1.1, linestyle=(0, (4, 2)), label="lower bound")
    axes.set_ylabel(f"makespan ({unit})", fontsize=9, color=FAINT)
    return finished(figure, axes, "time of search (s)")


def placement(view: View) -> Any:
    """Return the graph in layers, its tasks coloured by their devices, and links that cross devices in red."""
    graph = view["graph"]
    figure, axes = axes_of(view, "placement on the graph", height_in=5.0)
    x = np.array([node[0] for node in graph["nodes"]], dtype=np.float64)
    y, row, count = (np.array([node[place] for node in graph["nodes"]]) for place in (1, 3, 4))
    for source, target, _, crosses in graph["edges"]:
        style = _LINK if crosses else _INSIDE
        axes.plot(x[[source, target]], y[[source, target]], color=style, linewidth=0.5, alpha=0.35, zorder=1)
    area = 14.0 if graph["kind"] == "tasks" else 12.0 + 160.0 * count / count.max()
    for place, name in enumerate(graph["rows"]):
        mine = row == place
        if not mine.any():  # a name without a dot would only take the room of others
            continue
        size = area if isinstance(area, float) else area[mine]
        colour = PALETTE[place % len(PALETTE)]
        mark = _MARKS[place // len(PALETTE) % len(_MARKS)]
        dots = {"s": size, "color": colour, "marker": mark, "zorder": 2, "linewidth": 0}
        axes.scatter(x[mine], y[mine], label=shortened(name, 12), **dots)
    axes.set_yticks([])
    axes.locator_params(axis="x", integer=True)
    axes.invert_yaxis()
    whole = finished(figure, axes, "depth", has_legend=len(np.unique(row)) <= _MAX_NAMED)
    axes.margins(x=0.03)
    axes.grid(False)
    return whole
