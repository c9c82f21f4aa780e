"""The figures of the documents, each in both themes, drawn from results of Stretto."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from picture_theme import SMALL, TEXT, THEMES, TITLE, Theme

import stretto
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.graphs.simulator import simulate
from stretto.queues.steps import binned, changes
from stretto.reports.gantt.chart import GanttChart, make_chart
from stretto.reports.plots.colors import PALETTE, text_on
from stretto.reports.racks.belief import belief_map, sample_fields
from stretto.reports.racks.show import RackShow
from stretto.reports.racks.topology import rack_topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from stretto.reports.page.view_types import BeliefJson, Column

ROOT = Path(__file__).resolve().parent.parent
TRAINING = ROOT / "docs" / "pictures" / "training.json"


def gaps(folder: Path) -> None:
    """Draw one graph by three policies on one time axis, with the bound that none can beat."""
    graph = stretto.workloads.generate("cholesky", num_tiles=7)
    charts = []
    for policy in ("maxmin", "heft", "annealing"):
        result = stretto.plan(graph, "cpu:4,gpu:2@12GB/s", policy=policy, time_limit_s=1.0, num_threads=1)
        title = f"{policy}: {result.makespan_s * 1e3:.1f} ms, at most {result.gap:.0%} above optimal".replace("%", " %")
        charts.append(make_chart(result.problem, result.schedule, title=title, lower_bound_s=result.lower_bound_s))
    _schedules(folder, "gap", charts, 1e-3, "ms")


def disciplines(folder: Path) -> None:
    """Draw one plan under both disciplines: a device that takes a long task at once delays the critical one."""
    build = stretto.GraphBuilder("grab")
    feed, long, critical, last = (
        build.task(name, seconds) for name, seconds in (("feed", 1.0), ("long", 4.0), ("critical", 2.0), ("last", 3.0))
    )
    build.edge(feed, critical, 0.0)
    build.edge(critical, last, 0.0)
    problem = Problem.of(build.graph(), stretto.Cluster.parse("cpu:2"))
    plan = Plan(
        np.array([1, 0, 0, 1], dtype=np.int32), np.array([feed, critical, long, last], dtype=np.int32), "sequence"
    )
    charts = []
    for discipline, words in (("sequence", "cpu0 waits for critical"), ("work-conserving", "cpu0 takes long at once")):
        schedule = simulate(problem, plan, discipline=discipline)
        charts.append(make_chart(problem, schedule, title=f"{discipline}: {schedule.makespan_s:g} s, {words}"))
    _schedules(folder, "disciplines", charts, 1.0, "s")


def _schedules(folder: Path, name: str, charts: Sequence[GanttChart], unit_s: float, unit: str) -> None:
    """Draw schedules above each other on one time axis."""
    num_rows = [len(chart.rows) for chart in charts]
    height_in = 0.21 * sum(num_rows) + 0.42 * len(charts) + 0.75
    end = 1.015 * max(chart.makespan_s for chart in charts) / unit_s
    for theme in THEMES:
        figure = theme.figure(height_in)
        parts = figure.subplots(len(charts), 1, sharex=True, height_ratios=num_rows)
        figure.subplots_adjust(
            left=0.065,
            right=0.99,
            top=1 - 0.34 / height_in,
            bottom=0.72 / height_in,
            hspace=2.0 * len(charts) / sum(num_rows),
        )
        for axes, chart in zip(parts, charts, strict=True):
            _bars(theme, axes, chart, unit_s)
            axes.set_xlim(0, end)
        parts[-1].set_xlabel(f"time ({unit})", fontsize=SMALL, color=theme.faint, loc="right")
        _legend(theme, parts[-1], charts[0], height_in)
        theme.save(figure, folder, name)


def _bars(theme: Theme, axes: Axes, chart: GanttChart, unit_s: float) -> None:
    start, width = chart.start_s / unit_s, (chart.finish_s - chart.start_s) / unit_s
    colors = [chart.legend[index][1] for index in chart.color]
    axes.barh(chart.row, width, left=start, height=0.82, color=colors, edgecolor=theme.ground, linewidth=0.6)
    if len(chart.names) < 10:
        for task, text in enumerate(chart.names):
            middle = start[task] + width[task] / 2
            axes.text(
                middle, chart.row[task], text, ha="center", va="center", fontsize=TEXT, color=text_on(colors[task])
            )
    axes.set_yticks(range(len(chart.rows)), [row.name for row in chart.rows])
    axes.set_ylim(len(chart.rows) - 0.5, -0.5)
    axes.axvline(chart.makespan_s / unit_s, color=theme.ink, linewidth=1.2, linestyle=(0, (4, 2)))
    if chart.lower_bound_s is not None:
        axes.axvline(chart.lower_bound_s / unit_s, color=theme.bound, linewidth=1.6, linestyle=(0, (1.5, 1.5)))
    theme.style(axes)
    theme.title(axes, chart.title)


def _legend(theme: Theme, axes: Axes, chart: GanttChart, height_in: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(color=color, label=label) for label, color in chart.legend if label]
    handles.append(Line2D([], [], color=theme.ink, linewidth=1.2, linestyle=(0, (4, 2)), label="end"))
    if chart.lower_bound_s is not None:
        handles.append(Line2D([], [], color=theme.bound, linewidth=1.6, linestyle=(0, (1.5, 1.5)), label="lower bound"))
    place = axes.figure.transFigure  # type: ignore[union-attr]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.06, 0.02 / height_in), bbox_transform=place, ncols=8,
        frameon=False, fontsize=SMALL, labelcolor=theme.faint, handlelength=1.3, columnspacing=1.4, handletextpad=0.5,
    )  # fmt: skip


def beliefs(folder: Path) -> None:
    """Draw the load of every part of a rack at its busiest moment: what counters say, the estimate, and the truth."""
    show = RackShow("small-rack", "srpt-belief", stream=0, seed=0)
    events = [sample_fields(sample) for sample, _ in show.moments() if sample is not None]
    belief = belief_map(rack_topology(show.model), events)
    assert belief is not None
    machines = sorted({name.split("/")[0] for name in belief["resources"]})
    for theme in THEMES:
        figure = theme.figure(3.8)
        parts = figure.subplots(len(machines), 1)
        figure.subplots_adjust(left=0.13, right=0.995, top=0.92, bottom=0.14, hspace=0.62)
        for axes, machine in zip(parts, machines, strict=True):
            _tiles(theme, axes, belief, machine)
        note = "±: half the width of the 95 % interval. Counters are noisy and miss parts."
        figure.text(0.13, 0.02, note, fontsize=SMALL, color=theme.faint)
        theme.save(figure, folder, "belief")


def _tiles(theme: Theme, axes: Axes, belief: BeliefJson, machine: str) -> None:
    """Draw a machine: a column for each part, and a row each for counters, estimate and truth."""
    mean = _values(belief["mean"])
    at = int(np.argmax(np.nansum(mean, axis=0)))
    parts = [index for index, name in enumerate(belief["resources"]) if name.startswith(f"{machine}/")]
    half = (_values(belief["high"]) - _values(belief["low"]))[parts, at] / 2
    rows = np.array([_values(belief[key])[parts, at] for key in ("raw", "mean", "truth")])  # type: ignore[literal-required]
    axes.pcolormesh(rows, cmap="YlOrRd", vmin=0.0, vmax=1.0, edgecolors=theme.ground, linewidth=2.0)
    for (row, column), value in np.ndenumerate(rows):
        known = np.isfinite(value)
        text = f"{round(100 * value)} %" if known else "none"
        if row == 1:
            text += f" ±{100 * half[column]:.0f}"
        color = theme.faint if not known else "#ffffff" if value > 0.75 else "#1f2328"
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=SMALL, color=color)
    axes.set_yticks([0.5, 1.5, 2.5], ["counter says", "estimate", "real load"])
    axes.set_xticks(np.arange(len(parts)) + 0.5, [belief["resources"][index].split("/")[1] for index in parts])
    theme.style(axes)
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()
    theme.title(axes, f"machine {machine}: load of its parts at {belief['at_s'][at]:.1f} s")


def _values(rows: Sequence[Column]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)


def training(folder: Path) -> None:
    """Draw a training beside its opponents, from the curve that ``picture_training.py`` recorded."""
    kept = json.loads(TRAINING.read_text())
    episode, _, best_s, mean_s = np.array(kept["doppler"], dtype=np.float64).T
    for theme in THEMES:
        figure = theme.figure(3.1)
        axes = figure.add_axes((0.06, 0.15, 0.73, 0.73))
        axes.plot(episode, mean_s, color=PALETTE[4], linewidth=1.4)
        axes.step(episode, best_s, where="post", color=PALETTE[0], linewidth=2.4)
        ends = {"doppler, its mean plan": (mean_s[-1], PALETTE[4]), "doppler, its best plan": (best_s[-1], PALETTE[0])}
        for (name, value), color in zip(kept["others"].items(), PALETTE[1:3], strict=True):
            axes.axhline(value, color=color, linewidth=1.6, linestyle=(0, (4, 2)))
            ends[name] = (value, color)
        axes.set_xlim(0, episode[-1])
        theme.style(axes, grid="y")
        _name_ends(theme, axes, ends)
        axes.set_xlabel("plans tried while learning", fontsize=SMALL, color=theme.faint, loc="right")
        theme.title(axes, f"{kept['graph']} on {kept['cluster']}: seconds that a plan takes, lower is better")
        theme.save(figure, folder, "training")


def _name_ends(theme: Theme, axes: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """Write the name of each curve at its right end, apart from one another."""
    low, high = axes.get_ylim()
    place, last = axes.get_yaxis_transform(), -np.inf
    for name, (value, color) in sorted(ends.items(), key=lambda one: one[1][0]):
        last = max(value, last + 0.085 * (high - low))
        axes.plot([1.0, 1.025], [value, last], color=color, linewidth=1.6, transform=place, clip_on=False)
        axes.text(1.032, last, name, va="center", fontsize=SMALL, color=theme.ink, transform=place)
    axes.set_ylim(low, high)


def queues(folder: Path) -> None:
    """Draw strategies side by side on the shipped log, and the length of the queue under one of them."""
    trace = stretto.load_trace(ROOT / "examples" / "jobs.swf.gz")
    rules = (("fcfs", "easy"), ("wfp3", "easy"), ("mars", "easy"), ("saf", "easy"), ("saf", "promise"))
    results = [stretto.replay(trace, strategy=order, backfill=backfill) for order, backfill in rules]
    names = [order if backfill == "easy" else f"{order} within\npromises" for order, backfill in rules]
    slowdown = [result.metrics.bounded_slowdown.mean for result in results]
    mean_h = [float(result.wait_s.mean()) / 3600 for result in results]
    longest_d = [float(result.wait_s.max()) / 86400 for result in results]
    columns = (("mean bounded slowdown", slowdown, ""), ("mean wait", mean_h, " h"), ("longest wait", longest_d, " d"))
    for theme in THEMES:
        figure = theme.figure(2.4)
        parts = figure.subplots(1, 3, sharey=True)
        figure.subplots_adjust(left=0.105, right=0.985, top=0.86, bottom=0.06, wspace=0.1)
        for axes, (title, values, unit) in zip(parts, columns, strict=True):
            best = min(values)
            colors = [PALETTE[2] if value == best else PALETTE[0] for value in values]
            axes.barh(range(len(names)), values, height=0.68, color=colors)
            for row, value in enumerate(values):
                text = f"{value:,.1f}{unit}"
                style = {"textcoords": "offset points", "va": "center", "fontsize": TEXT, "color": theme.ink}
                axes.annotate(text, (value, row), xytext=(4, 0), **style)
            axes.set_xlim(0, 1.28 * max(values))
            axes.set_xticks([])
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.5)
            theme.style(axes)
            axes.tick_params(labelsize=TEXT, labelcolor=theme.ink)
            axes.spines["bottom"].set_visible(False)
            axes.set_title(title, loc="left", fontsize=TITLE, color=theme.ink, weight="bold", pad=6)
        theme.save(figure, folder, "queue-strategies")
        _timeline(theme, folder, results[0])


def _timeline(theme: Theme, folder: Path, result: stretto.QueueResult) -> None:
    """Draw what waits and what is in use over time."""
    end_s = float(result.end_s.max())
    procs = result.trace.num_procs.astype(np.float64)
    total = sum(pool.num_procs for pool in result.pools)
    waiting = binned(changes(result.ready_s, result.start_s, np.ones(result.trace.num_jobs)), end_s, 400)
    used = binned(changes(result.start_s, result.end_s, procs), end_s, 400)
    figure = theme.figure(3.4)
    parts = figure.subplots(2, 1, sharex=True)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.9, bottom=0.13, hspace=0.38)
    for axes, curve, scale, color, title in (
        (parts[0], waiting, 1.0, PALETTE[0], "jobs waiting"),
        (parts[1], used, total / 100, PALETTE[2], "processors in use (%)"),
    ):
        axes.stairs(curve.mean / scale, curve.edge_s / 86400, fill=True, color=color, alpha=0.75, linewidth=0)
        theme.style(axes, grid="y")
        theme.title(axes, title)
        axes.set_ylim(0, None)
    parts[1].set_xlim(0, end_s / 86400)
    parts[1].set_xlabel("time (d)", fontsize=SMALL, color=theme.faint, loc="right")
    theme.save(figure, folder, "queue-timeline")


FIGURES = (gaps, disciplines, beliefs, training, queues)
