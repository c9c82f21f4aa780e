"""Curves of a training: what was measured against where it stood, and what belongs into one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stretto.reports.events import number_or
from stretto.reports.strict_json import drawn

#: Fields of a row that say where it stands, not what was measured.
_PLACES = ("episode", "generation", "iteration", "epoch", "update", "step")
#: Figures on one scale, which belong into one chart.
_OBJECTIVE = ("train", "validation", "best_validation")


def training_json(rows: Sequence[Mapping[str, Any]], baselines: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the curves of a training: what is measured against what it stands at."""
    if not rows:
        return None
    place = next((name for name in _PLACES if name in rows[0]), None)
    rows = _gone_back(rows, place)
    skip = (*_PLACES, "seconds")
    names = [key for key, value in rows[-1].items() if key not in skip and not isinstance(value, (str, list, dict))]
    at = [number_or(row.get(place), number) if place else number for number, row in enumerate(rows)]
    return {
        "x_name": f"{place}s" if place else "rows",
        "x": drawn(at),
        "seconds": drawn([number_or(row.get("seconds"), float("nan")) for row in rows]),
        "stage": [str(row.get("stage", "")) for row in rows],
        "series": [
            {"name": name, "values": drawn([number_or(row.get(name), float("nan")) for row in rows])} for name in names
        ],
        "groups": _groups(names),
        "baselines": dict(baselines),
    }


def _gone_back(rows: Sequence[Mapping[str, Any]], place: str | None) -> Sequence[Mapping[str, Any]]:
    """Leave out what was done again: a training that died goes on from its last checkpoint, behind its last row."""
    if place is None:
        return rows
    kept: list[Mapping[str, Any]] = []
    for row in rows:
        while kept and number_or(kept[-1].get(place), 0.0) >= number_or(row.get(place), 0.0):
            kept.pop()
        kept.append(row)
    return kept


def _groups(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is drawn together: times, the parts of an objective, and everything else by itself."""
    times = [name for name in names if name.endswith("_s") and name != "jobs_per_s"]
    objective = [name for name in _OBJECTIVE if name in names]
    groups: list[dict[str, Any]] = []
    if times:
        title = "mean completion time" if "validation_s" in times else "makespan"
        groups.append({"title": title, "unit": "s", "names": times})
    if objective:
        groups.append({"title": "objective, over that of the best classic order", "unit": "", "names": objective})
    rest = [name for name in names if name not in (*times, *objective)]
    return groups + [{"title": spoken(name), "unit": "", "names": [name]} for name in rest]


def spoken(name: str) -> str:
    """Return the name of a column in words."""
    return name.removesuffix("_s").replace("_", " ") if name != "jobs_per_s" else "scheduled jobs per second"
