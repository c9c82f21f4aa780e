"""Estimated load of the shared parts of machines: written into a run while it goes on, and read back as a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.reports.page.view_types import BeliefJson, Column, JsonObject
from stretto.reports.racks.topology import Topology, drawn_machines
from stretto.reports.strict_json import plain
from stretto.runlog import Run

EVENT = "belief"
#: Half-width of a 95 % interval, in standard deviations.
WIDTH_95 = 1.96
#: Moments that a page gets; the slider over them is seldom longer.
_MAX_FRAMES = 240
_DIGITS = 4


@dataclass(frozen=True, eq=False)
class BeliefSample:
    """What is estimated, and measured, at one moment.

    Attributes
    ----------
    mean, sd
        Of the estimated load of every resource, as a share of its capacity.
    raw
        The last values of its own counters, NaN for a resource without counters.
    truth
        The real load, known in a simulation only.
    running
        What each processor runs, None for nothing.
    """

    at_s: float
    mean: Floats
    sd: Floats
    raw: Floats | None = None
    truth: Floats | None = None
    running: Sequence[str | None] = ()


def record_sample(run: Run, sample: BeliefSample) -> None:
    """Write a sample into a run."""
    run.record(EVENT, **sample_fields(sample))


def sample_fields(sample: BeliefSample) -> JsonObject:
    """Return a sample as JSON values, to as many digits as can be seen."""
    fields: JsonObject = {"at_s": round(sample.at_s, 6)}
    for name in ("mean", "sd", "raw", "truth"):
        values = getattr(sample, name)
        if values is not None:
            fields[name] = plain(np.round(np.asarray(values, dtype=np.float64), _DIGITS))
    if any(sample.running):
        fields["running"] = list(sample.running)
    return fields


def belief_map(topology: Topology, events: Sequence[JsonObject]) -> BeliefJson | None:
    """Return the map of estimated load: machines as boxes, and a row of numbers per resource."""
    num = len(topology["resources"])
    events = [event for event in events if len(event.get("mean", ())) == num == len(event.get("sd", ()))]
    if not events:
        return None
    frames = _thinned(events)
    mean, sd = (_column(frames, name, num) for name in ("mean", "sd"))
    doing, running = _running(frames, len(topology["processors"]))
    found: BeliefJson = {
        "kind": "belief",
        "machines": drawn_machines(topology),
        "resources": list(topology["resources"]),
        "processors": list(topology["processors"]),
        "at_s": [float(frame["at_s"]) for frame in frames],
        "mean": _rows(mean),
        "low": _rows(np.clip(mean - WIDTH_95 * sd, 0.0, 1.0)),
        "high": _rows(np.clip(mean + WIDTH_95 * sd, 0.0, 1.0)),
        "doing": doing,
        "running": running,
    }
    raw, truth = (_column(frames, name, num) for name in ("raw", "truth"))
    if np.isfinite(raw).any():
        found["raw"] = _rows(raw)
    if np.isfinite(truth).any():
        found["truth"] = _rows(truth)
    return found


def _thinned(events: Sequence[JsonObject]) -> list[JsonObject]:
    """Return some of many moments, the last one always."""
    step = -(-len(events) // _MAX_FRAMES)
    return list(reversed(list(reversed(events))[::step]))


def _column(frames: Sequence[JsonObject], name: str, num: int) -> Floats:
    """Return one figure of every resource at every moment, [T, R]; NaN where it is not known."""
    rows = []
    for frame in frames:
        values = frame.get(name)
        there = values if isinstance(values, list) and len(values) == num else [None] * num
        rows.append([float("nan") if value is None else float(value) for value in there])
    return np.array(rows, dtype=np.float64)


def _rows(values: Floats) -> list[Column]:
    """Return a list of moments for each resource."""
    return [[None if x != x else round(x, _DIGITS) for x in row] for row in values.T.tolist()]


def _running(frames: Sequence[JsonObject], num: int) -> tuple[list[str], list[list[int]]]:
    """Return names, and what every processor did at every moment as places among these; -1 is nothing."""
    names: dict[str, int] = {}
    rows: list[list[int]] = [[] for _ in range(num)]
    for frame in frames:
        now = frame.get("running") or [None] * num
        for place in range(num):
            what = now[place] if place < len(now) else None
            rows[place].append(-1 if what is None else names.setdefault(str(what), len(names)))
    return list(names), rows
