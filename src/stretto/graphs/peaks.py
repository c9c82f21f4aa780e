"""Peak memory per device of an executed plan: residents, what tasks need while they run, and objects while alive."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.graphs.memory.needs import counts_objects

#: Per device: when bytes come (1) or go (0, so that they go first), and how many.
Changes = list[list[tuple[float, int, float]]]


def peak_memory(problem: Problem, plan: Plan, schedule: Schedule) -> Floats:
    """Return the most bytes that each device holds at one moment, [m].

    An object is on its producer's device from the producer's start until its last reader there ends and its last copy
    has arrived, and on a reader's device from the begin of the transfer until its last reader there ends. The schedule
    must have its transfers recorded.
    """
    assert schedule.transfers is not None, "simulate with record_transfers=True"
    graph, m = problem.graph, problem.num_devices
    changes: Changes = [[] for _ in range(m)]
    device, start, finish = schedule.device, schedule.start_s, schedule.finish_s
    if graph.memory_bytes is not None:
        for task in range(graph.num_tasks):
            _hold(changes, int(device[task]), start[task], finish[task], float(np.ceil(graph.memory_bytes[task])))
    if counts_objects(problem):
        _hold_objects(problem, schedule, schedule.transfers, changes)
    resident = np.ceil(graph.resident_bytes) if graph.resident_bytes is not None else np.zeros(graph.num_tasks)
    peak = np.bincount(plan.assignment, weights=resident, minlength=m)
    for d in range(m):
        level = most = 0.0
        for _, _, amount in sorted(changes[d]):
            level += amount
            most = max(most, level)
        peak[d] += most
    return np.asarray(peak, dtype=np.float64)


def _hold(changes: Changes, device: int, begin: float, end: float, num_bytes: float) -> None:
    if num_bytes > 0 and end > begin:
        changes[device] += [(begin, 1, num_bytes), (end, 0, -num_bytes)]


def _hold_objects(problem: Problem, schedule: Schedule, moved: Transfers, changes: Changes) -> None:
    """Add the stays of all objects, at home and where they are copied to."""
    p, device, finish = problem.arrays, schedule.device, schedule.finish_s
    home_end = finish[p.object_task].copy()
    last_read: dict[tuple[int, int], float] = {}
    item = np.repeat(np.arange(len(p.object_size)), np.diff(p.object_ptr))
    for o, reader in zip(item.tolist(), p.object_reader.tolist(), strict=True):
        key = o, int(device[reader])
        last_read[key] = max(last_read.get(key, 0.0), float(finish[reader]))
        if key[1] == device[p.object_task[o]]:
            home_end[o] = max(home_end[o], finish[reader])
    for k, o in enumerate(moved.object_index.tolist()):
        target = int(moved.target[k])
        home_end[o] = max(home_end[o], moved.finish_s[k])
        _hold(changes, target, float(moved.start_s[k]), last_read[o, target], float(np.ceil(p.object_size[o])))
    for o, task in enumerate(p.object_task.tolist()):
        begin = float(schedule.start_s[task])
        _hold(changes, int(device[task]), begin, float(home_end[o]), float(np.ceil(p.object_size[o])))
