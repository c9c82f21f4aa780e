"""Which task of a Nextflow run used the files of which: from its work directory, a WfFormat file, or its process graph.

The work directory tells it exactly: inputs are links into the directories of other tasks, and ``.command.run`` names
them. The graph of ``-with-dag`` has processes only, so edges between their tasks are assumed.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.dot_parser import parse_dot
from stretto.files.graphs.nextflow.trace import TraceRow

_STAGED = re.compile(r"/([0-9a-f]{2}/[0-9a-f]{4,30})/([^\s'\";]+)")
_SCRIPTS = (".command.run", ".command.stage")
_MAX_SCRIPT_BYTES = 16 * 2**20
_MERMAID_NODE = re.compile(r"(?P<id>[\w.-]+)(?P<open>\(\[|\[\(|\(\(|\[|\(|\{)\"?(?P<label>[^\])}\"]*)")
_MERMAID_ARROW = re.compile(r"^\s*(?P<source>[\w.-]+)[^\n]*?-->(?:\|[^|]*\|)?\s*(?P<target>[\w.-]+)")


@dataclass
class TaskEdges:
    """Edges between rows of a trace: (parent, child) with the bytes that go along.

    Attributes
    ----------
    basis
        Where they come from, for people; ``assumed ...`` where tasks were matched by rule.
    """

    basis: str
    size: dict[tuple[int, int], float] = field(default_factory=dict)

    def add(self, parent: int, child: int, size_bytes: float = 0.0) -> None:
        """Add an edge, or more bytes to it."""
        if parent != child:
            self.size[parent, child] = self.size.get((parent, child), 0.0) + size_bytes


def find_work(trace: Path, rows: Sequence[TraceRow]) -> Path | None:
    """Return the work directory that a trace tells, or one beside it; None where there is none with these tasks."""
    told = next((Path(row.workdir).parent.parent for row in rows if row.workdir), None)
    places = [trace.parent / "work", *(parent / "work" for parent in list(trace.resolve().parents)[1:3])]
    for place in [told, *places]:
        if place is not None and any(_directory(place, row) is not None for row in rows[:50]):
            return place
    return None


def _directory(work: Path, row: TraceRow) -> Path | None:
    """Return the directory of a task: the trace has only the first letters of its name."""
    first, _, rest = row.hash.partition("/")
    if not re.fullmatch(r"[0-9a-f]{2}", first) or not re.fullmatch(r"[0-9a-f]{2,30}", rest):
        return None
    try:
        names = sorted(name for name in os.listdir(work / first) if name.startswith(rest))
    except OSError:
        return None
    return work / first / names[0] if names else None


def edges_of_work(work: Path, rows: Sequence[TraceRow]) -> TaskEdges:
    """Return the edges that the staged inputs of a work directory tell."""
    owner: dict[str, int] = {}
    places = [_directory(work, row) for row in rows]
    for number, place in enumerate(places):
        if place is not None:
            owner[f"{place.parent.name}/{place.name}"] = number
    if not owner:
        raise InvalidInput(f"has no directory of any task of the trace, such as {rows[0].hash}", source=str(work))
    missing = sum(place is None for place in places)
    note = f"; {missing} of {len(rows)} tasks have no directory there" if missing else ""
    edges = TaskEdges(f"recorded (staged inputs of the work directory{note})")
    for number, place in enumerate(places):
        if place is not None:
            for key, name in sorted(set(_staged(place))):
                parent = owner.get(key)
                if parent is not None:
                    edges.add(parent, number, _size(work / key / name))
    return edges


def _staged(place: Path) -> Iterable[tuple[str, str]]:
    """Return what a task was given from other work directories: (directory, file)."""
    for entry in os.scandir(place):
        if entry.is_symlink():
            yield from ((found[1], found[2]) for found in [_STAGED.search(os.readlink(entry.path))] if found)
    for script in _SCRIPTS:
        try:
            with open(place / script, encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_SCRIPT_BYTES)
        except OSError:
            continue
        yield from _STAGED.findall(text.partition("nxf_stage()")[2].partition("\n}")[0] or text)


def _size(path: Path) -> float:
    try:
        return float(os.stat(path).st_size)
    except OSError:
        return 0.0


def edges_of_wfformat(graph: TaskGraph, rows: Sequence[TraceRow], source: str) -> TaskEdges:
    """Return the edges of a WfFormat file; its tasks are found by hash, by id, or by name."""
    task_of: dict[int, int] = {}
    keys = _row_keys(rows)
    for task in range(graph.num_tasks):
        name = graph.task_name(task)
        row = keys.get(name) if name in keys else keys.get(name.rpartition("_")[2] + "@" + _process_of(name))
        if row is not None:
            task_of[task] = row
    if len(task_of) < graph.num_tasks:
        lost = next(graph.task_name(task) for task in range(graph.num_tasks) if task not in task_of)
        raise InvalidInput(
            f"{graph.num_tasks - len(task_of)} of {graph.num_tasks} tasks are not in the trace, for instance {lost!r}:"
            " are both of one run?",
            source=source,
        )
    edges = TaskEdges(f"recorded ({Path(source).name})")
    for place in range(len(graph.object_task)):
        for reader in graph.object_reader[graph.object_ptr[place] : graph.object_ptr[place + 1]].tolist():
            parent = task_of[int(graph.object_task[place])]
            edges.add(parent, task_of[reader], float(graph.object_size[place]))
    return edges


def _row_keys(rows: Sequence[TraceRow]) -> dict[str, int]:
    keys: dict[str, int] = {}
    for number, row in enumerate(rows):
        keys.setdefault(row.name, number)
        keys.setdefault(row.hash, number)
        if row.task_id is not None:
            keys.setdefault(f"{row.task_id}@{row.process.replace(':', '.')}", number)
    return keys


def _process_of(name: str) -> str:
    return name.rpartition("_")[0].replace(":", ".")


def edges_of_dag(document: Document, rows: Sequence[TraceRow]) -> TaskEdges:
    """Return assumed edges from the graph of processes: by tag where that is unambiguous, otherwise all to all.

    A task is only a parent of tasks that were submitted after it had completed, where the trace has these times.
    """
    is_mermaid = document.text.lstrip().startswith(("flowchart", "graph "))
    arrows, label = _mermaid(document) if is_mermaid else _dot(document)
    tasks: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        tasks[row.process].append(number)
    process_of = {node: process for node, name in label.items() for process in tasks if _same(name, process)}
    unknown = sorted(set(tasks) - set(process_of.values()))
    if unknown:
        document.fail(f"has no process {unknown[0]!r}, which is in the trace: are both of one run?")
    edges = TaskEdges(f"assumed (edges by tag and time from the processes in {Path(document.name).name})")
    for source, target in _through_operators(arrows, process_of):
        _join(edges, rows, tasks[source], tasks[target])
    return edges


def _same(label: str, process: str) -> bool:
    return label == process or label.rpartition(":")[2] == process.rpartition(":")[2]


def _join(edges: TaskEdges, rows: Sequence[TraceRow], parents: list[int], children: list[int]) -> None:
    tags = [rows[number].tag for number in parents]
    for child in children:
        tag = rows[child].tag
        known = [number for number in parents if rows[number].tag == tag] if tag is not None else []
        chosen = known if known and len(set(tags)) == len(tags) else parents
        for parent in chosen:
            ended, begun = rows[parent].complete_s, rows[child].submit_s
            if ended is None or begun is None or ended <= begun:
                edges.add(parent, child)


def _dot(document: Document) -> tuple[list[tuple[str, str]], dict[str, str]]:
    graph = parse_dot(document)
    label = {name: attributes.get("label", name) for name, attributes in graph.nodes.items()}
    return [(edge.source, edge.target) for edge in graph.edges], label


def _mermaid(document: Document) -> tuple[list[tuple[str, str]], dict[str, str]]:
    label, arrows = {}, []
    for line in document.text.splitlines():
        for node in _MERMAID_NODE.finditer(line):
            if node["label"].strip() and node["id"] not in ("subgraph", "end"):
                label[node["id"]] = node["label"].strip()
        arrow = _MERMAID_ARROW.match(line)
        if arrow is not None:
            arrows.append((arrow["source"], arrow["target"]))
    return arrows, label


def _through_operators(arrows: list[tuple[str, str]], process_of: dict[str, str]) -> list[tuple[str, str]]:
    """Return pairs of processes with a path between them that touches no third one."""
    after: dict[str, list[str]] = defaultdict(list)
    for source, target in arrows:
        after[source].append(target)
    pairs: dict[tuple[str, str], None] = {}
    for node, process in process_of.items():
        open_, seen = list(after[node]), set[str]()
        while open_:
            other = open_.pop()
            if other in seen:
                continue
            seen.add(other)
            if other in process_of:
                pairs[process, process_of[other]] = None
            else:
                open_ += after[other]
    return [pair for pair in pairs if pair[0] != pair[1]]
