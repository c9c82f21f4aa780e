"""Schedules as Pajé traces, for ViTE, pajeng and the R packages that read them.

Machines and devices are containers, tasks are states of their device, and recorded transfers are links between devices.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers

#: The events that are used: name, and fields with their types.
_EVENTS = (
    ("PajeDefineContainerType", ("Alias string", "Type string", "Name string")),
    ("PajeDefineStateType", ("Alias string", "Type string", "Name string")),
    ("PajeDefineLinkType",
     ("Alias string", "Type string", "StartContainerType string", "EndContainerType string", "Name string")),
    ("PajeDefineEntityValue", ("Alias string", "Type string", "Name string", "Color color")),
    ("PajeCreateContainer", ("Time date", "Alias string", "Type string", "Container string", "Name string")),
    ("PajeDestroyContainer", ("Time date", "Type string", "Name string")),
    ("PajePushState", ("Time date", "Type string", "Container string", "Value string", "Task string")),
    ("PajePopState", ("Time date", "Type string", "Container string")),
    ("PajeStartLink",
     ("Time date", "Type string", "Container string", "StartContainer string", "Value string", "Key string")),
    ("PajeEndLink",
     ("Time date", "Type string", "Container string", "EndContainer string", "Value string", "Key string")),
)  # fmt: skip
_CODE = {name: number for number, (name, _) in enumerate(_EVENTS)}
_COLOURS = ("0.00 0.45 0.70", "0.90 0.62 0.00", "0.00 0.62 0.45", "0.84 0.37 0.00", "0.34 0.71 0.91", "0.80 0.47 0.65")
_Timed = tuple[float, str]


def write_paje(problem: Problem, schedule: Schedule) -> bytes:
    """Return the trace as text; times are seconds."""
    end_s = schedule.makespan_s
    lines = [*_header(), *_types(problem), *_containers(problem)]
    streams = [_states(problem, schedule, device) for device in range(problem.num_devices)]
    if schedule.transfers is not None:
        streams.append(iter(_links(problem, schedule.transfers)))
    # The merge keeps each stream's own order where times are equal: a task of no duration ends after it began.
    lines += [line for _, line in heapq.merge(*streams, key=lambda event: event[0])]
    lines += [_line("PajeDestroyContainer", end_s, "D", f"d{device}") for device in range(problem.num_devices)]
    lines += [_line("PajeDestroyContainer", end_s, "M", f"m{number}") for number in range(len(_machines(problem)))]
    lines.append(_line("PajeDestroyContainer", end_s, "C", "c"))
    return ("\n".join(lines) + "\n").encode()


def _header() -> Iterator[str]:
    for number, (name, fields) in enumerate(_EVENTS):
        yield f"%EventDef {name} {number}"
        yield from (f"%  {field}" for field in fields)
        yield "%EndEventDef"


def _line(event: str, *values: str | float) -> str:
    return " ".join([str(_CODE[event]), *(_value(value) for value in values)])


def _value(value: str | float) -> str:
    if not isinstance(value, str):
        return f"{value:.9f}"
    plain = " ".join(value.replace('"', "'").split())  # quotes and ends of lines would end the field
    return plain if plain.isalnum() else f'"{plain}"'


def _machines(problem: Problem) -> list[str]:
    return list(dict.fromkeys(device.machine for device in problem.cluster.devices))


def _types(problem: Problem) -> Iterator[str]:
    yield _line("PajeDefineContainerType", "C", "0", "Cluster")
    yield _line("PajeDefineContainerType", "M", "C", "Machine")
    yield _line("PajeDefineContainerType", "D", "M", "Device")
    yield _line("PajeDefineStateType", "S", "D", "Task")
    yield _line("PajeDefineLinkType", "L", "C", "D", "D", "Transfer")
    for number, name in enumerate(problem.graph.categories or ("task",)):
        yield _line("PajeDefineEntityValue", f"v{number}", "S", name or "task", _COLOURS[number % len(_COLOURS)])
    yield _line("PajeDefineEntityValue", "t", "L", "data", "0.37 0.39 0.41")


def _containers(problem: Problem) -> Iterator[str]:
    machines = _machines(problem)
    yield _line("PajeCreateContainer", 0.0, "c", "C", "0", problem.cluster.name)
    for number, name in enumerate(machines):
        yield _line("PajeCreateContainer", 0.0, f"m{number}", "M", "c", name)
    for number, device in enumerate(problem.cluster.devices):
        yield _line("PajeCreateContainer", 0.0, f"d{number}", "D", f"m{machines.index(device.machine)}", device.name)


def _states(problem: Problem, schedule: Schedule, device: int) -> Iterator[_Timed]:
    graph = problem.graph
    tasks = np.flatnonzero(schedule.device == device)
    for task in tasks[np.lexsort((schedule.finish_s[tasks], schedule.start_s[tasks]))].tolist():
        start_s, finish_s = float(schedule.start_s[task]), float(schedule.finish_s[task])
        value = int(graph.category[task]) if graph.category is not None else 0
        yield start_s, _line("PajePushState", start_s, "S", f"d{device}", f"v{value}", graph.task_name(task))
        yield finish_s, _line("PajePopState", finish_s, "S", f"d{device}")


def _links(problem: Problem, transfers: Transfers) -> list[_Timed]:
    events: list[_Timed] = []
    for key in range(len(transfers.start_s)):
        ends = (
            ("PajeStartLink", transfers.start_s, transfers.source),
            ("PajeEndLink", transfers.finish_s, transfers.target),
        )
        for event, time_s, device in ends:
            at_s = float(time_s[key])
            events.append((at_s, _line(event, at_s, "L", "c", f"d{int(device[key])}", "t", f"k{key}")))
    return sorted(events, key=lambda event: event[0])
