"""Figures of a report as files: PNG, SVG and PDF of everything that the page draws."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.reports.canvas import FAINT, NAMES, View, axes_of, finished, middles, numbers, saved
from stretto.reports.colours import PALETTE
from stretto.reports.drawings import executed, placement, search
from stretto.reports.gantt.chart import make_chart, time_unit
from stretto.reports.gantt.figure import render as render_gantt
from stretto.reports.racks.heat import heat, intervals
from stretto.reports.training import spoken

KINDS = ("png", "svg", "pdf")


def draw_figures(
    view: View,
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
    begin = _begin(stem)
    if planned is not None:
        chart = make_chart(*planned, title=view["name"], lower_bound_s=view["summary"].get("lower_bound_s"))
        for kind in kinds:
            found.append(_write(folder / f"{begin}-gantt.{kind}", render_gantt(chart, kind)))
    return found


def save_figures(figures: Mapping[str, Any], folder: Path, *, stem: str, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write figures by their names, and return their files."""
    _make(folder)
    return [
        _write(folder / f"{_begin(stem)}-{name}.{kind}", saved(figure, kind))
        for name, figure in figures.items()
        for kind in kinds
    ]


def _begin(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.") or "run"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make this directory: {error.strerror}", source=str(folder)) from None


def _write(path: Path, data: bytes) -> Path:
    write_atomically(path, data)
    return path


def _figures(view: View) -> dict[str, Any]:
    """Return the figures that a view has something for, by name."""
    found: dict[str, Any] = {}
    use = view["use"] or (view["queue"] and {"end_s": view["queue"]["end_s"], "series": view["queue"]["use"]})
    if use:
        found["utilisation"] = _use(view, use)
    if view.get("map"):
        found["map"] = heat(view, view["map"]["names"], view["map"]["use"], view["map"]["end_s"], "utilisation")
    if view.get("belief"):
        belief = view["belief"]
        found["belief"] = heat(view, belief["resources"], belief["mean"], belief["at_s"], "believed utilisation")
        found["intervals"] = intervals(view)
    if view["queue"]:
        found["queue"] = _queue(view)
    if view["training"]:
        found["training"] = _training(view)
    if view["progress"]:
        found["search"] = search(view)
    if view["graph"]:
        found["placement"] = placement(view)
    if view["gantt"] and view["gantt"]["task"] and not view["is_planned"]:
        found["executed"] = executed(view)
    if view["cost"] and any(line["usd"] > 0 for line in view["cost"]):
        found["cost"] = _cost(view)
    return found


def _use(view: View, use: View) -> Any:
    figure, axes = axes_of(view, "utilisation over time")
    x, unit = middles(use["end_s"], len(use["series"][0]["mean"]))
    for place, one in enumerate(use["series"]):
        axes.plot(x, numbers(one["mean"]), color=PALETTE[place % len(PALETTE)], linewidth=1.4, label=one["name"])
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return finished(figure, axes, f"time ({unit})")


def _queue(view: View) -> Any:
    queue = view["queue"]
    figure, axes = axes_of(view, "waiting jobs over time")
    x, unit = middles(queue["end_s"], len(queue["waiting_mean"]))
    axes.fill_between(x, numbers(queue["waiting_mean"]), color=PALETTE[0], alpha=0.18, linewidth=0)
    axes.plot(x, numbers(queue["waiting_mean"]), color=PALETTE[0], linewidth=1.4, label="mean")
    axes.plot(x, numbers(queue["waiting_most"]), color=PALETTE[1], linewidth=0.9, label="most")
    axes.set_ylim(bottom=0)
    return finished(figure, axes, f"time ({unit})")


def training_picture(view: View, kind: str) -> bytes:
    """Return the curves of a training as a picture."""
    return saved(_training(view), kind)


def _training(view: View) -> Any:
    training = view["training"]
    group = training["groups"][0]
    figure, axes = axes_of(view, f"training, {group['title']}")
    series = [one for one in training["series"] if one["name"] in group["names"]]
    values = {one["name"]: numbers(one["values"]) for one in series}
    known = [found[np.isfinite(found)] for found in (*values.values(), np.array(list(training["baselines"].values())))]
    most = float(np.max(np.concatenate(known), initial=0.0))
    unit, scale = time_unit(most) if group["unit"] == "s" else ("", 1.0)
    for place, (name, found) in enumerate(values.items()):
        there = np.isfinite(found)
        style = "steps-post" if name.startswith("best") else "default"
        axes.plot(
            np.array(training["x"])[there],
            found[there] / scale,
            color=PALETTE[place % 9],
            linewidth=1.3,
            drawstyle=style,
            label=spoken(name),
        )
    for place, (name, value) in enumerate(training["baselines"].items()):
        axes.axhline(value / scale, color=PALETTE[(3 + place) % 9], linewidth=1.1, linestyle=(0, (4, 2)), label=name)
    axes.set_ylabel(f"{group['title'].partition(',')[0]}{f' ({unit})' if unit else ''}", fontsize=9, color=FAINT)
    return finished(figure, axes, training["x_name"])


def _cost(view: View) -> Any:
    figure, axes = axes_of(view, "cost by device or pool", left=NAMES)
    names = [line["name"] for line in view["cost"]]
    axes.barh(names, [line["usd"] for line in view["cost"]], color=PALETTE[0], height=0.6)
    axes.invert_yaxis()
    return finished(figure, axes, "cost (USD)", has_legend=False)
