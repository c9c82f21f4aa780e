"""Estee benchmark sets: several graphs in a table, each a string of JSON.

The table is a data frame written by column: ``graph_name``, ``graph_id`` and ``graph`` map
row numbers to values. A task has a duration ``d`` (seconds), a user's estimate ``e_d``,
``cpus``, output sizes in MiB, and inputs as pairs of a task and one of its outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.files.document import Document
from stretto.files.fields import as_array, as_index, as_name, as_object, member
from stretto.files.sniff import graph_name

MIB = 2.0**20


@dataclass(frozen=True)
class EsteeFormat:
    """Reads a workload of all graphs, which arrive together; each output is a shared object.

    Estimates, where a task has one, are in ``meta["estimate_s"]``.
    """

    summary: str = "Estee benchmark set (JSON): graphs with durations, cores and output sizes"
    endings: tuple[str, ...] = ("json",)

    def matches(self, document: Document) -> bool:
        head = document.head
        columns = b'"graph_id"' in head or b'"graph"' in head
        return head.lstrip()[:1] == b"{" and b'"graph_name"' in head and columns

    def read(self, document: Document) -> Workload:
        root = as_object(document, document.json, "document")
        names = as_object(document, member(document, root, "graph_name", "document"), "graph_name")
        rows = as_object(document, member(document, root, "graph", "document"), "graph")
        if not rows:
            document.fail("the table holds no graphs", field="graph")
        graphs = []
        for row, text in rows.items():
            name = as_name(document, names.get(row, row), f"graph_name[{row}]")
            # The inner document gets a name of its own, so that errors say which graph.
            if not isinstance(text, str):
                document.fail("expected a graph as text", field=f"graph[{row}]")
            inner = Document(f"{document.name}#{name}", text.encode("utf-8", "surrogatepass"))
            graphs.append(_read_graph(inner, name))
        return Workload.of(graphs, name=graph_name(document))


def _read_graph(document: Document, name: str) -> TaskGraph:
    tasks = as_array(document, document.json, "graph")
    build = GraphBuilder(name)
    outputs: list[list[int]] = []
    inputs: list[list[object]] = []
    estimates: list[float | None] = []
    for position, item in enumerate(tasks):
        field = f"task {position}"
        task = as_object(document, item, field)
        index = build.task(
            f"t{position}",
            document.number(member(document, task, "d", field), f"{field} d"),
            cores=document.number(task.get("cpus", 1), f"{field} cpus"),
        )
        sizes = as_array(document, task.get("outputs", []), f"{field} outputs")
        outputs.append([build.object(index, _size_bytes(document, size, f"{field} outputs")) for size in sizes])
        inputs.append(as_array(document, task.get("inputs", []), f"{field} inputs"))
        estimate = task.get("e_d")
        estimates.append(None if estimate is None else document.number(estimate, f"{field} e_d"))
    for reader, references in enumerate(inputs):
        for reference in references:
            build.read(reader, _object(document, reference, outputs, f"task {reader} inputs"))
    if any(estimate is not None for estimate in estimates):
        build.meta["estimate_s"] = tuple(estimates)
    return build.graph()


def _size_bytes(document: Document, value: object, field: str) -> float:
    size = member(document, value, "s", field) if isinstance(value, dict) else value
    return document.number(size, field) * MIB


def _object(document: Document, reference: object, outputs: list[list[int]], field: str) -> int:
    pair = as_array(document, reference, field)
    if len(pair) != 2:
        document.fail(f"{str(pair)[:80]} is not a pair of a task and an output", field=field)
    task = as_index(document, pair[0], len(outputs), field)
    return outputs[task][as_index(document, pair[1], len(outputs[task]), field)]


FORMAT = EsteeFormat()
