"""Figures of a report as files: PNG, SVG and PDF of everything that the page draws."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto.domain.problem import Problem
from stretto.domain.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.experiments.colours import PALETTE
from stretto.experiments.gantt_chart import make_chart, time_unit
from stretto.experiments.gantt_figure import render as render_gantt
from stretto.experiments.gantt_figure import shortened
from stretto.formats.load import write_atomically

KINDS = ("png", "svg", "pdf")
_INK, _FAINT, _GRID = "#202124", "#5f6368", "#e3e5e8"
_WIDTH_IN, _HEIGHT_IN = 9.0, 3.4
View = Mapping[str, Any]


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
    _make(folder)
    begin = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.") or "run"
    found: list[Path] = []
    for name, figure in _figures(view).items():
        for kind in kinds:
            found.append(_write(folder / f"{begin}-{name}.{kind}", _saved(figure, kind)))
    if planned is not None:
        chart = make_chart(*planned, title=view["name"], lower_bound_s=view["summary"].get("lower_bound_s"))
        for kind in kinds:
            found.append(_write(folder / f"{begin}-gantt.{kind}", render_gantt(chart, kind)))
    return found


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
    if view["queue"]:
        found["queue"] = _queue(view)
    if view["training"]:
        found["training"] = _training(view)
    if view["cost"] and any(line["usd"] > 0 for line in view["cost"]):
        found["cost"] = _cost(view)
    return found


def _use(view: View, use: View) -> Any:
    figure, axes = _axes(view, "utilisation over time")
    x, unit = _middles(use["end_s"], len(use["series"][0]["mean"]))
    for place, one in enumerate(use["series"]):
        axes.plot(x, _numbers(one["mean"]), color=PALETTE[place % len(PALETTE)], linewidth=1.4, label=one["name"])
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    return _finished(figure, axes, f"time ({unit})")


def _queue(view: View) -> Any:
    queue = view["queue"]
    figure, axes = _axes(view, "waiting jobs over time")
    x, unit = _middles(queue["end_s"], len(queue["waiting_mean"]))
    axes.fill_between(x, _numbers(queue["waiting_mean"]), color=PALETTE[0], alpha=0.18, linewidth=0)
    axes.plot(x, _numbers(queue["waiting_mean"]), color=PALETTE[0], linewidth=1.4, label="mean")
    axes.plot(x, _numbers(queue["waiting_most"]), color=PALETTE[1], linewidth=0.9, label="most")
    axes.set_ylim(bottom=0)
    return _finished(figure, axes, f"time ({unit})")


def _training(view: View) -> Any:
    training = view["training"]
    figure, axes = _axes(view, "training")
    series = [one for one in training["series"] if one["name"].endswith("_s")] or training["series"]
    for place, one in enumerate(series):
        values = _numbers(one["values"])
        there = np.isfinite(values)
        axes.plot(
            np.array(training["x"])[there], values[there], color=PALETTE[place % 9], linewidth=1.3, label=one["name"]
        )
    for place, (name, value) in enumerate(training["baselines"].items()):
        axes.axhline(value, color=PALETTE[(3 + place) % 9], linewidth=1.1, linestyle=(0, (4, 2)), label=name)
    return _finished(figure, axes, training["x_name"])


def _cost(view: View) -> Any:
    figure, axes = _axes(view, "cost by device or pool")
    names = [line["name"] for line in view["cost"]]
    axes.barh(names, [line["usd"] for line in view["cost"]], color=PALETTE[0], height=0.6)
    axes.invert_yaxis()
    return _finished(figure, axes, "cost (USD)", has_legend=False)


def _axes(view: View, what: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), dpi=150, facecolor="white")
    axes = figure.add_axes((0.08, 0.16, 0.9, 0.68))
    by = view["settings"].get("policy") or view["settings"].get("strategy") or view["settings"].get("algorithm")
    title = f"{view['name']}{f' by {by}' if by else ''}: {what}"
    figure.text(0.012, 0.93, shortened(title, 100), fontsize=11, weight="bold", color=_INK, parse_math=False)
    return figure, axes


def _finished(figure: Any, axes: Any, x_label: str, *, has_legend: bool = True) -> Any:
    axes.grid(color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=8, color=_FAINT, labelcolor=_FAINT)
    for place in ("top", "right"):
        axes.spines[place].set_visible(False)
    for place in ("left", "bottom"):
        axes.spines[place].set_color(_FAINT)
    axes.margins(x=0)
    axes.set_xlabel(x_label, fontsize=9, color=_FAINT)
    if has_legend and len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=6, fontsize=8, frameon=False)
    return figure


def _middles(end_s: float, count: int) -> tuple[Any, str]:
    unit, seconds = time_unit(end_s)
    return (np.arange(count) + 0.5) * end_s / count / seconds, unit


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _saved(figure: Any, kind: str) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    # The same run gives the same file: no date inside, no random ids, text stays text.
    without = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.hashsalt": "stretto", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format=kind, metadata=without)
    return buffer.getvalue()
