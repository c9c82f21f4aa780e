"""Figures of comparisons: policies or strategies one below the other, with the intervals of seeds or windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stretto.queues.compare import MedianInterval
from stretto.reports.page.tables import Compared, range_of
from stretto.reports.plots.canvas import (
    DASHED,
    FAINT,
    HEIGHT_IN,
    NAMES,
    Style,
    finished,
    shortened,
    time_unit,
    titled_axes,
)
from stretto.reports.plots.colors import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is drawn of policies and of strategies: the figure, its name, and whether it is a time.
_DRAWN = {
    "policy": (("makespan_s", "makespan", True),),
    "strategy": (("mean_bounded_slowdown", "mean bounded slowdown", False), ("max_wait_s", "longest wait", True)),
}


def compared_figures(compared: Compared) -> dict[str, Figure]:
    """Return the figures of one comparison, by name."""
    found = {}
    for name, words, is_time in _DRAWN[compared.what]:
        ranges = {label: range_of(rows, name) for label, rows in compared.groups.items()}
        known = {label: one for label, one in ranges.items() if one is not None}
        if known:
            found[words.replace(" ", "-")] = _ranked(compared, known, words, is_time=is_time)
    return found


def _ranked(compared: Compared, ranges: dict[str, MedianInterval], words: str, *, is_time: bool) -> Figure:
    height_in = max(HEIGHT_IN, 1.4 + 0.2 * len(ranges))
    title = f"{compared.title.removesuffix(': strategies')}: {words} by {compared.what}"
    figure, axes = titled_axes(title, height_in=height_in, left=NAMES)
    unit, scale = time_unit(max(one.high for one in ranges.values())) if is_time else ("", 1.0)
    places = np.arange(len(ranges))
    low, middle, high = (
        np.array([getattr(one, name) for one in ranges.values()]) / scale for name in ("low", "median", "high")
    )
    word = "median" if bool(np.any(low < high)) else words
    axes.hlines(places, low, high, color=PALETTE[0], alpha=0.45, linewidth=5)
    axes.plot(middle, places, linestyle="", marker="o", markersize=5, color=PALETTE[0], label=word)
    bounds = [row.get("lower_bound_s") for rows in compared.groups.values() for row in rows]
    proved = [float(one) for one in bounds if isinstance(one, (int, float))]
    if compared.what == "policy" and proved:
        style: Style = {"color": PALETTE[3], "linewidth": 1.1, "linestyle": DASHED}
        axes.axvline(max(proved) / scale, label="lower bound", **style)
    axes.set_yticks(places, [shortened(label, 22) for label in ranges])
    axes.set_ylim(len(ranges) - 0.5, -0.5)
    if float(high.max()) > 8 * max(float(middle.min()), 1e-300):
        axes.set_xscale("log")
    whole = finished(figure, axes, f"{words} ({unit})" if unit else words)
    axes.margins(x=0.04)
    axes.xaxis.label.set_color(FAINT)
    return whole
