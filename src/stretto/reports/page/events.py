"""The events of a run by kind: executed tasks, training rows, choices of a strategy and samples of a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from stretto.reports.page.view_types import GanttJson, JsonObject
from stretto.reports.plots.colors import PALETTE, text_on
from stretto.reports.strict_json import drawn
from stretto.runlog import Event

_RUNNING, DONE, _FAILED = 0, 1, 2
_STARTS = frozenset({"started", "start", "task_started", "task_start"})
_ENDS = frozenset({"finished", "finish", "done", "task_finished", "task_finish", "task_done"})
_FAILURES = frozenset({"failed", "task_failed", "task_fail"})
_CHOICES = frozenset({"choice", "decision", "decide", "decided"})
_ROWS = frozenset({"row", "generation", "iteration", "epoch", "update"})


@dataclass
class Bar:
    """A task on a device; without an end it is still running."""

    task: str
    device: str
    start_s: float
    finish_s: float | None = None
    state: int = _RUNNING


@dataclass
class RunEvents:
    """Everything that can be drawn of a run's events."""

    bars: list[Bar] = field(default_factory=list)
    progress: list[tuple[float, float]] = field(default_factory=list)
    rows: list[JsonObject] = field(default_factory=list)
    choices: list[JsonObject] = field(default_factory=list)
    samples: list[tuple[float, float, float | None]] = field(default_factory=list)
    beliefs: list[JsonObject] = field(default_factory=list)
    failures: list[JsonObject] = field(default_factory=list)
    steered: Event | None = None  # the last decision about a live queue

    def failed_tasks(self) -> list[JsonObject]:
        """Return the tasks whose last attempt failed, with the reason of that attempt."""
        last = {bar.task: bar.state for bar in self.bars}
        reasons = {one["task"]: one["reason"] for one in self.failures}
        return [{"task": task, "reason": why} for task, why in reasons.items() if last[task] == _FAILED]


def read_events(events: Iterable[Event], started_s: float) -> RunEvents:
    """Sort events by kind; unknown kinds appear in the list of events only."""
    found = RunEvents()
    running: dict[str, Bar] = {}
    for event in events:
        kind = event.kind.replace("-", "_").lower()
        at_s = max(0.0, event.at_s - started_s)
        if kind in _STARTS or kind in _ENDS or kind in _FAILURES:
            _task(found, running, kind, event, at_s)
        elif kind == "progress":
            best = event.fields.get("best_s")
            if _is_number(best):
                found.progress.append((float(event.fields.get("elapsed_s") or at_s), float(best)))
        elif kind == "belief":
            found.beliefs.append({"at_s": at_s, **event.fields})
        elif kind in _ROWS:
            found.rows.append(dict(event.fields))
        elif kind in _CHOICES:
            found.choices.append(_choice(event, at_s))
            found.steered = event if isinstance(event.fields.get("inputs"), Mapping) else found.steered
        if kind in ("sample", "queue", *_CHOICES):
            _sample(found, event, at_s)
    return found


def _task(found: RunEvents, running: dict[str, Bar], kind: str, event: Event, at_s: float) -> None:
    fields = event.fields
    at_s = number_or(fields.get("at_s"), at_s)  # by the engine's own clock, where known
    device = str(fields.get("device", "?"))
    if kind in _STARTS:
        running[event.subject] = Bar(event.subject, device, number_or(fields.get("start_s"), at_s))
        found.bars.append(running[event.subject])
        return
    bar = running.pop(event.subject, None)
    if bar is None:
        bar = Bar(event.subject, device, number_or(fields.get("start_s"), at_s))
        found.bars.append(bar)
    if "device" in fields:
        bar.device = device
    bar.start_s = number_or(fields.get("start_s"), bar.start_s)
    bar.finish_s = max(bar.start_s, number_or(fields.get("end_s", fields.get("finish_s")), at_s))
    bar.state = _FAILED if kind in _FAILURES else DONE
    if bar.state == _FAILED:
        about = {name: fields.get(name) for name in ("attempt", "blame", "reason")}
        found.failures.append({"at_s": bar.finish_s, "task": event.subject, "device": bar.device, **about})


def _choice(event: Event, at_s: float) -> JsonObject:
    fields = event.fields
    chosen = str(fields.get("chosen", event.subject))
    choice: JsonObject = {"seq": event.seq, "at_s": number_or(fields.get("at_s"), at_s), "chosen": chosen}
    cost = fields.get("cost", fields.get("costs"))
    if isinstance(cost, Mapping) and cost:
        choice["cost"] = {str(name): value for name, value in cost.items() if _is_number(value)}
    if isinstance(fields.get("rival"), Mapping):
        choice["rival"] = dict(fields["rival"])
    if "job" in fields:
        choice["job"] = fields["job"]
    reason = fields.get("reason") or fields.get("fallback") or _least(chosen, choice.get("cost"))
    return choice | {"reason": str(reason)}


def _least(chosen: str, cost: Mapping[str, float] | None) -> str:
    """Say why a candidate was chosen, from the costs alone."""
    if not cost or chosen not in cost:
        return "fixed strategy"
    return "lowest expected cost" if cost[chosen] <= min(cost.values()) else "the gain is too small for a change"


def _sample(found: RunEvents, event: Event, at_s: float) -> None:
    fields = event.fields
    waiting, running = fields.get("waiting"), fields.get("running")
    inputs = fields.get("inputs")
    if isinstance(inputs, Mapping) and isinstance(inputs.get("jobs"), list):  # as steering a queue writes it down
        running = len(inputs.get("running", ()))
        waiting = inputs.get("num_waiting", len(inputs["jobs"]) - running)
    if _is_number(waiting):
        found.samples.append((at_s, float(waiting), float(running) if _is_number(running) else None))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_or(value: object, otherwise: float) -> float:
    """Return a value that is a number, or another."""
    return float(value) if _is_number(value) else otherwise


def bars_chart(
    bars: Sequence[Bar],
    devices: Sequence[str],
    now_s: float,
    *,
    legend: Sequence[tuple[str, str]] = (("", PALETTE[0]),),
    color_of: Mapping[str, int] | None = None,
    bound_s: float | None = None,
) -> GanttJson:
    """Return the chart of executed tasks.

    Parameters
    ----------
    devices
        Those that are known beforehand; others follow in the order of their first task.
    now_s
        Until when tasks without an end are drawn.
    color_of
        The place of each task's color in the legend; the first color for all by default.
    """
    names = list(dict.fromkeys([*devices, *(bar.device for bar in bars)]))
    place = {name: row for row, name in enumerate(names)}
    ends = [now_s if bar.finish_s is None else bar.finish_s for bar in bars]
    order = sorted(range(len(bars)), key=lambda i: (place[bars[i].device], bars[i].start_s, ends[i]))
    makespan = max(ends, default=0.0)
    busy = [0.0] * len(names)
    for bar, end in zip(bars, ends, strict=True):
        busy[place[bar.device]] += max(0.0, end - bar.start_s) / (makespan or 1.0)
    return {
        "rows": [(name, round(min(1.0, share), 4), 0) for name, share in zip(names, busy, strict=True)],
        "legend": [(label, color, text_on(color)) for label, color in legend],
        "makespan": makespan,
        "bound": bound_s,
        "task": order,
        "num_tasks": len({bar.task for bar in bars}),
        "row": [place[bars[i].device] for i in order],
        "start": drawn([bars[i].start_s for i in order]),
        "length": drawn([max(0.0, ends[i] - bars[i].start_s) for i in order]),
        "color": [(color_of or {}).get(bars[i].task, 0) for i in order],
        "state": [bars[i].state for i in order],
        "names": [bars[i].task for i in order],
        "moves": None,
    }
