"""The tables of the page: policies, groups, and who gains and who loses."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from stretto.core.units import format_percent, format_wait
from stretto.queues.explain.names import JobNames
from stretto.queues.metrics import Spread
from stretto.reports.queues.changes import GroupChange, JobChange, PolicyChange
from stretto.reports.queues.groups import Grouping
from stretto.reports.queues.outcomes import CANDIDATE, PRESENT, RECORDED, PolicyComparison, PolicyOutcome
from stretto.reports.queues.svg import bar

_ROLE = {RECORDED: "what really happened", PRESENT: "present policy", CANDIDATE: ""}


def _table(head: Sequence[tuple[str, bool]], rows: Sequence[str]) -> str:
    """Return a table that scrolls on a narrow screen; the second of each heading says whether it is of numbers."""
    kind = {True: ' class="number"', False: ""}
    cells = "".join(f"<th{kind[number]}>{html.escape(name)}</th>" for name, number in head)
    holder = '<div class="table" tabindex="0" role="region" aria-label="Table">'
    return f"{holder}<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'


def _name(one: PolicyOutcome) -> str:
    role = f"<br><small>{_ROLE[one.role]}</small>" if _ROLE[one.role] else ""
    return f"{html.escape(one.name)}{role}"


def policies_table(found: PolicyComparison) -> str:
    """Return one row per policy."""
    with_energy = any(one.energy_kwh is not None for one in found.policies)
    with_carbon = any(one.carbon_kg is not None for one in found.policies)
    head = [("policy", False), ("", False), ("mean wait", True), ("p95", True), ("p99", True), ("longest", True)]
    head += [("mean bounded slowdown", True), ("utilization", True)]
    head += [("energy", True)] if with_energy else []
    head += [("carbon", True)] if with_carbon else []
    most = max(one.waits.mean for one in found.policies)
    rows = []
    for one in found.policies:
        waits = one.waits
        cells = [_spread_cells(waits, most)]
        cells += [_number(f"{one.mean_bounded_slowdown:,.1f}"), _number(format_percent(one.utilization))]
        cells += [_number(_or_none(one.energy_kwh, "kWh"))] if with_energy else []
        cells += [_number(_or_none(one.carbon_kg, "kg CO2"))] if with_carbon else []
        kind = ' class="best"' if one is found.best else ""
        rows.append(f"<tr{kind}><td>{_name(one)}</td>{''.join(cells)}</tr>")
    return _table(head, rows)


def _or_none(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _wait_with_bar(value: float, most: float) -> str:
    return f'<td class="meter-cell">{bar(value / most if most > 0 else 0.0)}</td>{_number(format_wait(value))}'


def grouping_table(found: PolicyComparison, grouping: Grouping) -> str:
    """Return the waits of each group by each policy."""
    head = [(grouping.key if grouping.key != "size" else "processors", False), ("jobs", True), ("policy", False)]
    head += [("", False), ("mean wait", True), ("p95", True), ("p99", True), ("longest", True)]
    rows = []
    span = f' rowspan="{len(found.policies)}"'
    for group in grouping.groups:
        spreads = [_spread(one, group.chosen) for one in found.policies]
        most = max((one.mean for one in spreads if one is not None), default=0.0)
        for i, (one, spread) in enumerate(zip(found.policies, spreads, strict=True)):
            first, kind = "", ""
            if i == 0:
                first = f'<td class="group"{span}>{html.escape(group.name)}</td>'
                first += f'<td class="number"{span}>{group.count:,}</td>'
                kind = ' class="first"'
            told = '<td colspan="5" class="faint">not recorded</td>'
            if spread is not None:
                told = _spread_cells(spread, most)
            rows.append(f"<tr{kind}>{first}<td>{html.escape(one.name)}</td>{told}</tr>")
    return _table(head, rows)


def _spread(one: PolicyOutcome, chosen: np.ndarray) -> Spread | None:
    waits = one.wait_s[chosen]
    waits = waits[np.isfinite(waits)]
    return Spread.of(waits) if len(waits) else None


def _spread_cells(spread: Spread, most: float) -> str:
    rest = "".join(_number(format_wait(value)) for value in (spread.p95, spread.p99, spread.max))
    return _wait_with_bar(spread.mean, most) + rest


def change_table(key: str, rows: Sequence[GroupChange]) -> str:
    """Return the hours that each group saves and loses."""
    head = [(key, False), ("jobs", True), ("earlier", True), ("later", True)]
    head += [("hours saved", True), ("hours lost", True), ("net", True)]
    lines = []
    for one in rows:
        kind = "good" if one.net_hours > 0 else "bad" if one.net_hours < 0 else ""
        cells = [f"{one.num_jobs:,}", f"{one.num_earlier:,}", f"{one.num_later:,}"]
        cells += [f"{one.hours_saved:,.0f}", f"{one.hours_lost:,.0f}"]
        net = f'<td class="number {kind}">{one.net_hours:+,.0f} h</td>'
        lines.append(f"<tr><td>{html.escape(one.name)}</td>{''.join(map(_number, cells))}{net}</tr>")
    return _table(head, lines)


def jobs_table(names: JobNames, jobs: Sequence[JobChange], change: PolicyChange) -> str:
    """Return the jobs that gain or lose the most."""
    if not jobs:
        return '<p class="faint">None by more than a minute.</p>'
    with_users = names.trace.user is not None
    head = [("job", False), *([("user", False)] if with_users else []), ("processors", True)]
    head += [(f"wait, {change.before}", True), (f"wait, {change.after}", True), ("difference", True)]
    lines = []
    for one in jobs:
        user = names.user(one.row)
        kind, word = ("good", "earlier") if one.saved_s > 0 else ("bad", "later")
        cells = [f"{int(names.trace.num_procs[one.row]):,}", format_wait(one.before_s), format_wait(one.after_s)]
        who = f"<td>{html.escape(str(names.of(one.row)))}</td>"
        who += f"<td>{html.escape(user or 'not known')}</td>" if with_users else ""
        told = f'<td class="number {kind}">{format_wait(abs(one.saved_s))} {word}</td>'
        lines.append(f"<tr>{who}{''.join(map(_number, cells))}{told}</tr>")
    return _table(head, lines)
