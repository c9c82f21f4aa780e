"""What is believed of a machine's hidden load: written into a run while it goes on, and read back as a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.reports.racks.topology import drawn_machines
from stretto.reports.strict_json import plain
from stretto.runlog import Run

EVENT = "belief"
#: Half-width of a 95 % interval, in standard deviations.
WIDTH_95 = 1.96
#: Moments that a page gets; the slider over them is seldom longer.
_MAX_FRAMES = 240
_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Look:
    """One moment.

    Attributes
    ----------
    mean, sd
        Of the believed utilisation of every resource, as a share of its capacity.
    raw
        What its own counters said last, NaN for what has none.
    truth
        What it really was; only a simulation knows.
    running
        What each processor does, None for nothing.
    """

    at_s: float
    mean: Floats
    sd: Floats
    raw: Floats | None = None
    truth: Floats | None = None
    running: Sequence[str | None] = ()


def record_look(run: Run, look: Look) -> None:
    """Write a moment into a run."""
    run.record(EVENT, **look_fields(look))


def look_fields(look: Look) -> dict[str, Any]:
    """Return a moment as JSON values, to as many digits as can be seen."""
    fields: dict[str, Any] = {"at_s": round(look.at_s, 6)}
    for name in ("mean", "sd", "raw", "truth"):
        values = getattr(look, name)
        if values is not None:
            fields[name] = plain(np.round(np.asarray(values, dtype=np.float64), _DIGITS))
    if any(look.running):
        fields["running"] = list(look.running)
    return fields


def belief_map(topology: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the map of all that was believed: machines as boxes, and a row of numbers per resource."""
    num = len(topology["resources"])
    events = [event for event in events if len(event.get("mean", ())) == num == len(event.get("sd", ()))]
    if not events:
        return None
    frames = _thinned(events)
    mean, sd = (_column(frames, name, num) for name in ("mean", "sd"))
    found: dict[str, Any] = {
        "kind": "belief",
        "machines": drawn_machines(topology),
        "resources": list(topology["resources"]),
        "processors": list(topology["processors"]),
        "at_s": [float(frame["at_s"]) for frame in frames],
        "mean": _rows(mean),
        "low": _rows(np.clip(mean - WIDTH_95 * sd, 0.0, 1.0)),
        "high": _rows(np.clip(mean + WIDTH_95 * sd, 0.0, 1.0)),
    }
    for name in ("raw", "truth"):
        values = _column(frames, name, num)
        if np.isfinite(values).any():
            found[name] = _rows(values)
    return found | _running(frames, len(topology["processors"]))


def _thinned(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return some of many moments, the last one always."""
    step = -(-len(events) // _MAX_FRAMES)
    return list(reversed(list(reversed(events))[::step]))


def _column(frames: Sequence[Mapping[str, Any]], name: str, num: int) -> Floats:
    """Return one figure of every resource at every moment, [T, R]; NaN where it is not known."""
    rows = []
    for frame in frames:
        values = frame.get(name)
        there = values if isinstance(values, list) and len(values) == num else [None] * num
        rows.append([float("nan") if value is None else float(value) for value in there])
    return np.array(rows, dtype=np.float64)


def _rows(values: Floats) -> list[list[float | None]]:
    """Return a list of moments for each resource."""
    return [[None if x != x else round(x, _DIGITS) for x in row] for row in values.T.tolist()]


def _running(frames: Sequence[Mapping[str, Any]], num: int) -> dict[str, Any]:
    """Return what every processor did at every moment, as places in a list of names; -1 is nothing."""
    names: dict[str, int] = {}
    rows: list[list[int]] = [[] for _ in range(num)]
    for frame in frames:
        now = frame.get("running") or [None] * num
        for place in range(num):
            what = now[place] if place < len(now) else None
            rows[place].append(-1 if what is None else names.setdefault(str(what), len(names)))
    return {"doing": list(names), "running": rows}
