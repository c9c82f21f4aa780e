"""Pajé traces: every task once, on its device, at its time; read back by a small interpreter of the format."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import Any

import pytest

import stretto
from stretto.core.graph import TaskGraph
from stretto.files.paje import write_paje


def _events(text: str) -> list[tuple[str, dict[str, str]]]:
    """Read the definitions of a trace, then its events by the names of their fields."""
    definitions: dict[str, tuple[str, list[str]]] = {}
    events: list[tuple[str, dict[str, str]]] = []
    current: tuple[str, list[str]] = ("", [])
    for line in text.splitlines():
        if line.startswith("%EventDef"):
            _, name, code = line.split()
            current = definitions[code] = (name, [])
        elif line.startswith("%EndEventDef"):
            continue
        elif line.startswith("%"):
            current[1].append(line[1:].split()[0])
        else:
            code, *values = shlex.split(line)
            name, fields = definitions[code]
            events.append((name, dict(zip(fields, values, strict=True))))
    return events


def _spans(events: list[tuple[str, dict[str, str]]]) -> dict[str, tuple[str, float, float]]:
    """Play the states: each task's device, start and end."""
    spans: dict[str, Any] = {}
    stack: dict[str, list[str]] = defaultdict(list)
    last = 0.0
    for name, fields in events:
        if "Time" in fields:
            assert float(fields["Time"]) >= last
            last = float(fields["Time"])
        if name == "PajePushState":
            stack[fields["Container"]].append(fields["Task"])
            spans[fields["Task"]] = [fields["Container"], float(fields["Time"]), None]
        elif name == "PajePopState":
            spans[stack[fields["Container"]].pop()][2] = float(fields["Time"])
    assert not any(stack.values())
    return {task: tuple(span) for task, span in spans.items()}


@pytest.mark.parametrize("contention", ["none", "fair"])
def test_tasks_and_transfers_are_where_and_when_they_were(contention: Any) -> None:
    graph = stretto.workloads.generate("montage")
    result = stretto.plan(graph, "cpu:3,gpu:2@10MB/s", contention=contention)
    schedule = stretto.simulate(result, contention=contention, record_transfers=True)
    events = _events(write_paje(result.problem, schedule).decode())
    spans = _spans(events)
    assert len(spans) == graph.num_tasks
    for task in range(graph.num_tasks):
        device, start_s, finish_s = spans[graph.task_name(task)]
        assert device == f"d{schedule.device[task]}"
        assert start_s == pytest.approx(schedule.start_s[task], abs=1e-8)
        assert finish_s == pytest.approx(schedule.finish_s[task], abs=1e-8)
    assert schedule.transfers is not None
    begun = {fields["Key"]: fields for name, fields in events if name == "PajeStartLink"}
    ended = {fields["Key"]: fields for name, fields in events if name == "PajeEndLink"}
    assert set(begun) == set(ended)
    assert len(begun) == len(schedule.transfers.start_s) > 0
    assert all(float(begun[key]["Time"]) <= float(ended[key]["Time"]) for key in begun)
    made = {fields["Alias"] for name, fields in events if name == "PajeCreateContainer"}
    gone = {fields["Name"] for name, fields in events if name == "PajeDestroyContainer"}
    assert made == gone == {"c", "d0", "d1", "d2", "d3", "d4", *(alias for alias in made if alias[0] == "m")}


def test_tasks_of_no_duration_and_awkward_names() -> None:
    graph = TaskGraph.from_edges([0.0, 0.0, 1.0], [0, 1], [1, 2], 0.0, task_names=('say "hi"', "two\nlines", "plain"))
    result = stretto.plan(graph, "cpu:1")
    spans = _spans(_events(write_paje(result.problem, result.schedule).decode()))
    assert spans == {"say 'hi'": ("d0", 0.0, 0.0), "two lines": ("d0", 0.0, 0.0), "plain": ("d0", 0.0, 1.0)}
