"""Cut a schedule into stretches: consecutive tasks of a device that can run as one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stretto.core.graph import TaskGraph
from stretto.core.schedule import Schedule


class TaskStretch(NamedTuple):
    """Consecutive tasks of one device."""

    device: int
    tasks: tuple[int, ...]


def cut_stretches(graph: TaskGraph, schedule: Schedule) -> list[TaskStretch]:
    """Return the stretches of a schedule, in an order in which each reads only from earlier ones.

    A stretch ends after a task whose value another device reads, so that it can be sent at once, and before one that
    needs a value which another device had not finished when the stretch began.
    """
    device, start, finish = schedule.device.tolist(), schedule.start_s.tolist(), schedule.finish_s.tolist()
    parents = _parents(graph)
    rank = {int(task): place for place, task in enumerate(graph.topo)}
    order = sorted(range(graph.num_tasks), key=lambda task: (start[task], finish[task], rank[task]))
    position = {task: place for place, task in enumerate(order)}
    sends = {parent for task, above in enumerate(parents) for parent in above if device[parent] != device[task]}
    opened: dict[int, list[int]] = {}
    found: list[list[int]] = []
    for task in order:
        here = opened.get(device[task])
        remote = [parent for parent in parents[task] if device[parent] != device[task]]
        if here is None or any(finish[p] > start[here[0]] or position[p] > position[here[0]] for p in remote):
            here = opened[device[task]] = []
            found.append(here)
        here.append(task)
        if task in sends:
            del opened[device[task]]
    return [TaskStretch(device[tasks[0]], tuple(tasks)) for tasks in found]


def _parents(graph: TaskGraph) -> Sequence[set[int]]:
    parents: list[set[int]] = [set() for _ in range(graph.num_tasks)]
    source, target, _ = graph.edges
    for parent, task in zip(source.tolist(), target.tolist(), strict=True):
        parents[task].add(parent)
    return parents


def merged_stretches(graph: TaskGraph, stretches: Sequence[TaskStretch]) -> list[TaskStretch]:
    """Join each stretch with the one before it on its device where it reads from none in between."""
    parents = _parents(graph)
    home: dict[int, int] = {}
    latest: dict[int, int] = {}
    found: list[list[int]] = []
    devices: list[int] = []
    for stretch in stretches:
        own = set(stretch.tasks)
        needs = max((home[p] for task in own for p in parents[task] if p not in own), default=0)
        place = latest.get(stretch.device, -1)
        if place < needs or place < 0:
            place = latest[stretch.device] = len(found)
            found.append([])
            devices.append(stretch.device)
        found[place] += stretch.tasks
        home |= dict.fromkeys(own, place)
    return [TaskStretch(device, tuple(tasks)) for device, tasks in zip(devices, found, strict=True)]
