"""Pictures of a training run: best and mean makespan by episode, its stages, and what others reach."""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.units import format_percent, format_seconds
from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.learning.trainer import TrainingRow
from stretto.reports.colours import PALETTE
from stretto.reports.gantt.chart import time_unit
from stretto.reports.gantt.figure import shortened
from stretto.reports.gantt.html import script_json
from stretto.reports.training_page import PAGE

ENDINGS = ("png", "svg", "html")
_DPI = 130
_WIDTH_IN, _HEIGHT_IN = 11.0, 6.0
_INK, _FAINT, _GRID = "#202124", "#5f6368", "#e3e5e8"
_LEFT, _RIGHT = 0.07, 0.86
#: Points of a curve; more would not be seen.
_NUM_POINTS = 2000
#: Colours of what is measured, and of what it is measured against.
_BEST, _MEAN, _GREEDY, _ENTROPY = PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[5]
_BASELINES = (PALETTE[3], PALETTE[6], PALETTE[8], PALETTE[7])


def draw_training(
    rows: Iterable[TrainingRow | Mapping[str, Any]],
    path: str | Path,
    *,
    title: str = "training",
    baselines: Mapping[str, float] | None = None,
) -> None:
    """Write a picture of a training run.

    Parameters
    ----------
    path
        Ends in ``.png``, ``.svg`` or ``.html``; the last is one offline page that holds the data too.
    baselines
        Makespans to compare with, by name; drawn as lines.
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ENDINGS:
        raise InvalidInput(f"{target.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(path), field="ending")
    lines = [TrainingRow.of(row) for row in rows]
    _check(lines, baselines or {})
    curve = _Curve(_thinned(lines), dict(baselines or {}), title)
    picture = _picture(curve, "svg" if kind == "html" else kind)
    write_atomically(target, _page(curve, picture.decode()) if kind == "html" else picture)


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

    def column(self, name: str, scale: float = 1.0) -> np.ndarray[Any, np.dtype[np.float64]]:
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


def _picture(curve: _Curve, kind: str) -> bytes:
    import matplotlib

    figure = _figure(curve)
    buffer = io.BytesIO()
    # The same run gives the same file: no date inside, no random ids, text stays text.
    with matplotlib.rc_context({"svg.hashsalt": "stretto", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _figure(curve: _Curve) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), dpi=_DPI, facecolor="white")
    entropy = curve.column("entropy")
    has_entropy = bool(np.isfinite(entropy).any())
    bottom = 0.30 if has_entropy else 0.09
    axes = figure.add_axes((_LEFT, bottom, _RIGHT - _LEFT, 0.85 - bottom))
    _makespans(axes, curve)
    lowest = axes
    if has_entropy:
        lowest = figure.add_axes((_LEFT, 0.09, _RIGHT - _LEFT, 0.15), sharex=axes)
        lowest.plot(curve.episode, entropy, color=_ENTROPY, linewidth=1.2, **_dots(entropy))
        lowest.set_ylabel("entropy", fontsize=9, color=_INK)
        lowest.set_ylim(0, float(np.nanmax(entropy)) * 1.12 or 1.0)
        axes.tick_params(labelbottom=False)
        _look(lowest)
        _boundaries(lowest, curve)
    lowest.set_xlabel("episodes", fontsize=9, color=_FAINT)
    axes.set_xlim(*curve.x_limits)
    _heading(figure, curve)
    return figure


def _makespans(axes: Any, curve: _Curve) -> None:
    ends: list[tuple[float, str, str]] = []
    drawn: list[float] = []
    for name, label, colour, width in (
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
        axes.plot(curve.episode[there], values[there], color=colour, linewidth=width, drawstyle=style, **marks)
        ends.append((float(values[there][-1]), f"{label}  {_figures(values[there][-1])}", colour))
        drawn += [float(values[there].min()), float(np.quantile(values[there], 0.98))]
    for place, (name, seconds) in enumerate(sorted(curve.baselines.items(), key=lambda item: item[1])):
        value, colour = seconds / curve.unit_s, _BASELINES[place % len(_BASELINES)]
        axes.axhline(value, color=colour, linewidth=1.1, linestyle=(0, (4, 2)))
        ends.append((value, f"{shortened(name, 14)}  {_figures(value)}", colour))
        drawn.append(value)
    low, high = min(drawn), max(drawn)
    room = (high - low) * 0.06 or high * 0.05
    axes.set_ylim(low - room, high + room)
    axes.set_ylabel(f"makespan ({curve.unit})", fontsize=9, color=_INK)
    _look(axes)
    _boundaries(axes, curve, named=True)
    _end_labels(axes, ends)


def _dots(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """A single point needs a mark to be seen."""
    return {"marker": "o", "markersize": 5, "clip_on": False} if np.isfinite(values).sum() == 1 else {}


def _end_labels(axes: Any, ends: list[tuple[float, str, str]]) -> None:
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
    for place, (_, text, colour) in zip(places, ordered, strict=True):
        axes.text(
            1.008, place, text, transform=axes.transAxes, color=colour, fontsize=8.5, va="center", parse_math=False
        )


def _boundaries(axes: Any, curve: _Curve, *, named: bool = False) -> None:
    spans = curve.stages
    width = curve.x_limits[1] - curve.x_limits[0]
    for place, (name, begin, end) in enumerate(spans):
        if place:
            axes.axvline(begin, color=_FAINT, linewidth=0.9, linestyle=(0, (1.5, 2)))
        room = int(78 * (end - begin) / width)  # letters that fit above the span
        if named and name and room >= 3:
            axes.annotate(
                shortened(name, room),
                (begin, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 4),
                textcoords="offset points",
                fontsize=8.5,
                color=_FAINT,
                parse_math=False,
            )


def _figures(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def _look(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.grid(color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=8, color=_FAINT, labelcolor=_FAINT)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    for place in ("top", "right"):
        axes.spines[place].set_visible(False)
    for place in ("left", "bottom"):
        axes.spines[place].set_color(_FAINT)


def _heading(figure: Any, curve: _Curve) -> None:
    style = {"va": "center", "parse_math": False}
    figure.text(0.012, 0.962, shortened(curve.title, 110), fontsize=12, weight="bold", color=_INK, **style)
    figure.text(0.012, 0.92, curve.facts, fontsize=8.5, color=_FAINT, **style)


def _page(curve: _Curve, picture: str) -> bytes:
    data = {
        "rows": [[None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in curve.rows],
        "fields": list(TrainingRow._fields),
        "baselines": curve.baselines,
        "span": list(curve.x_limits),
        "axes": [_LEFT, _RIGHT],
    }
    parts = {
        "@TITLE@": html.escape(curve.title.encode(errors="replace").decode()),
        "@PICTURE@": picture[picture.index("<svg") :],
        "@DATA@": script_json(data),
    }
    # In one pass: a title that spells a placeholder stays a title.
    return re.sub("|".join(parts), lambda match: parts[match.group()], PAGE).encode()
