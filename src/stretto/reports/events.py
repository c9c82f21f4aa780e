"""What the events of a run amount to so far: bars of executed tasks, rows of news, choices and samples of a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from stretto.reports.colours import PALETTE, REST, text_on
from stretto.reports.strict_json import drawn
from stretto.runlog import Event

_RUNNING, DONE, _FAILED = 0, 1, 2
_LEGEND = (("running", PALETTE[1]), ("done", PALETTE[0]), ("failed", PALETTE[3]))
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
class Story:
    """Everything that can be drawn of a run's events."""

    bars: list[Bar] = field(default_factory=list)
    progress: list[tuple[float, float]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    choices: list[dict[str, Any]] = field(default_factory=list)
    samples: list[tuple[float, float, float | None]] = field(default_factory=list)
    beliefs: list[Mapping[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def failed_tasks(self) -> list[dict[str, Any]]:
        """Return the tasks whose last attempt failed, with the reason of that attempt."""
        last = {bar.task: bar.state for bar in self.bars}
        reasons = {one["task"]: one["reason"] for one in self.failures}
        return [{"task": task, "reason": why} for task, why in reasons.items() if last[task] == _FAILED]


def read_events(events: Iterable[Event], started_s: float) -> Story:
    """Sort events by what they say; kinds that are not known here are left to the list of events."""
    story = Story()
    running: dict[str, Bar] = {}
    for event in events:
        kind = event.kind.replace("-", "_").lower()
        at_s = max(0.0, event.at_s - started_s)
        if kind in _STARTS or kind in _ENDS or kind in _FAILURES:
            _task(story, running, kind, event, at_s)
        elif kind == "progress":
            best = event.fields.get("best_s")
            if _isnumber_or(best):
                story.progress.append((float(event.fields.get("elapsed_s") or at_s), float(best)))
        elif kind == "belief":
            story.beliefs.append({"at_s": at_s, **event.fields})
        elif kind in _ROWS:
            story.rows.append(dict(event.fields))
        elif kind in _CHOICES:
            story.choices.append(_choice(event, at_s))
        if kind in ("sample", "queue", *_CHOICES):
            _sample(story, event, at_s)
    return story


def _task(story: Story, running: dict[str, Bar], kind: str, event: Event, at_s: float) -> None:
    fields = event.fields
    at_s = number_or(fields.get("at_s"), at_s)  # the engine's own clock, where it tells it
    device = str(fields.get("device", "?"))
    if kind in _STARTS:
        running[event.subject] = Bar(event.subject, device, number_or(fields.get("start_s"), at_s))
        story.bars.append(running[event.subject])
        return
    bar = running.pop(event.subject, None)
    if bar is None:
        bar = Bar(event.subject, device, number_or(fields.get("start_s"), at_s))
        story.bars.append(bar)
    if "device" in fields:
        bar.device = device
    bar.start_s = number_or(fields.get("start_s"), bar.start_s)
    bar.finish_s = max(bar.start_s, number_or(fields.get("end_s", fields.get("finish_s")), at_s))
    bar.state = _FAILED if kind in _FAILURES else DONE
    if bar.state == _FAILED:
        about = {name: fields.get(name) for name in ("attempt", "blame", "reason")}
        story.failures.append({"at_s": bar.finish_s, "task": event.subject, "device": bar.device, **about})


def _choice(event: Event, at_s: float) -> dict[str, Any]:
    fields = event.fields
    chosen = str(fields.get("chosen", event.subject))
    choice: dict[str, Any] = {"seq": event.seq, "at_s": number_or(fields.get("at_s"), at_s), "chosen": chosen}
    cost = fields.get("cost", fields.get("costs"))
    if isinstance(cost, Mapping) and cost:
        choice["cost"] = {str(name): value for name, value in cost.items() if _isnumber_or(value)}
    if isinstance(fields.get("rival"), Mapping):
        choice["rival"] = dict(fields["rival"])
    if "job" in fields:
        choice["job"] = fields["job"]
    reason = fields.get("reason") or fields.get("fallback") or _least(chosen, choice.get("cost"))
    return choice | {"reason": str(reason)}


def _least(chosen: str, cost: Mapping[str, float] | None) -> str:
    """Say why a candidate was chosen, from the costs alone."""
    if not cost or chosen not in cost:
        return "a fixed strategy"
    return "the least expected cost" if cost[chosen] <= min(cost.values()) else "not worth a change"


def _sample(story: Story, event: Event, at_s: float) -> None:
    fields = event.fields
    waiting, running = fields.get("waiting"), fields.get("running")
    inputs = fields.get("inputs")
    if isinstance(inputs, Mapping) and isinstance(inputs.get("jobs"), list):  # as steering a queue writes it down
        running = len(inputs.get("running", ()))
        waiting = len(inputs["jobs"]) - running
    if _isnumber_or(waiting):
        story.samples.append((at_s, float(waiting), float(running) if _isnumber_or(running) else None))


def _isnumber_or(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_or(value: Any, otherwise: float) -> float:
    """Return a value that is a number, or another."""
    return float(value) if _isnumber_or(value) else otherwise


def bars_chart(bars: Sequence[Bar], devices: Sequence[str], now_s: float) -> dict[str, Any]:
    """Return the chart of executed tasks, in the form of ``gantt_html.chart_json``.

    Parameters
    ----------
    devices
        Those that are known beforehand; others follow in the order of their first task.
    now_s
        Until when tasks without an end are drawn.
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
        "rows": [[name, round(min(1.0, share), 4), 0] for name, share in zip(names, busy, strict=True)],
        "legend": [[label, colour, text_on(colour)] for label, colour in (*_LEGEND, ("", REST))],
        "makespan": makespan,
        "bound": None,
        "task": order,
        "num_tasks": len({bar.task for bar in bars}),
        "row": [place[bars[i].device] for i in order],
        "start": drawn([bars[i].start_s for i in order]),
        "length": drawn([max(0.0, ends[i] - bars[i].start_s) for i in order]),
        "colour": [bars[i].state for i in order],
        "names": [bars[i].task for i in order],
        "moves": None,
    }
