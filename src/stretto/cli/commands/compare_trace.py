"""``stretto compare TRACE``: strategies side by side on recorded jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stretto.cli.checks import check_folder
from stretto.cli.compare_paired import check_before, paired_table
from stretto.cli.console import Output, new_table, print_answer, print_json, print_tables, remark
from stretto.cli.logged import kept
from stretto.cli.sources import load_queue, machine_named, tell_notes
from stretto.core.units import format_count, format_percent, format_waits_alike

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from stretto.api.options import TraceOptions
    from stretto.cli.commands.compare import CompareOutput
    from stretto.cli.options import MachineFlags
    from stretto.queues.compare import QueueComparison, QueueRow, QueueSummary


def compare_trace(
    source: str, strategies: list[str] | str, machine: MachineFlags, options: TraceOptions, out: CompareOutput
) -> None:
    """Replay a trace with several strategies and print them, the best first."""
    from stretto.api import compare
    from stretto.api.compare import strategies_to_compare
    from stretto.cli.interrupt import Interrupt
    from stretto.cli.progress import ProgressBar

    check_folder(out.plot)
    backfills = options.backfills
    trace = load_queue(source, strict=options.strict)
    place = machine_named(trace, machine)
    names, planned = strategies_to_compare(trace, place, strategies, options)
    check_before(out.baseline, names, out.save)
    told: dict[str, object] = {"strategies": names, "trace": source, "procs": place if isinstance(place, int) else None}
    told |= {"backfills": backfills, "num_windows": options.windows, "window_jobs": options.window_size}
    told |= options.rules() | {"rank_by": options.rank_by}
    told |= options.given()
    with kept(out.log, "compare", trace.name, told) as run, Interrupt() as interrupt:
        with ProgressBar(f"replaying {trace.name}", planned) as bar:

            def on_row(row: QueueRow) -> None:
                bar.step(f"{row.strategy}: bounded slowdown {row.metrics.bounded_slowdown.mean:,.4g}")

            comparison = compare(trace, place, strategies=names, options=options, on_row=on_row)
        if run is not None:
            from stretto.reports.record import record_comparison

            record_comparison(run, comparison.to_json(), comparison.summary()[0].strategy)
    tell_notes(comparison.notes)
    written = _draw(comparison, out.plot)
    if out.save is not None:
        written.append(str(comparison.save(out.save)))
    paired = [] if out.baseline is None else comparison.paired(out.baseline, figure=comparison.rank_by)
    if out.output is Output.JSON:
        more = {} if out.baseline is None else {"paired": [line.to_json() for line in paired]}
        print_json(comparison.to_json() | {"plots": written} | more)
    elif out.output is Output.QUIET:
        print(comparison.summary()[0].strategy)
    else:
        print_answer(comparison.answer)
        print_tables(_table(comparison), *([paired_table(paired)] if paired else []))
        for path in written:
            print(f"wrote {path}")
    if interrupt.pressed:
        remark(f"interrupted: {len(comparison.rows)} of {planned} replays are in the result")
        raise typer.Exit(130)


def _draw(comparison: QueueComparison, folder: str | None) -> list[str]:
    if folder is None:
        return []
    from stretto.reports.plots.queues import draw_comparison

    return [str(path) for path in draw_comparison(comparison, folder)]


#: Columns of waits, and their figures.
_WAITS = (("mean\nwait", "mean_wait_s"), ("p99\nwait", "p99_wait_s"), ("longest\nwait", "max_wait_s"))

_ENERGY = (("energy\nkWh", "energy_kwh"), ("CO2\nkg", "carbon_kg"))


def _table(comparison: QueueComparison) -> Table:
    lines = comparison.summary()
    windows = lines[0].num_windows
    what = (
        f"{windows} windows of {comparison.window_jobs:,} jobs" if windows > 1 else f"{comparison.window_jobs:,} jobs"
    )
    table = new_table(f"{comparison.trace}: {what} on {format_count(comparison.num_procs, 'processor')}")
    table.collapse_padding = True  # many columns
    orders = [line for line in lines if not line.is_recorded] or lines
    many_backfills = len({line.backfill for line in orders}) > 1
    priced = any(line.ranges["cost_usd"].median > 0 for line in lines)
    table.add_column("strategy", no_wrap=True)
    if many_backfills:
        table.add_column("backfill", no_wrap=True)
    names = [
        "bounded\nslowdown",
        "95 %\ninterval" if windows > 1 else "p99\nslowdown",
        *(name for name, _ in _WAITS),
        "in\nuse",
    ]
    energy = [(name, figure) for name, figure in _ENERGY if all(figure in line.ranges for line in lines)]
    for name in (*names, *(["cost"] if priced else []), *(name for name, _ in energy)):
        table.add_column(name, justify="right", no_wrap=True)
    best = _best(orders)
    columns = [format_waits_alike([line.ranges[figure].median for line in lines]) for _, figure in _WAITS]
    for line, *waits in zip(lines, *columns, strict=True):
        is_order = line in orders
        bold = best if is_order else {}
        cells = _cells(line, waits, bold, windows, priced)
        cells += [_cell(line, figure, f"{line.ranges[figure].median:,.0f}", bold) for _, figure in energy]
        table.add_row(line.strategy, *([line.backfill if is_order else ""] if many_backfills else []), *cells)
    if windows > 1:
        table.caption = "medians over windows; the interval is the slowdown's"
    return table


def _best(lines: list[QueueSummary]) -> dict[str, float]:
    least = {name: min(line.ranges[name].median for line in lines) for name in lines[0].ranges}
    return least | {"utilization": max(line.ranges["utilization"].median for line in lines)}


def _cell(line: QueueSummary, figure: str, text: str, best: dict[str, float]) -> Text:
    from rich.text import Text

    return Text(text, style="bold" if line.ranges[figure].median == best.get(figure) else "")


def _cells(line: QueueSummary, waits: list[str], best: dict[str, float], windows: int, priced: bool) -> list[Text]:
    from rich.text import Text

    def cell(figure: str, text: str) -> Text:
        return _cell(line, figure, text, best)

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
