"""PSPLIB single-mode projects (.sm): tasks that share renewable resources (RCPSP)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.graph import Resources, TaskGraph
from stretto.files.document import Document
from stretto.files.sniff import graph_name

_STARS = re.compile(r"^\*{10,}\s*$")
_COUNT = re.compile(r"^\s*-?\s*([A-Za-z][A-Za-z ()/.]*?)\s*:\s*(\d{1,9})\b")
_SECTIONS = ("PRECEDENCE RELATIONS", "REQUESTS/DURATIONS", "RESOURCEAVAILABILITIES")
MAX_RESOURCES = 1000
Rows = list[tuple[int, list[int]]]


@dataclass(frozen=True)
class PsplibFormat:
    """Reads one project; one time unit is one second, and edges carry no data.

    The artificial first and last job stay as tasks of no length. The horizon and the other
    counts of the header are in ``meta``.
    """

    summary: str = "PSPLIB project (.sm): precedence and renewable resources (RCPSP)"
    endings: tuple[str, ...] = ("sm",)

    def matches(self, document: Document) -> bool:
        return b"PRECEDENCE RELATIONS" in document.head and b"renewable" in document.head

    def read(self, document: Document) -> TaskGraph:
        header, sections = _split(document)
        if header.get("nonrenewable", 0) or header.get("doubly constrained", 0):
            document.fail("only renewable resources are supported", field="RESOURCES")
        durations, demand = _requests(document, sections["REQUESTS/DURATIONS"])
        build = GraphBuilder(graph_name(document))
        build.meta |= {key: header[key] for key in ("horizon", "projects") if key in header}
        for number, duration in durations.items():
            build.task(f"j{number}", float(duration))
        index = {number: task for task, number in enumerate(durations)}
        _add_edges(document, build, index, sections["PRECEDENCE RELATIONS"])
        build.resources = _resources(document, demand, sections["RESOURCEAVAILABILITIES"])
        return build.graph()


def _split(document: Document) -> tuple[dict[str, int], dict[str, Rows]]:
    """Return the header's counts, and the rows of integers of each section with their lines."""
    header: dict[str, int] = {}
    sections: dict[str, Rows] = {}
    current: Rows | None = None
    for line, text in enumerate(document.text.splitlines(), start=1):
        title = text.strip().rstrip(":")
        if title in _SECTIONS:
            current = sections[title] = []
        elif _STARS.match(text):
            current = None
        elif current is not None:
            row = _integers(document, text, line)
            if row:
                current.append((line, row))
        elif match := _COUNT.match(text):
            header[match.group(1).strip().lower()] = int(match.group(2))
    for name in _SECTIONS:
        if not sections.get(name):
            document.fail("the section is missing or empty", field=name)
    return header, sections


def _integers(document: Document, text: str, line: int) -> list[int]:
    """Return a row of integers; headings and rules have none."""
    words = text.split()
    if not words or not words[0].lstrip("-").isdecimal():
        return []
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) <= 9):
            document.fail(f"{word[:40]!r} is not a count", line=line)
    return [int(word) for word in words]


def _requests(document: Document, rows: Rows) -> tuple[dict[int, int], list[list[int]]]:
    durations: dict[int, int] = {}
    demand: list[list[int]] = []
    for line, row in rows:
        if len(row) < 4:
            # A second mode omits the job's number, so it also ends up here or below.
            document.fail("expected job, mode, duration and requests", line=line)
        number, mode, duration, *requests = row
        if mode != 1 or number in durations:
            document.fail(f"job {number} has several modes; only single-mode projects are supported", line=line)
        if demand and len(requests) != len(demand[0]):
            document.fail(f"{len(requests)} requests, where other jobs have {len(demand[0])}", line=line)
        durations[number] = duration
        demand.append(requests)
    return durations, demand


def _add_edges(document: Document, build: GraphBuilder, index: dict[int, int], rows: Rows) -> None:
    for line, row in rows:
        if len(row) < 3 or len(row) != 3 + row[2]:
            document.fail("expected job, modes, number of successors and that many successors", line=line)
        for number in (row[0], *row[3:]):
            if number not in index:
                document.fail(f"job {number} has no duration", line=line)
        if row[0] in row[3:]:
            document.fail(f"job {row[0]} follows itself", line=line)
        if row[3:]:
            done = build.object(index[row[0]], 0.0)
            for number in row[3:]:
                build.read(index[number], done)


def _resources(document: Document, demand: list[list[int]], rows: Rows) -> Resources:
    line, capacity = rows[0]
    if len(capacity) != len(demand[0]) or len(capacity) > MAX_RESOURCES:
        document.fail(f"{len(capacity)} capacities for {len(demand[0])} resources", line=line)
    table = np.array(demand, dtype=np.int32)
    over = np.argwhere(table > np.array(capacity))
    if len(over):
        task, resource = (int(x) for x in over[0])
        document.fail(
            f"task {task} needs {table[task, resource]} of R{resource + 1}, which has {capacity[resource]}", line=line
        )
    names = tuple(f"R{number + 1}" for number in range(len(capacity)))
    return Resources(names, np.array(capacity, dtype=np.int32), table)


FORMAT = PsplibFormat()
