"""Curves of a training: what was measured at each step, and which figures share a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.reports.page.events import number_or
from stretto.reports.page.view_types import TrainingGroup, TrainingJson
from stretto.reports.strict_json import drawn
from stretto.runlog.record import Json

Row = Mapping[str, Json]
#: Fields of a row that number it.
_PLACES = ("episode", "generation", "iteration", "epoch", "update", "step")
#: Figures on one scale, which share a chart.
_OBJECTIVE = ("train", "validation", "best_validation")


def training_json(rows: Sequence[Row], baselines: Mapping[str, float]) -> TrainingJson | None:
    """Return the curves of a training: what was measured at each step."""
    if not rows:
        return None
    place = next((name for name in _PLACES if name in rows[0]), None)
    rows = _without_repeats(rows, place)
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


def _without_repeats(rows: Sequence[Row], place: str | None) -> Sequence[Row]:
    """Leave out what was done twice: a training that died resumes from its last checkpoint, before its last row."""
    if place is None:
        return rows
    kept: list[Row] = []
    for row in rows:
        while kept and number_or(kept[-1].get(place), 0.0) >= number_or(row.get(place), 0.0):
            kept.pop()
        kept.append(row)
    return kept


def _groups(names: Sequence[str]) -> list[TrainingGroup]:
    """Return which figures share a chart: times, the parts of an objective, and each of the others alone."""
    times = [name for name in names if name.endswith("_s") and name != "jobs_per_s"]
    objective = [name for name in _OBJECTIVE if name in names]
    groups: list[TrainingGroup] = []
    if times:
        title = "mean completion time" if "validation_s" in times else "makespan"
        groups.append({"title": title, "unit": "s", "names": times})
    if objective:
        groups.append({"title": "objective relative to the best fixed order", "unit": "", "names": objective})
    rest = [name for name in names if name not in (*times, *objective)]
    return groups + [{"title": spoken(name), "unit": "", "names": [name]} for name in rest]


def spoken(name: str) -> str:
    """Return the name of a column in words."""
    return name.removesuffix("_s").replace("_", " ") if name != "jobs_per_s" else "scheduled jobs per second"
