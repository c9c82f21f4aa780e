"""Tables of a report: runs side by side, and comparisons with the intervals that seeds or windows give."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.core.units import format_gap
from stretto.errors import InvalidInput
from stretto.queues.compare import MedianInterval
from stretto.reports.decided_by import decided_by
from stretto.reports.page.view_types import RunHeader, TableJson
from stretto.reports.plots.canvas import format_number, time_unit
from stretto.runlog.record import Json

Figures = Mapping[str, Json]
Show = Callable[[float], str]


def _time(value: float) -> str:
    """Write a time as the charts of the page do: seconds up to ten minutes, minutes up to three hours."""
    unit, unit_s = time_unit(abs(value))
    return f"{format_number(value / unit_s)} {unit}"


def _percent(value: float) -> str:
    return f"{100 * value:,.1f} %"


def _usd(value: float) -> str:
    return f"${value:,.4g}" if value < 100 else f"${value:,.2f}"


#: Figure, name, how it is shown, and whether it has a best, which then is the least: a plan that keeps slow devices
#: busy for longer uses more of them, which is no merit.
_FIGURES: tuple[tuple[str, str, Show, bool], ...] = (
    ("makespan_s", "makespan", _time, True),
    ("gap", "gap", format_gap, True),
    ("mean_bounded_slowdown", "mean bounded slowdown", format_number, True),
    ("p99_bounded_slowdown", "p99 bounded slowdown", format_number, True),
    ("mean_flow_s", "mean flow time", _time, True),
    ("mean_wait_s", "mean wait", _time, True),
    ("max_wait_s", "longest wait", _time, True),
    ("mean_completion_s", "mean job completion", _time, True),
    ("p99_completion_s", "p99 job completion", _time, True),
    ("belief_error", "load estimate error", _percent, True),
    ("counter_error", "counter error", _percent, True),
    ("utilization", "utilization", _percent, False),
    ("cost_usd", "cost", _usd, True),
    ("plan_seconds", "planning time", _time, True),
    ("train_seconds", "training time", _time, True),
)


_TITLES = {
    "plan": "Plans",
    "replay": "Replays",
    "train": "Trainings",
    "run": "Executions",
    "rack": "Racks",
    "steer": "Steered queues",
}
_INTERVALS = "medians with 95 % confidence intervals (the full range where there are few runs)"


@dataclass(frozen=True)
class Table:
    """A table: a title, a note below it, heads, and rows of text; the best of each column is marked."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()

    def to_json(self) -> TableJson:
        """Return the table for a script to draw; a line break in a cell parts a value from its interval."""
        return {
            "title": self.title,
            "note": self.note,
            "heads": list(self.heads),
            "rows": [list(row) for row in self.rows],
            "best": sorted(list(place) for place in self.best),
        }

    def to_html(self) -> str:
        """Return the table as markup."""
        heads = "".join(f'<th scope="col"{_kind(k)}>{html.escape(head)}</th>' for k, head in enumerate(self.heads))
        lines = []
        labels = [f' data-label="{html.escape(head)}"' for head in self.heads]  # what a phone shows above the figure
        for r, row in enumerate(self.rows):
            marked = (_marked(cell, (r, k) in self.best) for k, cell in enumerate(row))
            cells = (f"<td{_kind(k)}{labels[k]}>{cell}</td>" for k, cell in enumerate(marked))
            lines.append(f"<tr>{''.join(cells)}</tr>")
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return (
            f"<section><header><h2>{html.escape(self.title)}</h2>{note}</header>"
            f'<div class="table" tabindex="0" role="region" aria-label="{html.escape(self.title)}">'
            f"<table><thead><tr>{heads}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table></div></section>"
        )


def _marked(cell: str, is_best: bool) -> str:
    """Return a cell as markup: the best in bold, and the second line, an interval, small."""
    text, _, interval = (html.escape(part) for part in cell.partition("\n"))
    main = f"<b>{text}</b>" if is_best else text
    return f'{main}<br><span class="faint small">{interval}</span>' if interval else main


def _kind(column: int) -> str:
    return ' class="number"' if column else ""


def runs_tables(headers: Sequence[RunHeader]) -> list[Table]:
    """Set runs of a kind side by side; those that differ by their seed only become one line with an interval."""
    tables = []
    for kind in dict.fromkeys(header["kind"] for header in headers):
        groups: dict[str, list[Figures]] = {}
        for header in headers:
            if header["kind"] == kind and header["summary"]:
                groups.setdefault(_label(header), []).append(_outcome(header))
        if sum(map(len, groups.values())) > 1:
            counted = {
                f"{label} ({len(rows)} runs)" if len(rows) > 1 else label: rows for label, rows in groups.items()
            }
            note = _INTERVALS if any(len(rows) > 1 for rows in groups.values()) else "best value of each column in bold"
            tables.append(_figures(f"{_TITLES.get(kind, kind)} side by side", note, "run", counted))
    return tables


def _outcome(header: RunHeader) -> Figures:
    """Return the figures of a run; one that was cut short has no makespan to set beside others."""
    summary: Figures = header["summary"]
    return {key: value for key, value in summary.items() if key != "makespan_s"} if is_cut(header) else summary


def is_cut(header: RunHeader) -> bool:
    """Say whether an execution ended before its last task."""
    return header["kind"] == "run" and header.get("status") in ("failed", "interrupted")


def _label(header: RunHeader) -> str:
    settings = header["settings"]
    by = decided_by(settings)
    on = settings.get("cluster") or (f"{settings['procs']} processors" if settings.get("procs") else "")
    label = " · ".join(dict.fromkeys(str(part) for part in (header["name"], by, on) if part))
    return f"{label} ({header['status']})" if is_cut(header) else label


def _figures(title: str, note: str, what: str, groups: Mapping[str, Sequence[Figures]]) -> Table:
    present = [
        figure
        for figure in _FIGURES
        if any(_is_told(row.get(figure[0]), figure[0]) for rows in groups.values() for row in rows)
    ]
    ranges = {label: {name: range_of(rows, name) for name, *_ in present} for label, rows in groups.items()}
    best = set()
    for column, (name, _, _, has_best) in enumerate(present, start=1):
        if has_best:
            goal = min(found.median for label in groups if (found := ranges[label][name]) is not None)
            best |= {(r, column) for r, label in enumerate(groups) if _is(ranges[label][name], goal)}
    rows = tuple((label, *(_cell(ranges[label][name], show) for name, _, show, _ in present)) for label in groups)
    return Table(title, note, (what, *(name for _, name, _, _ in present)), rows, frozenset(best))


def _is_told(value: object, name: str) -> bool:
    """Say whether a figure is worth a column: a gap of nothing is the best news, a cost of nothing is none."""
    return isinstance(value, (int, float)) and (value != 0 or name == "gap")


def range_of(rows: Sequence[Figures], name: str) -> MedianInterval | None:
    """Return median and interval of a figure, None where no row has it."""
    values = [float(row[name]) for row in rows if isinstance(row.get(name), (int, float))]
    return MedianInterval.of(values) if values else None


def _is(found: MedianInterval | None, goal: float) -> bool:
    return found is not None and math.isclose(found.median, goal, rel_tol=1e-9, abs_tol=1e-12)


def _cell(found: MedianInterval | None, show: Show) -> str:
    if found is None:
        return "-"
    middle, low, high = show(found.median), show(found.low), show(found.high)
    return middle if low == high else f"{middle}\n{low} to {high}"


class Compared(NamedTuple):
    """What was compared on one graph or trace: a title, a note, what the rows are, and their results by name."""

    title: str
    note: str
    what: str
    groups: Mapping[str, Sequence[Figures]]


def comparison_tables(document: Figures, name: str) -> list[Table]:
    """Return the tables of what ``stretto compare --output json`` wrote."""
    return [_figures(*one) for one in comparisons(document, name)]


def comparisons(document: Figures, name: str) -> list[Compared]:
    """Return what ``stretto compare --output json`` wrote, graph by graph, the best first."""
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(
            "is neither a plan (stretto plan --save) nor a comparison (stretto compare --output json)", source=name
        )
    if rows and "strategy" in rows[0]:
        return [_strategies(document, rows)]
    graphs: dict[str, dict[str, list[Figures]]] = {}
    for row in rows:
        if "makespan_s" in row:
            graphs.setdefault(str(row.get("graph")), {}).setdefault(str(row.get("policy")), []).append(row)
    return [_policies(graph, by_policy) for graph, by_policy in graphs.items()]


def _policies(graph: str, by_policy: dict[str, list[Figures]]) -> Compared:
    ordered = dict(
        sorted(by_policy.items(), key=lambda item: MedianInterval.of([row["makespan_s"] for row in item[1]]).median)
    )
    first = next(iter(ordered.values()))[0]
    size = f"{first.get('num_tasks', '?'):,} tasks on {first.get('num_devices', '?'):,} devices"
    seeds = max(len(rows) for rows in ordered.values())
    return Compared(graph, f"{size}; medians over {seeds} seeds" if seeds > 1 else size, "policy", ordered)


def _strategies(document: Figures, rows: Sequence[Figures]) -> Compared:
    has_fills = len({row.get("backfill") for row in rows}) > 1
    groups: dict[str, list[Figures]] = {}
    for row in rows:
        label = f"{row['strategy']}, {row.get('backfill')}" if has_fills else str(row["strategy"])
        groups.setdefault(label, []).append({key: value for key, value in row.items() if key != "makespan_s"})
    ordered = dict(
        sorted(groups.items(), key=lambda item: MedianInterval.of([r["mean_bounded_slowdown"] for r in item[1]]).median)
    )
    windows = max(len(group) for group in groups.values())
    what = f"{document.get('window_jobs', 0):,} jobs on {document.get('num_procs', 0):,} processors"
    note = f"{windows} windows of {what}; medians with 95 % intervals" if windows > 1 else what
    return Compared(f"{document.get('trace', 'trace')}: strategies", note, "strategy", ordered)
