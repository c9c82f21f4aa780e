"""Schedules as Chrome traces, for chrome://tracing and Perfetto.

Machines become processes and devices threads. Recorded transfers get threads of their own,
one per receiving device and as many more as transfers overlap there, with an arrow from the
task that made the data.
"""

from __future__ import annotations

import json

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers

Event = dict[str, object]
_MICROSECONDS = 1e6


def write_trace(problem: Problem, schedule: Schedule) -> bytes:
    """Return a trace in the JSON object form of the Chrome trace format."""
    process = {name: pid for pid, name in enumerate(dict.fromkeys(d.machine for d in problem.cluster.devices))}
    pids = [process[device.machine] for device in problem.cluster.devices]
    events = _process_events(process)
    events += _device_events(problem, pids)
    events += _task_events(problem, schedule, pids)
    if schedule.transfers is not None:
        events += _transfer_events(problem, schedule, schedule.transfers, pids)
    trace = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "graph": problem.graph.name,
            "cluster": problem.cluster.name,
            "discipline": schedule.discipline,
            "contention": schedule.contention,
            "makespan_s": schedule.makespan_s,
        },
    }
    return json.dumps(trace, allow_nan=False, separators=(",", ":")).encode()


def _meta(name: str, pid: int, tid: int, /, **args: object) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _process_events(process: dict[str, int]) -> list[Event]:
    return [_meta("process_name", pid, 0, name=machine) for machine, pid in process.items()]


def _device_events(problem: Problem, pids: list[int]) -> list[Event]:
    events = []
    for device, (pid, info) in enumerate(zip(pids, problem.cluster.devices, strict=True)):
        events.append(_meta("thread_name", pid, device, name=f"{info.name} ({info.kind})"))
        events.append(_meta("thread_sort_index", pid, device, sort_index=2 * device))
    return events


def _span(name: str, category: str, pid: int, tid: int, start_s: float, finish_s: float, **args: object) -> Event:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": float(start_s) * _MICROSECONDS,
        "dur": max(0.0, float(finish_s) - float(start_s)) * _MICROSECONDS,
        "pid": pid,
        "tid": tid,
        "args": args,
    }


def _task_events(problem: Problem, schedule: Schedule, pids: list[int]) -> list[Event]:
    events = []
    for task in range(problem.num_tasks):
        device = int(schedule.device[task])
        category = problem.graph.category_name(task)
        events.append(
            _span(
                problem.graph.task_name(task),
                category or "task",
                pids[device],
                device,
                schedule.start_s[task],
                schedule.finish_s[task],
                task=task,
            )
        )
    return events


def _transfer_events(problem: Problem, schedule: Schedule, transfers: Transfers, pids: list[int]) -> list[Event]:
    """Lay transfers into rows of the receiving device, so that no two in a row overlap."""
    events: list[Event] = []
    free_at: dict[int, list[tuple[float, int]]] = {}
    next_tid = problem.num_devices
    devices = problem.cluster.devices
    unit = "bytes" if problem.graph.transfer_unit == "bytes" else "seconds"
    for index in np.lexsort((transfers.target, transfers.start_s)):
        source, target = int(transfers.source[index]), int(transfers.target[index])
        start_s, finish_s = float(transfers.start_s[index]), float(transfers.finish_s[index])
        rows = free_at.setdefault(target, [])
        row = next((k for k, (free_s, _) in enumerate(rows) if free_s <= start_s), len(rows))
        if row == len(rows):
            rows.append((0.0, next_tid))
            events.append(_meta("thread_name", pids[target], next_tid, name=f"to {devices[target].name}"))
            events.append(_meta("thread_sort_index", pids[target], next_tid, sort_index=2 * target + 1))
            next_tid += 1
        tid = rows[row][1]
        rows[row] = (finish_s, tid)
        data = int(transfers.object_index[index])
        producer = int(problem.graph.object_task[data])
        name = f"{problem.graph.task_name(producer)}: {devices[source].name} to {devices[target].name}"
        size = float(problem.graph.object_size[data])
        events.append(
            _span(name, "transfer", pids[target], tid, start_s, finish_s, object=data, **{f"size_{unit}": size})
        )
        events += _arrow(
            int(index), pids[source], source, float(schedule.finish_s[producer]), pids[target], tid, start_s
        )
    return events


def _arrow(key: int, pid: int, tid: int, from_s: float, to_pid: int, to_tid: int, to_s: float) -> list[Event]:
    common = {"name": "data", "cat": "transfer", "id": key}
    start = {**common, "ph": "s", "pid": pid, "tid": tid, "ts": from_s * _MICROSECONDS}
    finish = {**common, "ph": "f", "bp": "e", "pid": to_pid, "tid": to_tid, "ts": to_s * _MICROSECONDS}
    return [start, finish]
