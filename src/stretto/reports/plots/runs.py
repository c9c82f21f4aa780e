"""Figures of a run as files: PNG, SVG and PDF of everything that its page draws."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.reports.gantt.chart import make_chart
from stretto.reports.gantt.figure import render as render_gantt
from stretto.reports.page.training import spoken
from stretto.reports.page.view_types import (
    CostLine,
    GanttJson,
    GraphJson,
    QueueJson,
    RunView,
    Titled,
    TrainingJson,
    UseJson,
)
from stretto.reports.plots.canvas import (
    DASHED,
    FAINT,
    HEIGHT_IN,
    NAMES,
    Style,
    axes_of,
    finished,
    format_share,
    middles,
    numbers,
    saved,
    shortened,
    time_unit,
)
from stretto.reports.plots.colors import PALETTE
from stretto.reports.racks.heat import heat, intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "svg", "pdf")
#: With more bars than this, edges would hide the bars.
_MANY = 2000
#: By the state of a task.
_OUTCOMES = (("running", PALETTE[1]), ("done", PALETTE[0]), ("failed", PALETTE[3]))
#: Devices that a legend has room for.
_MAX_NAMED = 12
#: Markers of devices beyond the last color.
_MARKERS = ("o", "s", "^")
_LINK, _INSIDE = PALETTE[3], "#9aa0a6"


def draw_figures(
    view: RunView,
    folder: Path,
    *,
    stem: str,
    planned: tuple[Problem, Schedule] | None = None,
    kinds: Sequence[str] = KINDS,
) -> list[Path]:
    """Write the figures of one run, and return their files.

    Parameters
    ----------
    stem
        How the names of the files begin.
    planned
        Problem and schedule, for the Gantt chart.
    """
    found = save_figures(_figures(view), folder, stem=stem, kinds=kinds)
    if planned is not None:
        chart = make_chart(*planned, title=view["name"], lower_bound_s=view["summary"].get("lower_bound_s"))
        for kind in kinds:
            found.append(_write(folder / f"{_begin(stem)}-gantt.{kind}", render_gantt(chart, kind)))
    return found


def save_figures(figures: Mapping[str, Figure], folder: Path, *, stem: str, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write figures by their names, and return their files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make this directory: {error.strerror}", source=str(folder)) from None
    return [
        _write(folder / f"{_begin(stem)}-{name}.{kind}", saved(figure, kind))
        for name, figure in figures.items()
        for kind in kinds
    ]


def _begin(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.") or "run"


def _write(path: Path, data: bytes) -> Path:
    write_atomically(path, data)
    return path


def _figures(view: RunView) -> dict[str, Figure]:
    """Return the figures of the parts that a view has, by name."""
    found: dict[str, Figure] = {}
    queue, belief, gantt, cost = view["queue"], view["belief"], view["gantt"], view["cost"]
    use = view["use"] or (queue and UseJson(end_s=queue["end_s"], series=queue["use"]))
    if use:
        found["utilization"] = _use(view, use)
    if view["map"]:
        tiles = view["map"]
        found["map"] = heat(view, tiles["names"], tiles["use"], tiles["end_s"], "utilization")
    if belief:
        found["belief"] = heat(view, belief["resources"], belief["mean"], belief["at_s"], "estimated load")
        found["intervals"] = intervals(view, belief)
    if queue:
        found["queue"] = _queue(view, queue)
    if view["training"]:
        found["training"] = training_figure(view, view["training"])
    if view["progress"]:
        found["search"] = search(view, view["progress"])
    if view["graph"]:
        found["placement"] = placement(view, view["graph"])
    if gantt and gantt["task"] and not view["is_planned"]:
        found["executed"] = executed(view, gantt)
    if cost and any(line["usd"] > 0 for line in cost):
        found["cost"] = _cost(view, cost)
    return found


def _use(view: RunView, use: UseJson) -> Figure:
    figure, axes = axes_of(view, "utilization over time")
    x, unit = middles(use["end_s"], len(use["series"][0]["mean"]))
    for place, one in enumerate(use["series"]):
        axes.plot(x, numbers(one["mean"]), color=PALETTE[place % len(PALETTE)], linewidth=1.4, label=one["name"])
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(format_share)
    return finished(figure, axes, f"time ({unit})")


def _queue(view: RunView, queue: QueueJson) -> Figure:
    figure, axes = axes_of(view, "waiting jobs over time")
    x, unit = middles(queue["end_s"], len(queue["waiting_mean"]))
    axes.fill_between(x, numbers(queue["waiting_mean"]), color=PALETTE[0], alpha=0.18, linewidth=0)
    axes.plot(x, numbers(queue["waiting_mean"]), color=PALETTE[0], linewidth=1.4, label="mean")
    axes.plot(x, numbers(queue["waiting_most"]), color=PALETTE[1], linewidth=0.9, label="maximum")
    axes.set_ylim(bottom=0)
    return finished(figure, axes, f"time ({unit})")


def training_figure(view: RunView, training: TrainingJson) -> Figure:
    """Return the first group of curves of a training."""
    group = training["groups"][0]
    figure, axes = axes_of(view, f"training, {group['title']}")
    series = [one for one in training["series"] if one["name"] in group["names"]]
    values = {one["name"]: numbers(one["values"]) for one in series}
    known = [found[np.isfinite(found)] for found in (*values.values(), np.array(list(training["baselines"].values())))]
    most = float(np.max(np.concatenate(known), initial=0.0))
    unit, scale = time_unit(most) if group["unit"] == "s" else ("", 1.0)
    x = numbers(training["x"])
    for place, (name, found) in enumerate(values.items()):
        there = np.isfinite(found)
        style = "steps-post" if name.startswith("best") else "default"
        look: Style = {"color": PALETTE[place % 9], "linewidth": 1.3, "drawstyle": style}
        axes.plot(x[there], found[there] / scale, label=spoken(name), **look)
    for place, (name, value) in enumerate(training["baselines"].items()):
        axes.axhline(value / scale, color=PALETTE[(3 + place) % 9], linewidth=1.1, linestyle=DASHED, label=name)
    axes.set_ylabel(f"{group['title'].partition(',')[0]}{f' ({unit})' if unit else ''}", fontsize=9, color=FAINT)
    return finished(figure, axes, training["x_name"])


def _cost(view: RunView, cost: Sequence[CostLine]) -> Figure:
    figure, axes = axes_of(view, "cost by device or pool", left=NAMES)
    axes.barh([line["name"] for line in cost], [line["usd"] for line in cost], color=PALETTE[0], height=0.6)
    axes.invert_yaxis()
    return finished(figure, axes, "cost (USD)", has_legend=False)


def executed(view: RunView, chart: GanttJson) -> Figure:
    """Return the executed schedule: a bar per attempt, colored by its outcome."""
    rows = [row[0] for row in chart["rows"]]
    figure, axes = axes_of(view, "executed schedule", height_in=max(HEIGHT_IN, 1.4 + 0.17 * len(rows)), left=NAMES)
    unit, seconds = time_unit(chart["makespan"])
    start, length = numbers(chart["start"]) / seconds, numbers(chart["length"]) / seconds
    row, state = np.array(chart["row"]), np.array(chart["state"])
    edge: Style = {"edgecolor": "white", "linewidth": 0.4 if len(row) < _MANY else 0.0}
    for code, (label, fill) in enumerate(_OUTCOMES):
        mine = np.flatnonzero(state == code)
        if len(mine):
            axes.barh(row[mine], length[mine], left=start[mine], height=0.78, color=fill, label=label, **edge)
    axes.set_yticks(np.arange(len(rows)), [shortened(name, 22) for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    whole = finished(figure, axes, f"time ({unit})")
    axes.set_xlim(left=0.0)
    return whole


def search(view: RunView, progress: Sequence[tuple[float, float]]) -> Figure:
    """Return the best makespan by search time, with the lower bound."""
    figure, axes = axes_of(view, "best makespan found so far")
    times, best = np.array(progress, dtype=np.float64).T
    bound = view["summary"].get("lower_bound_s")
    unit, seconds = time_unit(float(best.max()))
    axes.step(times, best / seconds, where="post", color=PALETTE[0], linewidth=1.4, label="best")
    if isinstance(bound, (int, float)):
        axes.axhline(bound / seconds, color=PALETTE[3], linewidth=1.1, linestyle=DASHED, label="lower bound")
    axes.set_ylabel(f"makespan ({unit})", fontsize=9, color=FAINT)
    return finished(figure, axes, "search time (s)")


def placement(view: Titled, graph: GraphJson) -> Figure:
    """Return the graph in layers, its tasks colored by their devices, and links between devices in red."""
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
        marker = _MARKERS[place // len(PALETTE) % len(_MARKERS)]
        dots: Style = {"s": size, "color": PALETTE[place % len(PALETTE)], "marker": marker, "zorder": 2, "linewidth": 0}
        axes.scatter(x[mine], y[mine], label=shortened(name, 12), **dots)
    axes.set_yticks([])
    axes.locator_params(axis="x", integer=True)
    axes.invert_yaxis()
    whole = finished(figure, axes, "depth", has_legend=len(np.unique(row)) <= _MAX_NAMED)
    axes.margins(x=0.03)
    axes.grid(False)
    return whole
