"""Explanations inside a report: for each task, what the best devices could have done with it."""

from __future__ import annotations

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.reports.page.explain import Alternative, Timetable, reason
from stretto.reports.page.view_types import WhyJson
from stretto.reports.strict_json import drawn

#: Alternatives per task; the device that was chosen is always among them.
_KEPT = 5
#: These numbers are read, not drawn.
_DIGITS = 7
#: Questions, tasks times devices, that are answered beforehand.
_MAX_ASKED = 1_500_000


def explanations(problem: Problem, schedule: Schedule) -> WhyJson | None:
    """Return the explanations of all tasks, or of the longest where all would be too many; parent -1 is none."""
    if problem.graph.resources is not None:
        return None
    table = Timetable(problem, schedule)
    names = [device.name for device in problem.cluster.devices]
    kept: list[Alternative] = []
    first, sentences = [0], []
    tasks = _asked(problem, schedule)
    for task in tasks:
        found = table.alternatives(task)
        actual = int(schedule.device[task])
        best = found[:_KEPT]
        if all(one.device != actual for one in best):
            best[-1] = next(one for one in found if one.device == actual)
        kept += best
        first.append(len(kept))
        sentences.append(reason(found, actual, names, schedule.makespan_s))
    return {
        "task": tasks,
        "first": first,
        "reason": sentences,
        "devices": names,
        "device": [one.device for one in kept],
        "parent": [-1 if one.last_parent is None else one.last_parent for one in kept],
        "ready_s": drawn([one.ready_s for one in kept], _DIGITS),
        "start_s": drawn([one.start_s for one in kept], _DIGITS),
        "finish_s": drawn([one.finish_s for one in kept], _DIGITS),
    }


def _asked(problem: Problem, schedule: Schedule) -> list[int]:
    count = max(1, _MAX_ASKED // problem.num_devices)
    if problem.num_tasks <= count:
        return list(range(problem.num_tasks))
    longest = np.argsort(schedule.start_s - schedule.finish_s, kind="stable")[:count]
    return sorted(int(task) for task in longest)
