"""Policies side by side on each instance: the median of what they reached, with an interval over seeds or windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.core.answers.seen import Standing, standings_answer
from stretto.reports.decided_by import decided_by
from stretto.reports.page.tables import Compared, Figures, is_cut, range_of
from stretto.reports.page.view_types import RunHeader, SpreadJson

#: What policies are compared by, the first that a result has; name and unit.
_FIGURES = {
    "mean_bounded_slowdown": ("mean bounded slowdown", ""),  # replays have a makespan, too, which says little
    "makespan_s": ("makespan", "s"),
    "mean_completion_s": ("mean job completion", "s"),
    "mean_wait_s": ("mean wait", "s"),
}


def spreads(compared: Sequence[Compared]) -> list[SpreadJson]:
    """Return a chart per instance on which at least two policies have a result."""
    return [chart for one in compared if (chart := _spread(one)) is not None and len(chart["rows"]) > 1]


def compared_answer(compared: Sequence[Compared]) -> str:
    """Say in one sentence which policy is best."""
    charts = [chart for one in compared if (chart := _spread(one)) is not None]
    rows = ([(row["name"], row["middle"]) for row in chart["rows"]] for chart in charts)
    return standings_answer(
        [Standing(chart["title"], chart["figure"], chart["unit"], one) for chart, one in zip(charts, rows, strict=True)]
    )


def _spread(one: Compared) -> SpreadJson | None:
    results = [row for rows in one.groups.values() for row in rows]
    figure = next((name for name in _FIGURES if any(isinstance(row.get(name), float | int) for row in results)), None)
    if figure is None:
        return None
    name, unit = _FIGURES[figure]
    found = {label: range_of(rows, figure) for label, rows in one.groups.items()}
    known = sorted(((label, value) for label, value in found.items() if value is not None), key=lambda it: it[1].median)
    return {
        "title": one.title,
        "note": one.note,
        "figure": name,
        "unit": unit,
        "rows": [
            {"name": label, "count": len(one.groups[label]), "low": it.low, "middle": it.median, "high": it.high}
            for label, it in known
        ],
    }


def compared_runs(headers: Sequence[RunHeader]) -> list[Compared]:
    """Group runs by what they worked on; runs that differ by their seed alone are results of one policy."""
    instances: dict[str, dict[str, list[Figures]]] = {}
    for header in headers:
        by = decided_by(header["settings"])
        if by and header["summary"] and not is_cut(header):
            instances.setdefault(_instance(header), {}).setdefault(by, []).append(header["summary"])
    return [Compared(title, "", "policy", groups) for title, groups in instances.items()]


def _instance(header: RunHeader) -> str:
    settings: Mapping[str, object] = header["settings"]
    on = settings.get("cluster") or (f"{settings['procs']} processors" if settings.get("procs") else "")
    return " on ".join(str(part) for part in (header["name"], on) if part)
