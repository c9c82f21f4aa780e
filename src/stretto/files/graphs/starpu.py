"""StarPU task records (``tasks.rec``): what a real run submitted, where it ran and how long.

A record is a block of ``Field: value`` lines (a recfile); times are milliseconds. Data flows
through handles: a task that reads a handle needs what the last task before it, in the order
of submission, wrote there. ``DependsOn`` adds the pure precedences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.files.document import Document
from stretto.files.sniff import graph_name

Key = tuple[str, str]


@dataclass(frozen=True)
class _Record:
    line: int
    fields: dict[str, str]

    def get(self, name: str) -> str:
        return self.fields.get(name, "")

    @property
    def job(self) -> str:
        return self.get("JobId")

    @property
    def codelet(self) -> str:
        return self.get("Model") or self.get("Name") or "task"

    @property
    def key(self) -> Key:
        """Tasks with equal keys cost the same: StarPU's own models use this pair."""
        return self.codelet, self.get("Footprint")

    @property
    def kind(self) -> str:
        """``cpu`` for main memory, ``gpu`` for another memory node, empty when not recorded."""
        node = self.get("MemoryNode")
        if not node:
            return ""
        return "cpu" if node == "0" else "gpu"


@dataclass(frozen=True)
class StarpuFormat:
    """Reads one graph of the recorded tasks, category = codelet.

    Where the memory nodes are recorded, durations are per kind: on the kind that ran a task
    its own time, on the other one the mean of the tasks with the same codelet and footprint
    there, and its own time where none ran there. Control records without a run
    (``WontUse``) are left out and counted in ``meta["num_control"]``; tasks that were never
    executed keep a duration of zero and are counted in ``meta["num_unexecuted"]``.
    """

    summary: str = "StarPU task record (tasks.rec): recorded tasks, data handles and durations"
    endings: tuple[str, ...] = ("rec",)

    def matches(self, document: Document) -> bool:
        # The first record may be cut off by the head, but these fields come early in it.
        lines = document.head.split(b"\n")
        return any(line.startswith(b"JobId: ") for line in lines) and any(
            line.startswith((b"Tag: ", b"DependsOn:", b"SubmitOrder: ", b"Model: ")) for line in lines
        )

    def read(self, document: Document) -> TaskGraph:
        records = list(_records(document))
        normal = [record for record in records if record.get("Control") in ("", "Normal")]
        order = sorted(range(len(normal)), key=lambda i: (_submit_order(document, normal[i], i), i))
        normal = [normal[i] for i in order]
        build = GraphBuilder(graph_name(document))
        build.meta[DURATIONS] = RECORDED
        build.meta["num_control"] = len(records) - len(normal)
        _add_tasks(document, build, normal)
        flows = _add_flows(document, build, normal)
        _add_precedences(document, build, normal, flows, records)
        return build.graph()


def _records(document: Document) -> Iterator[_Record]:
    fields: dict[str, str] = {}
    start = 1
    for line, text in enumerate([*document.text.split("\n"), ""], start=1):
        if not text.strip():
            if "JobId" in fields:
                yield _Record(start, fields)
            elif fields:
                document.fail("the record has no JobId", line=start)
            fields = {}
        elif text.startswith(("#", "%")):
            continue
        else:
            name, colon, value = text.partition(":")
            if not colon:
                document.fail(f"{text[:80]!r} is not 'Field: value'", line=line)
            if not fields:
                start = line
            fields[name.strip()] = value.strip()


def _submit_order(document: Document, record: _Record, position: int) -> float:
    text = record.get("SubmitOrder")
    return document.number(text, "SubmitOrder", line=record.line) if text else float(position)


def _seconds(document: Document, record: _Record) -> float | None:
    """Return the recorded duration, or None for a task that never ran."""
    if not record.get("EndTime"):
        return None
    start_ms = document.number(record.get("StartTime") or 0, "StartTime", line=record.line)
    end_ms = document.number(record.get("EndTime"), "EndTime", line=record.line)
    if end_ms < start_ms:
        document.fail(f"ends at {end_ms} ms, before its start at {start_ms} ms", line=record.line, field="EndTime")
    return (end_ms - start_ms) / 1e3


def _add_tasks(document: Document, build: GraphBuilder, records: list[_Record]) -> None:
    seconds = [_seconds(document, record) for record in records]
    measured: dict[tuple[Key, str], list[float]] = {}
    for record, duration in zip(records, seconds, strict=True):
        if duration is not None and record.kind:
            measured.setdefault((record.key, record.kind), []).append(duration)
    kinds = sorted({kind for _, kind in measured})
    for record, duration in zip(records, seconds, strict=True):
        if record.job in build:
            document.fail(f"job {record.job!r} is recorded twice", line=record.line, field="JobId")
        own = 0.0 if duration is None else duration
        table = {}
        for kind in kinds:
            others = measured.get((record.key, kind), [])
            table[kind] = own if kind == record.kind or not others else sum(others) / len(others)
        build.task(record.job, own, durations=table or None, category=record.codelet)
    build.meta["num_unexecuted"] = sum(duration is None for duration in seconds)


def _add_flows(document: Document, build: GraphBuilder, records: list[_Record]) -> set[tuple[int, int]]:
    """Connect readers to the last writer of each handle; return the pairs of tasks connected."""
    version: dict[str, tuple[int, int]] = {}
    flows: set[tuple[int, int]] = set()
    for task, record in enumerate(records):
        handles = record.get("Handles").split()
        modes = record.get("Modes").split()
        sizes = record.get("Sizes").split()
        if not len(handles) == len(modes) == len(sizes):
            if modes and sizes:
                document.fail(
                    f"{len(handles)} handles, {len(modes)} modes, {len(sizes)} sizes", line=record.line, field="Handles"
                )
            continue
        for handle, mode in zip(handles, modes, strict=True):
            # A reduction (X) accumulates into the handle: it neither waits for nor sees the others.
            if "R" in mode and handle in version:
                writer, data = version[handle]
                if writer != task:
                    build.read(task, data)
                    flows.add((writer, task))
        for handle, mode, size in zip(handles, modes, sizes, strict=True):
            if "W" in mode:
                version[handle] = task, build.object(task, document.number(size, "Sizes", line=record.line))
    return flows


def _add_precedences(
    document: Document,
    build: GraphBuilder,
    records: list[_Record],
    flows: set[tuple[int, int]],
    all_records: list[_Record],
) -> None:
    needs = {record.job: record.get("DependsOn").split() for record in all_records}
    done: dict[int, int] = {}
    missing: set[str] = set()
    for task, record in enumerate(records):
        if record.job in needs[record.job]:
            document.fail(f"job {record.job!r} depends on itself", line=record.line, field="DependsOn")
        for job in _parents(build, needs, record.job, missing):
            parent = build.find(job, wanted_by=f"job {record.job}")
            if (parent, task) in flows:
                continue
            if parent not in done:
                done[parent] = build.object(parent, 0.0)
            build.read(task, done[parent])
    build.meta["num_missing_parents"] = len(missing)


def _parents(build: GraphBuilder, needs: dict[str, list[str]], job: str, missing: set[str]) -> list[str]:
    """Return the tasks that a job waits for, also through control records, which are no tasks."""
    found: dict[str, None] = {}
    seen = {job}
    stack = list(reversed(needs[job]))
    while stack:
        parent = stack.pop()
        if parent in seen:
            continue
        seen.add(parent)
        if parent in build:
            found[parent] = None
        elif parent in needs:
            stack += needs[parent]
        else:
            missing.add(parent)  # internal tasks are often left out of the record
    return list(found)


FORMAT = StarpuFormat()
