"""Why a task runs where it does: when each device could have finished it, all other tasks staying as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.units import format_seconds
from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.graphs.conditions import CONTENTIONS, Contention
from stretto.graphs.simulator import simulate
from stretto.reports.page.view_types import JsonObject

#: Simulated tasks that the answer to one question may take.
_MAX_SIMULATED = 3_000_000
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Alternative:
    """What a device could have done with a task.

    Attributes
    ----------
    ready_s
        When all its data would have been there.
    last_parent
        The task whose data would have come last, None where it reads nothing.
    start_s
        The begin of the first gap, from then on, that is long enough.
    makespan_s
        Of the whole plan with this one task moved, where that was simulated.
    """

    device: int
    ready_s: float
    last_parent: int | None
    start_s: float
    finish_s: float
    makespan_s: float | None = None


class Timetable:
    """When the devices of a schedule are taken; answers what-if questions about single tasks."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem = problem
        self.schedule = schedule
        order = np.lexsort((schedule.finish_s, schedule.start_s, schedule.device))
        cuts = np.searchsorted(schedule.device[order], np.arange(problem.num_devices + 1))
        spans = [order[int(a) : int(b)] for a, b in pairwise(cuts)]
        self._gaps = [_gaps(schedule.start_s[tasks], schedule.finish_s[tasks]) for tasks in spans]

    def alternatives(self, task: int) -> list[Alternative]:
        """Return what each device that can run a task could have done with it, the earliest finish first."""
        arrays = self.problem.arrays
        took = arrays.duration[task][arrays.device_class]
        actual = int(self.schedule.device[task])
        ready, parent = self._ready(task)
        found = []
        for device in np.flatnonzero(np.isfinite(took)).tolist():
            if device == actual:
                start, finish = float(self.schedule.start_s[task]), float(self.schedule.finish_s[task])
            else:
                start = self._gap(device, float(ready[device]), float(took[device]))
                finish = start + float(took[device])
            found.append(Alternative(device, float(ready[device]), parent[device], start, finish))
        return sorted(found, key=lambda one: (one.finish_s, one.device))

    def _ready(self, task: int) -> tuple[Floats, list[int | None]]:
        """Return when a task's data could be on each device, and whose data would come last."""
        arrays, m = self.problem.arrays, self.problem.num_devices
        ready = np.full(m, float(arrays.release[task]))
        parent: list[int | None] = [None] * m
        for read in range(int(arrays.in_ptr[task]), int(arrays.in_ptr[task + 1])):
            source = int(arrays.in_task[read])
            at, size = int(self.schedule.device[source]), float(arrays.in_size[read])
            moving = arrays.latency[at] + size * arrays.inv_bandwidth[at] if size > 0 else np.zeros(m)
            there = float(self.schedule.finish_s[source]) + moving
            for device in np.flatnonzero(there > ready).tolist():
                ready[device], parent[device] = there[device], source
        return ready, parent

    def _gap(self, device: int, ready_s: float, length_s: float) -> float:
        """Return the begin of the first gap of a device, from a time on, that is long enough."""
        begin, end = self._gaps[device]
        place = int(np.searchsorted(end, ready_s, side="right"))  # the first that does not end before
        need = length_s * (1 - _TOLERANCE)
        if end[place] - ready_s >= need and begin[place] <= ready_s:
            return ready_s
        later = int(np.argmax(end[place:] - np.maximum(begin[place:], ready_s) >= need))  # the last one never ends
        return float(begin[place + later])


def _gaps(start_s: Floats, finish_s: Floats) -> tuple[Floats, Floats]:
    """Return begins and ends of the gaps between tasks that follow one another; the last gap has no end."""
    begin, end = np.concatenate([[0.0], finish_s]), np.concatenate([start_s, [np.inf]])
    there = end > begin
    return begin[there], end[there]


def find_task(problem: Problem, text: str) -> int:
    """Return the task of a name or a number."""
    graph = problem.graph
    if text in graph.index_of:
        return graph.index_of[text]
    if text.isdecimal() and len(text) < 12 and int(text) < graph.num_tasks:
        return int(text)
    raise UnknownName("task", text[:80], list(graph.index_of)[:500])


def explain_task(problem: Problem, plan: Plan, schedule: Schedule, task: int) -> JsonObject:
    """Return why a task runs where it does, as JSON values."""
    if problem.graph.resources is not None:
        raise InvalidInput("a project has no devices to choose from", field="task")
    found = Timetable(problem, schedule).alternatives(task)
    if len(found) * problem.num_tasks <= _MAX_SIMULATED:
        found = [_simulated(problem, plan, schedule, task, one) for one in found]
    devices = problem.cluster.devices
    actual = int(schedule.device[task])
    rows = [
        {
            "device": devices[one.device].name,
            "is_chosen": one.device == actual,
            "data_ready_s": one.ready_s,
            "waits_for": None if one.last_parent is None else problem.graph.task_name(one.last_parent),
            "start_s": one.start_s,
            "finish_s": one.finish_s,
            "makespan_s": one.makespan_s,
        }
        for one in found
    ]
    return {
        "task": problem.graph.task_name(task),
        "index": task,
        "device": devices[actual].name,
        "reason": reason(found, actual, [device.name for device in devices], schedule.makespan_s),
        "alternatives": rows,
    }


def _simulated(problem: Problem, plan: Plan, schedule: Schedule, task: int, one: Alternative) -> Alternative:
    if one.device == int(schedule.device[task]):
        makespan_s: float | None = schedule.makespan_s
    else:
        assignment = plan.assignment.copy()
        assignment[task] = one.device
        contention: Contention = next((known for known in CONTENTIONS if known == schedule.contention), "none")
        moved = Plan(assignment, plan.order, plan.discipline)
        try:
            makespan_s = simulate(problem, moved, discipline=schedule.discipline, contention=contention).makespan_s
        except StrettoError:  # for example, its memory does not hold it
            makespan_s = None
    return Alternative(one.device, one.ready_s, one.last_parent, one.start_s, one.finish_s, makespan_s)


def reason(found: Sequence[Alternative], actual: int, names: Sequence[str], makespan_s: float) -> str:
    """Say in a sentence or two why the device was chosen, from what the others could have done."""
    here = next(one for one in found if one.device == actual)
    others = [one for one in found if one.device != actual]
    if not others:
        return f"{names[actual]} is the only device that can run it."
    best = others[0]
    margin = format_seconds(abs(best.finish_s - here.finish_s))
    if best.finish_s > here.finish_s * (1 + _TOLERANCE):
        text = f"No device finishes it sooner: the next, {names[best.device]}, would take {margin} longer."
    elif best.finish_s < here.finish_s * (1 - _TOLERANCE):
        text = f"{names[best.device]} would finish it {margin} sooner."
    else:
        text = f"{names[best.device]} would finish it at the same time."
    judged = [one for one in others if one.makespan_s is not None]
    if judged:
        text += " " + _whole(judged, names, makespan_s)
    return text


def _whole(judged: Sequence[Alternative], names: Sequence[str], makespan_s: float) -> str:
    """Say what moving the task does to the whole plan."""
    best = min(judged, key=lambda one: one.makespan_s or 0.0)
    change = (best.makespan_s or 0.0) - makespan_s
    if change < -_TOLERANCE * makespan_s:
        return f"Moving it to {names[best.device]} would shorten the whole by {format_seconds(-change)}."
    if change > _TOLERANCE * makespan_s:
        return f"Moved anywhere else, the whole takes at least {format_seconds(change)} longer."
    return "Moving it elsewhere does not shorten the whole."
