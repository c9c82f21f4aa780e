"""Pictures of queues: what waited and ran over time, how slowdowns spread, and strategies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stretto.core.csr import Floats
from stretto.core.units import format_wait
from stretto.errors import UnknownName
from stretto.files.load import write_atomically
from stretto.queues.compare import QueueComparison
from stretto.queues.metrics import bounded_slowdown
from stretto.queues.result import QueueResult
from stretto.queues.steps import StepCurve, binned, changes
from stretto.reports.plots.canvas import (
    DASHED,
    FAINT,
    INK,
    format_number,
    format_share,
    heading,
    new_figure,
    saved,
    style_axes,
    time_unit,
)
from stretto.reports.plots.colors import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

KINDS = ("png", "svg")
#: Columns of a curve over time; more would not be seen.
_NUM_BINS = 900
LineStyle: TypeAlias = str | tuple[int, tuple[float, float]]
#: Line styles of strategies beyond the last color.
_STYLES: tuple[LineStyle, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)))
#: Ticks on an axis of waits.
_WAITS_S = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 10 * 86400.0, 100 * 86400.0)


def draw_replay(result: QueueResult, folder: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write ``timeline`` and ``slowdown`` into a folder, and return the files."""
    return _save({"timeline": timeline(result), "slowdown": slowdown_curve(result)}, folder, kinds)


def draw_comparison(comparison: QueueComparison, folder: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write ``strategies`` and ``slowdowns`` into a folder, and return the files."""
    pictures = {"strategies": strategies_figure(comparison), "slowdowns": slowdown_curves(comparison)}
    return _save(pictures, folder, kinds)


def timeline(result: QueueResult) -> Figure:
    """Return a figure of the queue's length and the processors in use over time."""
    unit, unit_s = time_unit(result.makespan_s)
    figure = _figure(11.0, 5.6)
    top, bottom = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.14})
    ones = np.ones(result.trace.num_jobs)
    end_s = float(result.end_s.max())
    waiting = binned(changes(result.ready_s, result.start_s, ones), end_s, _NUM_BINS)
    total = float(sum(pool.num_procs for pool in result.pools))
    used = binned(changes(result.start_s, result.end_s, result.trace.num_procs.astype(np.float64)), end_s, _NUM_BINS)
    _steps(top, waiting, unit_s, 1.0, PALETTE[0], "mean", "maximum")
    _steps(bottom, used, unit_s, total, PALETTE[2], None, None)
    top.set_ylabel("jobs waiting", fontsize=9, color=INK)
    bottom.set_ylabel("processors in use", fontsize=9, color=INK)
    top.set_ylim(0, max(1.0, float(waiting.most.max())) * 1.04)
    bottom.set_ylim(0, 1.04)
    bottom.yaxis.set_major_formatter(format_share)
    mean = float(used.mean.mean()) / total
    bottom.axhline(mean, color=INK, linewidth=1.0, linestyle=DASHED)
    room = 0.03 if mean < 0.85 else -0.03
    side = "bottom" if room > 0 else "top"
    bottom.text(
        0.995, mean + room / 3, f"mean {100 * mean:.1f} %", transform=bottom.get_yaxis_transform(), ha="right", va=side,
        fontsize=8, color=INK, bbox={"facecolor": "white", "alpha": 0.75, "pad": 1.5, "linewidth": 0},
    )  # fmt: skip
    bottom.set_xlabel(f"time ({unit})", fontsize=9, color=FAINT)
    bottom.set_xlim(0, end_s / unit_s)
    top.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    heading(figure, _title(result), f"{result.trace.num_jobs:,} jobs on {total:,.0f} processors")
    return figure


def _steps(
    axes: Axes, curve: StepCurve, unit_s: float, scale: float, color: str, mean: str | None, most: str | None
) -> None:
    """Draw the mean of each bin as an area, and the most of each as a fine line where it is named."""
    edges = curve.edge_s / unit_s
    axes.stairs(curve.mean / scale, edges, fill=True, color=color, alpha=0.35, label=mean, linewidth=0)
    if most is not None:
        axes.stairs(curve.most / scale, edges, color=color, linewidth=0.8, label=most, baseline=None)
    style_axes(axes)


def slowdown_curve(result: QueueResult) -> Figure:
    """Return a figure of how many jobs have at least a slowdown, and at least a wait."""
    figure = _figure(11.0, 4.6)
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.16})
    _survival(left, np.sort(bounded_slowdown(result)), PALETTE[0], None)
    _survival(right, np.sort(result.wait_s), PALETTE[3], None, is_wait=True)
    _wait_axis(right, float(result.wait_s.max()))
    left.set_xlabel("bounded slowdown", fontsize=9, color=FAINT)
    right.set_xlabel("wait", fontsize=9, color=FAINT)
    left.set_ylabel("share of jobs above", fontsize=9, color=INK)
    for axes, values, show in ((left, bounded_slowdown(result), format_number), (right, result.wait_s, format_wait)):
        for share in (50, 95, 99):
            value = float(np.percentile(values, share))
            _mark(axes, value, 1 - share / 100, f"p{share}  {show(value)}")
    heading(figure, _title(result), f"{result.trace.num_jobs:,} jobs")
    return figure


def _wait_axis(axes: Axes, longest_s: float) -> None:
    """Count waits in seconds, minutes, hours and days; no wait at all stands at the left, before the logarithms."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axes.set_xscale("symlog", linthresh=1.0, linscale=0.6)
    places = [one for one in _WAITS_S if one <= longest_s] or [1.0]
    axes.xaxis.set_major_locator(FixedLocator([0.0, *places]))
    axes.xaxis.set_major_formatter(FixedFormatter(["0 s", *(format_wait(one).replace(".0", "") for one in places)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(-0.15, max(longest_s, 1.0) * 1.6)


def _mark(axes: Axes, value: float, share: float, text: str) -> None:
    """Name a point of a falling curve: in the empty corner below it, or above it where that is the edge."""
    axes.plot([value], [share], marker="o", markersize=4, color=INK, linewidth=0)
    above, is_right = share >= 0.5, share >= 0.5 or value == 0.0  # left of no wait is the edge
    axes.annotate(
        text,
        (value, share),
        xytext=(6 if is_right else -7, 4 if above else -3),
        textcoords="offset points",
        ha="left" if is_right else "right",
        va="bottom" if above else "top",
        fontsize=8,
        color=INK,
    )


def slowdown_curves(comparison: QueueComparison) -> Figure:
    """Return a figure of the strategies' slowdown distributions, over all windows."""
    figure = _figure(11.0, 5.6)
    axes = figure.add_axes((0.07, 0.1, 0.72, 0.76))
    lines = comparison.summary()
    many = len({line.backfill for line in lines}) > 1
    for place, line in enumerate(lines):
        rows = comparison.of(line.strategy, line.backfill)
        color, style = PALETTE[place % len(PALETTE)], _STYLES[place // len(PALETTE) % len(_STYLES)]
        label = f"{line.strategy}, {line.backfill}" if many else line.strategy
        _survival(axes, np.sort(np.concatenate([row.slowdowns for row in rows])), color, label, style)
    axes.set_xlabel("bounded slowdown", fontsize=9, color=FAINT)
    axes.set_ylabel("share of jobs above", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.02))
    heading(figure, f"{comparison.trace}: slowdown by strategy, lowest mean first", _jobs(comparison))
    return figure


def _survival(
    axes: Axes, values: Floats, color: str, label: str | None, style: LineStyle = "-", *, is_wait: bool = False
) -> None:
    """Draw the share of values above each value, both axes logarithmic: the tail is what matters.

    Waits have an axis of their own (``_wait_axis``): they may be nothing, which has no logarithm.
    """
    share = 1.0 - np.arange(len(values)) / len(values)
    below = np.concatenate([values[:1], values[:-1]])  # all have at least the first, none has more than the last
    axes.step(below, share, where="post", color=color, linewidth=1.4, label=label, linestyle=style)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(format_share)
    if not is_wait:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain())
    style_axes(axes)


def strategies_figure(comparison: QueueComparison) -> Figure:
    """Return a figure of the strategies: slowdown with its interval, and what it costs in the longest wait."""
    lines = comparison.summary()
    many = len({line.backfill for line in lines}) > 1
    figure = _figure(11.0, 1.7 + 0.28 * len(lines))
    height = 1.7 + 0.28 * len(lines)
    bottom, top = 0.6 / height, 1 - 0.78 / height
    left = figure.add_axes((0.14, bottom, 0.40, top - bottom))
    right = figure.add_axes((0.58, bottom, 0.40, top - bottom), sharey=left)
    places = np.arange(len(lines))
    for axes, figure_name, color, scale in (
        (left, "mean_bounded_slowdown", PALETTE[0], 1.0),
        (right, "max_wait_s", PALETTE[3], 86400.0),
    ):
        ranges = [line.ranges[figure_name] for line in lines]
        middle = np.array([value.median for value in ranges]) / scale
        ends = np.array([[value.low, value.high] for value in ranges]) / scale
        axes.hlines(places, ends[:, 0], ends[:, 1], color=color, alpha=0.45, linewidth=5)
        axes.plot(middle, places, linestyle="", marker="o", markersize=6, color=color)
        least = float(middle.min())
        axes.axvline(least, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        if float(ends.max()) > 8 * max(least, 1e-9) and least > 0:
            axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain())
        axes.xaxis.set_minor_formatter(_plain_if_few(axes))
        style_axes(axes)
    left.set_yticks(places, [f"{line.strategy}, {line.backfill}" if many else line.strategy for line in lines])
    left.tick_params(axis="y", length=0, labelsize=9, labelcolor=INK)
    right.tick_params(axis="y", length=0, labelleft=False)
    left.set_ylim(len(lines) - 0.5, -0.5)
    left.set_xlabel("mean bounded slowdown", fontsize=9, color=FAINT)
    right.set_xlabel("longest wait (d)", fontsize=9, color=FAINT)
    heading(figure, f"{comparison.trace}: strategies", _what(comparison))
    return figure


def _jobs(comparison: QueueComparison) -> str:
    windows = comparison.num_windows
    jobs = f"{comparison.window_jobs:,} jobs on {comparison.num_procs:,} processors"
    return f"{windows} windows of {jobs}" if windows > 1 else jobs


def _what(comparison: QueueComparison) -> str:
    return _jobs(comparison) + ("; medians with 95 % intervals" if comparison.num_windows > 1 else "")


def _title(result: QueueResult) -> str:
    spec = result.spec
    return f"{result.trace.name} by {spec.get('strategy', '?')}, backfill {spec.get('backfill', '?')}"


def _figure(width_in: float, height_in: float) -> Figure:
    figure = new_figure(width_in, height_in)
    figure.subplots_adjust(left=0.07, right=0.985, bottom=0.48 / height_in, top=1 - 0.72 / height_in)
    return figure


def _plain() -> Formatter:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: format_number(value))


def _plain_if_few(axes: Axes) -> Formatter:
    """Label the ticks between powers of ten where there are hardly any powers of ten to be seen."""
    from matplotlib.ticker import LogFormatter, NullFormatter

    if axes.get_xscale() != "log":
        return NullFormatter()

    class Few(LogFormatter):
        def __call__(self, value: float, position: int | None = None) -> str:
            return f"{value:,.4g}" if super().__call__(value, position) else ""

    return Few(minor_thresholds=(1.5, 0.4))


def _save(pictures: Mapping[str, Figure], folder: str | Path, kinds: Sequence[str]) -> list[Path]:
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind of picture", kind, KINDS)
    paths = []
    for name, figure in pictures.items():
        for kind in kinds:
            path = Path(folder) / f"{name}.{kind}"
            write_atomically(path, saved(figure, kind))
            paths.append(path)
    return paths
