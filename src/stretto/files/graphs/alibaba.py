"""Alibaba 2018 batch jobs, one JSON object per line; the task names hold the graph.

``R3_1_2`` is task 3 and runs after tasks 1 and 2; its letters say what it does (M map, R
reduce, J join). Names of another shape (``MergeTask``, ``task_x7``) are independent tasks.
A suffix such as ``_Stg8`` and a number that the trace cut off are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.fields import as_array, as_name, as_object, member
from stretto.files.sniff import graph_name

_OWN = re.compile(r"^([A-Za-z]+)(\d{1,9})$")
_LETTERS = re.compile(r"^[A-Za-z]+")
#: ``cpu_requested`` counts hundredths of a core.
UNITS_PER_CORE = 100.0


@dataclass(frozen=True)
class AlibabaFormat:
    """Reads a workload of one graph per job, arriving when its first task started.

    Arrivals count from the earliest job. A task stands for its ``instances``, which run side
    by side: its work is their mean duration, and ``meta["num_instances"]`` keeps their number.
    Edges are pure precedence. ``meta["num_missing_parents"]`` counts parents that a name
    mentions and the job lacks. Durations are not edited where the status is not Terminated;
    ``meta["num_unfinished"]`` counts those tasks.
    """

    summary: str = "Alibaba 2018 batch jobs (JSON lines): graphs encoded in task names, with arrivals"
    endings: tuple[str, ...] = ("jsonl",)

    def matches(self, document: Document) -> bool:
        head = document.head.lstrip()
        return head[:1] == b"{" and b'"job"' in head and b'"tasks"' in head and b'"cpu_requested"' in head

    def read(self, document: Document) -> Workload:
        graphs: list[TaskGraph] = []
        starts: list[float] = []
        for line, record in _records(document):
            try:
                graph, start_s = _read_job(document, record, line)
            except InvalidInput as error:
                # A cycle is found by the graph, which knows no line.
                raise InvalidInput(error.message, source=document.name, line=line, field=error.field) from None
            graphs.append(graph)
            starts.append(start_s)
        if not graphs:
            document.fail("the file holds no jobs")
        earliest = min((start for start in starts if start > 0), default=0.0)
        arrivals = [max(0.0, start - earliest) for start in starts]
        return Workload.of(graphs, arrivals_s=arrivals, name=graph_name(document))


def _records(document: Document) -> Iterator[tuple[int, dict[str, object]]]:
    for line, text in enumerate(document.text.split("\n"), start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            document.fail(f"invalid JSON: {error}"[:200], line=line)
        yield line, as_object(document, value, "job", line=line)


def _read_job(document: Document, record: dict[str, object], line: int) -> tuple[TaskGraph, float]:
    """Return the graph of a job and its start; zero when no task has started."""
    build = GraphBuilder(as_name(document, member(document, record, "job", "job", line=line), "job", line=line))
    tasks = as_array(document, member(document, record, "tasks", "job", line=line), "tasks", line=line)
    by_number: dict[str, int] = {}
    parents: list[tuple[int, list[str]]] = []
    instances: list[float] = []
    start_s: list[float] = []
    num_unfinished = 0
    for item in tasks:
        task = as_object(document, item, "tasks", line=line)
        name = as_name(document, member(document, task, "name", "tasks", line=line), "name", line=line)
        index = _add_task(document, build, task, name, line)
        number, needed = parse_name(name)
        if number is not None:
            by_number.setdefault(number, index)
            parents.append((index, needed))
        instances.append(_optional(document, task, "instances", name, line))
        start_s.append(_optional(document, task, "start_time", name, line))
        num_unfinished += task.get("status", "Terminated") != "Terminated"
    num_missing = _add_edges(build, parents, by_number)
    build.meta |= {
        DURATIONS: RECORDED,
        "num_instances": tuple(instances),
        "num_missing_parents": num_missing,
        "num_unfinished": num_unfinished,
    }
    return build.graph(), min((start for start in start_s if start > 0), default=0.0)


def _add_task(document: Document, build: GraphBuilder, task: dict[str, object], name: str, line: int) -> int:
    key = "actual_duration" if "actual_duration" in task else "duration"
    letters = _LETTERS.match(name)
    return build.task(
        name if name not in build else f"{name}#{build.num_tasks}",
        document.number(task.get(key), f"{name} {key}", line=line),
        cores=_optional(document, task, "cpu_requested", name, line) / UNITS_PER_CORE,
        category=letters.group() if letters else "task",
    )


def _optional(document: Document, task: dict[str, object], key: str, name: str, line: int) -> float:
    """Return a number, or zero where the trace has none: it writes gaps as null and as NaN."""
    value = task.get(key)
    return 0.0 if value is None or value != value else document.number(value, f"{name} {key}", line=line)


def parse_name(name: str) -> tuple[str | None, list[str]]:
    """Return a task's number and those of its parents; no number for an independent task."""
    own, *rest = name.split("_")
    match = _OWN.match(own)
    if match is None:
        return None, []
    numbers = [part.lstrip("0") or "0" for part in rest if part.isascii() and part.isdecimal()]
    return match.group(2).lstrip("0") or "0", list(dict.fromkeys(numbers))


def _add_edges(build: GraphBuilder, parents: list[tuple[int, list[str]]], by_number: dict[str, int]) -> int:
    num_missing = 0
    outputs: dict[int, int] = {}
    for task, numbers in parents:
        for number in numbers:
            if number not in by_number:
                num_missing += 1
                continue
            parent = by_number[number]
            if parent not in outputs:
                outputs[parent] = build.object(parent, 0.0)
            build.read(task, outputs[parent])
    return num_missing


FORMAT = AlibabaFormat()
