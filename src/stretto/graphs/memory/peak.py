"""The most memory that each device holds at one moment of a schedule: weights, running tasks, and data while alive."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.devices.weights import resident_of_devices
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.graphs.memory.needs import counts_objects


def peak_memory(problem: Problem, schedule: Schedule) -> Floats:
    """Return the bytes that each device holds in its fullest moment, [m]; ``docs/semantics.md`` says what counts.

    Parameters
    ----------
    schedule
        With its transfers recorded.
    """
    assert schedule.transfers is not None, "the schedule lists its transfers"
    graph, m = problem.graph, problem.num_devices
    device, start, finish = schedule.device, schedule.start_s, schedule.finish_s
    spans = []
    if graph.memory_bytes is not None:
        spans.append((device, start, finish, np.ceil(graph.memory_bytes)))
    if counts_objects(problem):
        spans += _object_spans(problem, schedule)
    peak = np.array([_fullest(d, spans) for d in range(m)], dtype=np.float64)
    return peak + resident_of_devices(graph, device, m)


def _object_spans(problem: Problem, schedule: Schedule) -> list[tuple[np.ndarray, Floats, Floats, Floats]]:
    """Return device, begin, end and bytes of every copy of an object."""
    graph, m, moved = problem.graph, problem.num_devices, schedule.transfers
    assert moved is not None
    device, size = schedule.device.astype(np.int64), np.ceil(graph.object_size)
    last = np.full((graph.num_objects, m), -np.inf)
    home = device[graph.object_task]
    items = np.arange(graph.num_objects)
    last[items, home] = schedule.finish_s[graph.object_task]
    np.maximum.at(last, (graph.read_object, device[graph.read_task]), schedule.finish_s[graph.read_task])
    np.maximum.at(last, (moved.object_index, home[moved.object_index]), moved.finish_s)
    made = (home, schedule.start_s[graph.object_task], last[items, home], size)
    target = moved.target.astype(np.int64)
    return [made, (target, moved.start_s, last[moved.object_index, target], size[moved.object_index])]


def _fullest(device: int, spans: list[tuple[np.ndarray, Floats, Floats, Floats]]) -> float:
    """Return the largest sum of bytes at one moment; what ends at a moment makes room for what begins then."""
    times, changes = [], []
    for where, begin, end, size in spans:
        here = (where == device) & (size > 0)
        times += [begin[here], end[here]]
        changes += [size[here], -size[here]]
    if not times:
        return 0.0
    time, change = np.concatenate(times), np.concatenate(changes)
    return float(np.cumsum(change[np.lexsort((change, time))]).max(initial=0.0))
