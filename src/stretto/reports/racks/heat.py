"""Figures of a map: load of each part over time as color, and the estimate at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto.reports.page.view_types import BeliefJson, Column, Titled
from stretto.reports.plots.canvas import (
    FAINT,
    HEIGHT_IN,
    INK,
    NAMES,
    axes_of,
    finished,
    format_share,
    numbers,
    shortened,
    time_unit,
)
from stretto.reports.plots.colors import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat(
    view: Titled, names: Sequence[str], rows: Sequence[Column], times: float | Sequence[float], what: str
) -> Figure:
    """Return shares as colors, a row per device or part; times are an end, or the moment of each column."""
    figure, axes = axes_of(
        view, f"{what} of each part over time", height_in=max(HEIGHT_IN, 1.4 + 0.17 * len(names)), left=NAMES
    )
    values = np.array([numbers(row) for row in rows])
    edges = np.linspace(0.0, times, values.shape[1] + 1) if isinstance(times, float) else np.array([*times, times[-1]])
    unit, seconds = time_unit(float(edges[-1]))
    drawn = axes.pcolormesh(edges / seconds, np.arange(len(names) + 1), values, cmap="YlOrRd", vmin=0.0, vmax=1.0)
    axes.set_yticks(np.arange(len(names)) + 0.5, [shortened(name, 22) for name in names])
    axes.invert_yaxis()
    box = axes.get_position()
    axes.set_position((box.x0, box.y0, 0.93 - box.x0, box.height))  # room for the scale and its words
    bar = figure.colorbar(drawn, ax=axes, fraction=0.03, pad=0.015, aspect=30)
    bar.ax.yaxis.set_major_formatter(format_share)
    bar.ax.tick_params(length=3, labelsize=8, color=FAINT, labelcolor=FAINT)
    whole = finished(figure, axes, f"time ({unit})", has_legend=False)
    axes.grid(False)
    return whole


def intervals(view: Titled, belief: BeliefJson) -> Figure:
    """Return the estimates at the busiest moment: means, 95 % intervals, counters, and the real load if it is known."""
    low, mean, high = (
        np.array([numbers(row) for row in rows]) for rows in (belief["low"], belief["mean"], belief["high"])
    )
    at = int(np.argmax(np.nansum(mean, axis=0)))
    names, places = belief["resources"], np.arange(len(belief["resources"]))
    when = f"estimated load at {belief['at_s'][at]:,.4g} s, with 95 % intervals"
    figure, axes = axes_of(view, when, height_in=max(HEIGHT_IN, 1.4 + 0.2 * len(names)), left=NAMES)
    spread = np.stack([mean[:, at] - low[:, at], high[:, at] - mean[:, at]])
    axes.barh(places, mean[:, at], height=0.6, color=PALETTE[4], alpha=0.6, label="estimate")
    axes.errorbar(mean[:, at], places, xerr=spread, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
    for rows, label, mark, color in (
        (belief.get("raw"), "its counters", "o", PALETTE[1]),
        (belief.get("truth"), "real load", "|", PALETTE[2]),
    ):
        if rows is not None:
            values = np.array([numbers(row) for row in rows])[:, at]
            axes.plot(values, places, mark, color=color, markersize=8, markeredgewidth=2, fillstyle="none", label=label)
    axes.set_yticks(places, [shortened(name, 22) for name in names])
    axes.set_xlim(0, 1.02)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(format_share)
    return finished(figure, axes, "load")
