"""``stretto compare TRACE``: strategies side by side on recorded jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from stretto.cli.logged import kept
from stretto.cli.terminal.console import Output, new_table, print_json, remark, stdout
from stretto.core.units import format_count, format_percent, format_waits_alike

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from stretto.core.trace import Trace
    from stretto.queues.compare import QueueComparison, QueueRow, QueueSummary


def compare_queue(
    source: str,
    strategies: list[str] | None,
    backfills: list[str],
    *,
    procs: int | None,
    pools: str | None,
    num_windows: int,
    window_size: int,
    strict: bool,
    plot: str | None,
    output: Output,
    log: bool = False,
    **rules: Any,
) -> None:
    """Replay a trace with several strategies (None = all) and print them, the best first."""
    from stretto.cli.queue_sources import check_folder, load_queue, machine_of, tell_notes
    from stretto.cli.terminal.interrupt import Interrupt
    from stretto.queues.compare import pairs_of, usable_strategies

    check_folder(plot)
    trace = load_queue(source, strict=strict)
    machine = machine_of(trace, procs, pools)
    names = usable_strategies(trace, machine, backfills=backfills, **rules) if strategies is None else strategies
    planned = len(pairs_of(names, backfills)) * max(1, num_windows)
    options = {"backfills": backfills, "num_windows": num_windows, "window_jobs": window_size, **rules}
    told = {"strategies": names, "trace": source, "procs": machine if isinstance(machine, int) else None, **options}
    with kept(log, "compare", trace.name, told) as run, Interrupt() as interrupt:
        comparison = _run(trace, machine, names, planned, options)
        if run is not None:
            from stretto.reports.record import record_comparison

            record_comparison(run, comparison.to_json(), comparison.summary()[0].strategy)
    tell_notes(comparison.notes)
    written = _draw(comparison, plot)
    if output is Output.JSON:
        print_json(comparison.to_json() | {"plots": written})
    elif output is Output.QUIET:
        print(comparison.summary()[0].strategy)
    else:
        stdout().print(_table(comparison))
        for path in written:
            print(f"wrote {path}")
    if interrupt.pressed:
        remark(f"interrupted: {len(comparison.rows)} of {planned} replays are in the result")
        raise typer.Exit(130)


def _run(trace: Trace, machine: Any, names: list[str], planned: int, options: dict[str, Any]) -> QueueComparison:
    from stretto.cli.terminal.bar import ProgressBar
    from stretto.queues.compare import compare_strategies

    with ProgressBar(f"replaying {trace.name}", planned) as bar:

        def on_row(row: QueueRow) -> None:
            bar.step(f"{row.strategy}: bounded slowdown {row.metrics.bounded_slowdown.mean:,.4g}")

        return compare_strategies(trace, machine, names, on_row=on_row, **options)


def _draw(comparison: QueueComparison, folder: str | None) -> list[str]:
    if folder is None:
        return []
    from stretto.reports.queue_plots import draw_comparison

    return [str(path) for path in draw_comparison(comparison, folder)]


#: Columns of waits, and their figures.
_WAITS = (("mean\nwait", "mean_wait_s"), ("p99\nwait", "p99_wait_s"), ("max\nwait", "max_wait_s"))


def _table(comparison: QueueComparison) -> Table:
    lines = comparison.summary()
    windows = lines[0].num_windows
    what = (
        f"{windows} windows of {comparison.window_jobs:,} jobs" if windows > 1 else f"{comparison.window_jobs:,} jobs"
    )
    table = new_table(f"{comparison.trace}: {what} on {format_count(comparison.num_procs, 'processor')}")
    table.collapse_padding = True  # many columns
    many_backfills = len({line.backfill for line in lines}) > 1
    priced = any(line.ranges["cost_usd"].median > 0 for line in lines)
    table.add_column("strategy", no_wrap=True)
    if many_backfills:
        table.add_column("backfill", no_wrap=True)
    names = ["bounded\nslowdown", "95 %" if windows > 1 else "its p99", *(name for name, _ in _WAITS), "use"]
    for name in (*names, *(["cost"] if priced else [])):
        table.add_column(name, justify="right", no_wrap=True)
    best = _best(lines)
    columns = [format_waits_alike([line.ranges[figure].median for line in lines]) for _, figure in _WAITS]
    for line, *waits in zip(lines, *columns, strict=True):
        cells = _cells(line, waits, best, windows, priced)
        table.add_row(line.strategy, *([line.backfill] if many_backfills else []), *cells)
    if windows > 1:
        table.caption = "medians over windows, and the interval of the first; the best of each column in bold"
    return table


def _best(lines: list[QueueSummary]) -> dict[str, float]:
    least = {name: min(line.ranges[name].median for line in lines) for name in lines[0].ranges}
    return least | {"utilization": max(line.ranges["utilization"].median for line in lines)}


def _cells(line: QueueSummary, waits: list[str], best: dict[str, float], windows: int, priced: bool) -> list[Text]:
    from rich.text import Text

    def cell(figure: str, text: str) -> Text:
        return Text(text, style="bold" if line.ranges[figure].median == best[figure] else "")

    first = line.ranges["mean_bounded_slowdown"]
    cells = [cell("mean_bounded_slowdown", _number(first.median))]
    if windows > 1:
        cells.append(Text(f"{_number(first.low)}..{_number(first.high)}"))
    else:
        cells.append(cell("p99_bounded_slowdown", _number(line.ranges["p99_bounded_slowdown"].median)))
    cells += [cell(figure, wait) for (_, figure), wait in zip(_WAITS, waits, strict=True)]
    cells.append(cell("utilization", format_percent(line.ranges["utilization"].median)))
    if priced:
        cells.append(cell("cost_usd", f"${line.ranges['cost_usd'].median:,.2f}"))
    return cells


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"
