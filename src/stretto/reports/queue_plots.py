"""Pictures of queues: what waited and ran over time, how slowdowns spread, and strategies side by side."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.units import format_wait
from stretto.errors import UnknownName
from stretto.files.load import write_atomically
from stretto.queues.compare import QueueComparison
from stretto.queues.metrics import bounded_slowdown
from stretto.queues.result import QueueResult
from stretto.queues.steps import StepCurve, binned, changes
from stretto.reports.colours import PALETTE
from stretto.reports.gantt.chart import time_unit
from stretto.reports.gantt.figure import shortened

KINDS = ("png", "svg")
_DPI = 130
_INK, _FAINT, _GRID = "#202124", "#5f6368", "#e3e5e8"
#: Columns of a curve over time; more would not be seen.
_NUM_BINS = 900
#: Of lines whose colours are used up.
_STYLES = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)))


#: Places on an axis of waits.
_WAITS_S = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 10 * 86400.0, 100 * 86400.0)


def draw_replay(result: QueueResult, folder: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write ``timeline`` and ``slowdown`` into a folder, and return the files."""
    return _save({"timeline": timeline(result), "slowdown": slowdown_curve(result)}, folder, kinds)


def draw_comparison(comparison: QueueComparison, folder: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write ``strategies`` and ``slowdowns`` into a folder, and return the files."""
    pictures = {"strategies": strategies_figure(comparison), "slowdowns": slowdown_curves(comparison)}
    return _save(pictures, folder, kinds)


def timeline(result: QueueResult) -> Any:
    """Return a figure of the queue's length and the processors in use over time."""
    unit, unit_s = time_unit(result.makespan_s)
    figure = _figure(11.0, 5.6)
    top, bottom = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.14})
    ones = np.ones(result.trace.num_jobs)
    end_s = float(result.end_s.max())
    waiting = binned(changes(result.ready_s, result.start_s, ones), end_s, _NUM_BINS)
    total = float(sum(pool.num_procs for pool in result.pools))
    used = binned(changes(result.start_s, result.end_s, result.trace.num_procs.astype(np.float64)), end_s, _NUM_BINS)
    _steps(top, waiting, unit_s, 1.0, PALETTE[0], "mean", "most")
    _steps(bottom, used, unit_s, total, PALETTE[2], None, None)
    top.set_ylabel("jobs waiting", fontsize=9, color=_INK)
    bottom.set_ylabel("processors in use", fontsize=9, color=_INK)
    top.set_ylim(0, max(1.0, float(waiting.most.max())) * 1.04)
    bottom.set_ylim(0, 1.04)
    bottom.yaxis.set_major_formatter(_percent())
    mean = float(used.mean.mean()) / total
    bottom.axhline(mean, color=_INK, linewidth=1.0, linestyle=(0, (4, 2)))
    room = 0.03 if mean < 0.85 else -0.03
    side = "bottom" if room > 0 else "top"
    bottom.text(
        0.995, mean + room / 3, f"mean {100 * mean:.1f} %", transform=bottom.get_yaxis_transform(), ha="right", va=side,
        fontsize=8, color=_INK, bbox={"facecolor": "white", "alpha": 0.75, "pad": 1.5, "linewidth": 0},
    )  # fmt: skip
    bottom.set_xlabel(f"time ({unit})", fontsize=9, color=_FAINT)
    bottom.set_xlim(0, end_s / unit_s)
    top.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    _heading(figure, _title(result), f"{result.trace.num_jobs:,} jobs on {total:,.0f} processors")
    return figure


def _steps(
    axes: Any, curve: StepCurve, unit_s: float, scale: float, colour: str, mean: str | None, most: str | None
) -> None:
    """Draw the mean of each bin as an area, and the most of each as a fine line where it is named."""
    edges = curve.edge_s / unit_s
    axes.stairs(curve.mean / scale, edges, fill=True, color=colour, alpha=0.35, label=mean, linewidth=0)
    if most is not None:
        axes.stairs(curve.most / scale, edges, color=colour, linewidth=0.8, label=most, baseline=None)
    _look(axes)


def slowdown_curve(result: QueueResult) -> Any:
    """Return a figure of how many jobs have at least a slowdown, and at least a wait."""
    figure = _figure(11.0, 4.6)
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.16})
    _survival(left, np.sort(bounded_slowdown(result)), PALETTE[0], None)
    _survival(right, np.sort(result.wait_s), PALETTE[3], None, is_wait=True)
    _wait_axis(right, float(result.wait_s.max()))
    left.set_xlabel("bounded slowdown", fontsize=9, color=_FAINT)
    right.set_xlabel("wait", fontsize=9, color=_FAINT)
    left.set_ylabel("share of jobs with more", fontsize=9, color=_INK)
    for axes, values, show in ((left, bounded_slowdown(result), _figures), (right, result.wait_s, format_wait)):
        for share in (50, 95, 99):
            value = float(np.percentile(values, share))
            _mark(axes, value, 1 - share / 100, f"p{share}  {show(value)}")
    _heading(figure, _title(result), f"{result.trace.num_jobs:,} jobs")
    return figure


def _wait_axis(axes: Any, longest_s: float) -> None:
    """Count waits in seconds, minutes, hours and days; no wait at all stands at the left, before the logarithms."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axes.set_xscale("symlog", linthresh=1.0, linscale=0.6)
    places = [one for one in _WAITS_S if one <= longest_s] or [1.0]
    axes.xaxis.set_major_locator(FixedLocator([0.0, *places]))
    axes.xaxis.set_major_formatter(FixedFormatter(["0 s", *(format_wait(one).replace(".0", "") for one in places)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(-0.15, max(longest_s, 1.0) * 1.6)


def _mark(axes: Any, value: float, share: float, text: str) -> None:
    """Name a point of a falling curve: in the empty corner below it, or above it where that is the edge."""
    axes.plot([value], [share], marker="o", markersize=4, color=_INK, linewidth=0)
    above, is_right = share >= 0.5, share >= 0.5 or value == 0.0  # left of no wait is the edge
    axes.annotate(
        text,
        (value, share),
        xytext=(6 if is_right else -7, 4 if above else -3),
        textcoords="offset points",
        ha="left" if is_right else "right",
        va="bottom" if above else "top",
        fontsize=8,
        color=_INK,
    )


def _figures(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def slowdown_curves(comparison: QueueComparison) -> Any:
    """Return a figure of the strategies' slowdown distributions, over all windows."""
    figure = _figure(11.0, 5.6)
    axes = figure.add_axes((0.07, 0.1, 0.72, 0.76))
    lines = comparison.summary()
    many = len({line.backfill for line in lines}) > 1
    for place, line in enumerate(lines):
        rows = comparison.of(line.strategy, line.backfill)
        colour, style = PALETTE[place % len(PALETTE)], _STYLES[place // len(PALETTE) % len(_STYLES)]
        label = f"{line.strategy}, {line.backfill}" if many else line.strategy
        _survival(axes, np.sort(np.concatenate([row.slowdowns for row in rows])), colour, label, style)
    axes.set_xlabel("bounded slowdown", fontsize=9, color=_FAINT)
    axes.set_ylabel("share of jobs with more", fontsize=9, color=_INK)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.02))
    _heading(figure, f"{comparison.trace}: slowdowns by strategy, the least mean first", _jobs(comparison))
    return figure


def _survival(
    axes: Any, values: Floats, colour: str, label: str | None, style: Any = "-", *, is_wait: bool = False
) -> None:
    """Draw the share of values above each value, both axes logarithmic: the tail is what matters.

    Waits have an axis of their own (``_wait_axis``): they may be nothing, which has no logarithm.
    """
    share = 1.0 - np.arange(len(values)) / len(values)
    below = np.concatenate([values[:1], values[:-1]])  # all have at least the first, none has more than the last
    axes.step(below, share, where="post", color=colour, linewidth=1.4, label=label, linestyle=style)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(_percent())
    if not is_wait:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain())
    _look(axes)


def strategies_figure(comparison: QueueComparison) -> Any:
    """Return a figure of the strategies: slowdown with its interval, and what it costs in the longest wait."""
    lines = comparison.summary()
    many = len({line.backfill for line in lines}) > 1
    figure = _figure(11.0, 1.7 + 0.28 * len(lines))
    height = 1.7 + 0.28 * len(lines)
    bottom, top = 0.6 / height, 1 - 0.78 / height
    left = figure.add_axes((0.14, bottom, 0.40, top - bottom))
    right = figure.add_axes((0.58, bottom, 0.40, top - bottom), sharey=left)
    places = np.arange(len(lines))
    for axes, figure_name, colour, scale in (
        (left, "mean_bounded_slowdown", PALETTE[0], 1.0),
        (right, "max_wait_s", PALETTE[3], 86400.0),
    ):
        ranges = [line.ranges[figure_name] for line in lines]
        middle = np.array([value.median for value in ranges]) / scale
        ends = np.array([[value.low, value.high] for value in ranges]) / scale
        axes.hlines(places, ends[:, 0], ends[:, 1], color=colour, alpha=0.45, linewidth=5)
        axes.plot(middle, places, linestyle="", marker="o", markersize=6, color=colour)
        least = float(middle.min())
        axes.axvline(least, color=_FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        if float(ends.max()) > 8 * max(least, 1e-9) and least > 0:
            axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_plain())
        axes.xaxis.set_minor_formatter(_plain_if_few(axes))
        _look(axes)
    left.set_yticks(places, [f"{line.strategy}, {line.backfill}" if many else line.strategy for line in lines])
    left.tick_params(axis="y", length=0, labelsize=9, labelcolor=_INK)
    right.tick_params(axis="y", length=0, labelleft=False)
    left.set_ylim(len(lines) - 0.5, -0.5)
    left.set_xlabel("mean bounded slowdown", fontsize=9, color=_FAINT)
    right.set_xlabel("longest wait (d)", fontsize=9, color=_FAINT)
    _heading(figure, f"{comparison.trace}: strategies", _what(comparison))
    return figure


def _jobs(comparison: QueueComparison) -> str:
    windows = comparison.num_windows
    jobs = f"{comparison.window_jobs:,} jobs on {comparison.num_procs:,} processors"
    return f"{windows} windows of {jobs}" if windows > 1 else jobs


def _what(comparison: QueueComparison) -> str:
    return _jobs(comparison) + ("; medians, and 95 % intervals" if comparison.num_windows > 1 else "")


def _title(result: QueueResult) -> str:
    spec = result.spec
    return f"{result.trace.name} by {spec.get('strategy', '?')}, backfill {spec.get('backfill', '?')}"


def _figure(width_in: float, height_in: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), dpi=_DPI, facecolor="white")
    figure.subplots_adjust(left=0.07, right=0.985, bottom=0.48 / height_in, top=1 - 0.72 / height_in)
    return figure


def _look(axes: Any) -> None:
    axes.grid(color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=3, labelsize=8, color=_FAINT, labelcolor=_FAINT)
    axes.tick_params(which="minor", length=2)
    for place in ("top", "right"):
        axes.spines[place].set_visible(False)
    for place in ("left", "bottom"):
        axes.spines[place].set_color(_FAINT)


def _heading(figure: Any, title: str, facts: str) -> None:
    height_in = figure.get_size_inches()[1]
    style = {"va": "center", "parse_math": False}
    figure.text(0.012, 1 - 0.22 / height_in, shortened(title, 110), fontsize=12, weight="bold", color=_INK, **style)
    figure.text(0.012, 1 - 0.46 / height_in, facts, fontsize=8.5, color=_FAINT, **style)


def _percent() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{100 * value:.4g} %")


def _plain() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: _figures(value))


def _plain_if_few(axes: Any) -> Any:
    """Label the ticks between powers of ten where there are hardly any powers of ten to be seen."""
    from matplotlib.ticker import LogFormatter, NullFormatter

    if axes.get_xscale() != "log":
        return NullFormatter()

    class Few(LogFormatter):
        def __call__(self, value: float, position: Any = None) -> str:
            return f"{value:,.4g}" if super().__call__(value, position) else ""

    return Few(minor_thresholds=(1.5, 0.4))


def _save(pictures: dict[str, Any], folder: str | Path, kinds: Sequence[str]) -> list[Path]:
    import matplotlib

    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind of picture", kind, KINDS)
    paths = []
    for name, figure in pictures.items():
        for kind in kinds:
            buffer = io.BytesIO()
            # The same replay gives the same file: no date inside, no random ids, text stays text.
            with matplotlib.rc_context({"svg.hashsalt": "stretto", "svg.fonttype": "none"}), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Glyph .* missing from font")
                figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
            path = Path(folder) / f"{name}.{kind}"
            write_atomically(path, buffer.getvalue())
            paths.append(path)
    return paths
