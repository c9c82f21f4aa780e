"""Pictures of a training run: best and mean makespan by episode, its stages, and what others reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stretto.core.csr import Floats
from stretto.core.units import format_percent, format_seconds
from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.learning.trainer import TrainingRow
from stretto.reports.page.html import render
from stretto.reports.page.training import training_json
from stretto.reports.page.view_types import RunView, new_view
from stretto.reports.plots.canvas import (
    DASHED,
    FAINT,
    INK,
    Style,
    format_number,
    heading,
    kind_of,
    new_figure,
    saved,
    shortened,
    style_axes,
    time_unit,
)
from stretto.reports.plots.colors import PALETTE
from stretto.reports.plots.runs import training_figure
from stretto.runlog.record import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = ("png", "svg", "html")
_WIDTH_IN, _HEIGHT_IN = 11.0, 6.0
_LEFT, _RIGHT = 0.07, 0.86
#: Points of a curve; more would not be seen.
_NUM_POINTS = 2000
#: Colors of what is measured, and of what it is measured against.
_BEST, _MEAN, _GREEDY, _ENTROPY = PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[5]
_BASELINES = (PALETTE[3], PALETTE[6], PALETTE[8], PALETTE[7])


def draw_training(
    rows: Iterable[TrainingRow | Mapping[str, Json]],
    path: str | Path,
    *,
    title: str = "training",
    baselines: Mapping[str, float] | None = None,
    answer: str = "",
) -> None:
    """Write a picture of a training run.

    Parameters
    ----------
    path
        Ends in ``.png``, ``.svg`` or ``.html``; the last is one offline page that holds the data too.
    baselines
        Makespans to compare with, by name; drawn as lines.
    answer
        The sentence below the title of a page.
    """
    target = Path(path)
    kind = kind_of(target, ENDINGS)
    lines = [TrainingRow.of(row) for row in rows]
    _check(lines, baselines or {})
    lines = _thinned(lines)
    if kind == "html":
        view = _training_view([row.to_json() for row in lines], title, "", baselines or {})
        write_atomically(target, render(title, [view], [], [], [answer]))
    else:
        write_atomically(target, saved(_figure(_Curve(lines, dict(baselines or {}), title)), kind))


def draw_learning_curves(
    rows: Sequence[Mapping[str, Json]], path: Path, *, name: str, algorithm: str, answer: str = ""
) -> None:
    """Write the curves of a training that is not about one graph, by generation or iteration.

    Parameters
    ----------
    path
        Ends in ``.png`` or ``.svg``, or in ``.html`` for one offline page.
    """
    if not rows:
        raise InvalidInput("there is nothing to draw: no rows", field="rows")
    kind = kind_of(path, ENDINGS)
    view = _training_view(rows, name, algorithm, {})
    if kind == "html":
        write_atomically(path, render(f"{name} by {algorithm}", [view], [], [], [answer]))
    else:
        assert view["training"] is not None
        write_atomically(path, saved(training_figure(view, view["training"]), kind))


def _training_view(
    rows: Sequence[Mapping[str, Json]], name: str, algorithm: str, baselines: Mapping[str, float]
) -> RunView:
    view = new_view(
        {
            "id": "",
            "kind": "train",
            "name": name,
            "status": "done",
            "started_s": 0.0,
            "ended_s": None,
            "answer": "",
            "num_events": len(rows),
            "settings": {"algorithm": algorithm},
            "summary": {},
        }
    )
    view["training"] = training_json(rows, baselines)
    return view


def _check(rows: Sequence[TrainingRow], baselines: Mapping[str, float]) -> None:
    if not rows:
        raise InvalidInput("there is nothing to draw: no rows", field="rows")
    if any(later.episode < row.episode for row, later in pairwise(rows)):
        raise InvalidInput("episodes must not decrease", field="rows")
    if not any(math.isfinite(row.best_s) for row in rows):
        raise InvalidInput("no row has a makespan", field="rows")
    for name, value in baselines.items():
        if not (value > 0 and math.isfinite(value)):
            raise InvalidInput(f"{value} must be positive and finite", field=f"baseline {name}")


def _thinned(rows: Sequence[TrainingRow]) -> list[TrainingRow]:
    """Keep the ends, the changes of stage, and so many of the others that a curve is full."""
    if len(rows) <= _NUM_POINTS:
        return list(rows)
    keep = set(np.linspace(0, len(rows) - 1, _NUM_POINTS).round().astype(int).tolist())
    keep |= {i for i in range(1, len(rows)) if rows[i].stage != rows[i - 1].stage}
    return [rows[i] for i in sorted(keep)]


class _Curve:
    """What is drawn: columns in the unit of the picture, spans of stages, facts."""

    def __init__(self, rows: list[TrainingRow], baselines: dict[str, float], title: str) -> None:
        self.rows = rows
        self.baselines = baselines
        self.title = title
        self.episode = np.array([row.episode for row in rows], dtype=np.float64)
        finite = [row.best_s for row in rows if math.isfinite(row.best_s)]
        self.unit, self.unit_s = time_unit(max([*finite, *baselines.values()]))
        self.best_s = finite[-1]
        self.x_limits = (min(0.0, self.episode[0]), max(self.episode[-1], 1.0))

    def column(self, name: str, scale: float = 1.0) -> Floats:
        return np.array([getattr(row, name) for row in self.rows], dtype=np.float64) / scale

    @property
    def stages(self) -> list[tuple[str, float, float]]:
        """Name, first and last episode of each stage; a stage begins where the one before it ended."""
        spans: list[tuple[str, float, float]] = []
        for place, row in enumerate(self.rows):
            if not spans or spans[-1][0] != row.stage:
                begin = self.x_limits[0] if place == 0 else float(self.rows[place - 1].episode)
                spans.append((row.stage, begin, float(row.episode)))
            else:
                spans[-1] = (spans[-1][0], spans[-1][1], float(row.episode))
        return spans

    @property
    def facts(self) -> str:
        last = self.rows[-1]
        words = [f"{last.episode:,} episodes in {format_seconds(last.seconds)}"]
        if last.seconds > 0:
            words.append(f"{last.episode / last.seconds:,.0f} episodes/s")
        words.append(f"best {format_seconds(self.best_s)}")
        if self.baselines:
            name, value = min(self.baselines.items(), key=lambda item: item[1])
            words.append(
                f"{format_percent(abs(1 - self.best_s / value))} {'below' if self.best_s <= value else 'above'} {name}"
            )
        return " · ".join(words)


def _figure(curve: _Curve) -> Figure:
    figure = new_figure(_WIDTH_IN, _HEIGHT_IN)
    entropy = curve.column("entropy")
    has_entropy = bool(np.isfinite(entropy).any())
    bottom = 0.30 if has_entropy else 0.09
    axes = figure.add_axes((_LEFT, bottom, _RIGHT - _LEFT, 0.85 - bottom))
    _makespans(axes, curve)
    lowest = axes
    if has_entropy:
        lowest = figure.add_axes((_LEFT, 0.09, _RIGHT - _LEFT, 0.15), sharex=axes)
        lowest.plot(curve.episode, entropy, color=_ENTROPY, linewidth=1.2, **_dots(entropy))
        lowest.set_ylabel("entropy", fontsize=9, color=INK)
        lowest.set_ylim(0, float(np.nanmax(entropy)) * 1.12 or 1.0)
        axes.tick_params(labelbottom=False)
        _look(lowest)
        _boundaries(lowest, curve)
    lowest.set_xlabel("episodes", fontsize=9, color=FAINT)
    axes.set_xlim(*curve.x_limits)
    heading(figure, curve.title, curve.facts)
    return figure


def _makespans(axes: Axes, curve: _Curve) -> None:
    ends: list[tuple[float, str, str]] = []
    drawn: list[float] = []
    for name, label, color, width in (
        ("mean_s", "mean", _MEAN, 1.0),
        ("greedy_s", "greedy", _GREEDY, 1.1),
        ("best_s", "best", _BEST, 2.0),
    ):
        values = curve.column(name, curve.unit_s)
        there = np.isfinite(values)
        if not there.any():
            continue
        style = "steps-post" if name == "best_s" else "default"
        marks = _dots(values)
        axes.plot(curve.episode[there], values[there], color=color, linewidth=width, drawstyle=style, **marks)
        ends.append((float(values[there][-1]), f"{label}  {format_number(values[there][-1])}", color))
        drawn += [float(values[there].min()), float(np.quantile(values[there], 0.98))]
    for place, (name, seconds) in enumerate(sorted(curve.baselines.items(), key=lambda item: item[1])):
        value, color = seconds / curve.unit_s, _BASELINES[place % len(_BASELINES)]
        axes.axhline(value, color=color, linewidth=1.1, linestyle=DASHED)
        ends.append((value, f"{shortened(name, 14)}  {format_number(value)}", color))
        drawn.append(value)
    low, high = min(drawn), max(drawn)
    room = (high - low) * 0.06 or high * 0.05
    axes.set_ylim(low - room, high + room)
    axes.set_ylabel(f"makespan ({curve.unit})", fontsize=9, color=INK)
    _look(axes)
    _boundaries(axes, curve, named=True)
    _end_labels(axes, ends)


def _dots(values: Floats) -> Style:
    """A single point needs a mark to be seen."""
    return {"marker": "o", "markersize": 5, "clip_on": False} if np.isfinite(values).sum() == 1 else {}


def _end_labels(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Name each line where it ends, moved apart as far as reading needs."""
    low, high = axes.get_ylim()
    gap = 0.052
    places: list[float] = []
    ordered = sorted(ends)
    for value, _, _ in ordered:
        share = min(max((value - low) / (high - low), 0.01), 0.99)
        places.append(max(share, places[-1] + gap) if places else share)
    if places[-1] > 1:  # pushed out at the top: push back down
        places[-1] = 1.0
        for i in range(len(places) - 2, -1, -1):
            places[i] = min(places[i], places[i + 1] - gap)
    for place, (_, text, color) in zip(places, ordered, strict=True):
        axes.text(
            1.008, place, text, transform=axes.transAxes, color=color, fontsize=8.5, va="center", parse_math=False
        )


def _boundaries(axes: Axes, curve: _Curve, *, named: bool = False) -> None:
    spans = curve.stages
    width = curve.x_limits[1] - curve.x_limits[0]
    for place, (name, begin, end) in enumerate(spans):
        if place:
            axes.axvline(begin, color=FAINT, linewidth=0.9, linestyle=(0, (1.5, 2)))
        room = int(78 * (end - begin) / width)  # letters that fit above the span
        if named and name and room >= 3:
            axes.annotate(
                shortened(name, room),
                (begin, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 4),
                textcoords="offset points",
                fontsize=8.5,
                color=FAINT,
                parse_math=False,
            )


def _look(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    style_axes(axes)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
