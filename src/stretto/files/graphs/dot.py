"""Graphviz DOT: nodes are tasks, arrows are data.

Attributes of a node, first match wins: ``duration``, ``runtime``, ``work``, ``weight``, ``size`` in seconds;
``cores``; ``memory`` in bytes; ``category``, ``op`` or ``type``. Attributes of an arrow: ``size``, ``bytes``, ``data``,
``weight`` in bytes; arrows of one node with the same ``object`` carry one and the same object.
A file in which no node has a duration describes tasks of one second; one in which only some
have it is refused. ``transfer_unit = "seconds"`` on the graph turns sizes into transfer times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.dot_parser import DotGraph, parse_dot
from stretto.files.sniff import graph_name

DURATION_KEYS = ("duration", "runtime", "work", "weight", "size")
SIZE_KEYS = ("size", "bytes", "data", "weight")
CATEGORY_KEYS = ("category", "op", "type")
_LOOK = re.compile(  # possessive, so that a file of many comments cannot make it try them all again
    rb"\A(?:\xef\xbb\xbf)?(?:\s|//[^\n]*+\n|(?>/\*.*?\*/)|\#[^\n]*+\n)*+(?:strict\s++)?digraph\b",
    re.DOTALL | re.IGNORECASE,
)


class Dot:
    """Reads and writes one graph per file."""

    summary = "Graphviz DOT: nodes with a duration, arrows with a size"
    endings = ("dot", "gv")

    def matches(self, document: Document) -> bool:
        return _LOOK.match(document.head) is not None

    def read(self, document: Document) -> TaskGraph:
        parsed = parse_dot(document)
        unit = parsed.attributes.get("transfer_unit", "bytes")
        if unit not in ("bytes", "seconds"):
            document.fail(f"{unit!r} is neither bytes nor seconds", field="transfer_unit")
        build = GraphBuilder(
            parsed.name or graph_name(document), transfer_unit="seconds" if unit == "seconds" else "bytes"
        )
        build.meta["format"] = "dot"
        _tasks(document, parsed, build)
        _objects(document, parsed, build)
        try:
            return build.graph()
        except InvalidInput as error:
            raise error.at(document.name) from None

    def loses(self, graph: TaskGraph) -> tuple[str, ...]:
        """Say what of a graph this format cannot hold."""
        checks = {
            "durations per device kind": bool(graph.kinds),
            "resident memory": graph.resident_bytes is not None or graph.weights is not None,
            "renewable resources": graph.resources is not None,
        }
        return tuple(what for what, is_lost in checks.items() if is_lost)

    def write(self, graph: TaskGraph) -> bytes:
        lines = [f"digraph {_quote(graph.name)} {{"]
        if graph.transfer_unit != "bytes":
            lines.append(f"  transfer_unit = {graph.transfer_unit};")
        for task in range(graph.num_tasks):
            lines.append(f"  {_quote(graph.task_name(task))} [{_node_attributes(graph, task)}];")
        source, target, size = graph.edges
        num_readers = np.diff(graph.object_ptr)
        for a, b, amount, item in zip(
            source.tolist(), target.tolist(), size.tolist(), graph.read_object.tolist(), strict=True
        ):
            shared = f", object={item}" if num_readers[item] > 1 else ""
            lines.append(f"  {_quote(graph.task_name(a))} -> {_quote(graph.task_name(b))} [size={amount!r}{shared}];")
        lines.append("}")
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _first(attributes: Mapping[str, str], keys: tuple[str, ...]) -> tuple[str, str] | None:
    return next(((key, attributes[key]) for key in keys if key in attributes), None)


def _tasks(document: Document, parsed: DotGraph, build: GraphBuilder) -> None:
    timed = any(_first(attributes, DURATION_KEYS) for attributes in parsed.nodes.values())
    build.meta["unit_durations"] = not timed
    if not timed:
        build.meta[DURATIONS] = "assumed (1 s for every task: the file states none)"
    for name, attributes in parsed.nodes.items():
        line = parsed.node_line[name]
        found = _first(attributes, DURATION_KEYS)
        if found is None and timed:
            document.fail(
                f"no duration (one of {', '.join(DURATION_KEYS)}), while others have it",
                line=line,
                field=f"node {name}",
            )
        key, value = found or ("duration", "1")
        category = _first(attributes, CATEGORY_KEYS)
        build.task(
            name,
            document.number(value, f"node {name}.{key}", line=line),
            cores=document.number(attributes.get("cores", "0"), f"node {name}.cores", line=line),
            memory_bytes=document.number(attributes.get("memory", "0"), f"node {name}.memory", line=line),
            category=category[1] if category else "",
        )


def _objects(document: Document, parsed: DotGraph, build: GraphBuilder) -> None:
    shared: dict[tuple[int, str], tuple[int, float]] = {}
    for edge in parsed.edges:
        source, target = build.find(edge.source, wanted_by="edge"), build.find(edge.target, wanted_by="edge")
        if source == target:
            document.fail("the task depends on itself", line=edge.line, field=f"node {edge.source}")
        key, value = _first(edge.attributes, SIZE_KEYS) or ("size", "0")
        size = document.number(value, f"edge {edge.source} -> {edge.target}.{key}", line=edge.line)
        label = edge.attributes.get("object")
        if label is None:
            build.edge(source, target, size)
            continue
        if (source, label) not in shared:
            shared[source, label] = (build.object(source, size), size)
        handle, known = shared[source, label]
        if known != size:
            document.fail(f"object {label!r} has size {known:g} and {size:g}", line=edge.line, field="object")
        build.read(target, handle)


def _node_attributes(graph: TaskGraph, task: int) -> str:
    duration = float(graph.work_s[task])
    if not np.isfinite(duration):
        raise InvalidInput("the task has no finite work", field=f"task {graph.task_name(task)!r}")
    parts = [f"duration={duration!r}"]
    if graph.cores is not None and graph.cores[task]:
        parts.append(f"cores={float(graph.cores[task])!r}")
    if graph.memory_bytes is not None and graph.memory_bytes[task]:
        parts.append(f"memory={float(graph.memory_bytes[task])!r}")
    if graph.category_name(task):
        parts.append(f"category={_quote(graph.category_name(task))}")
    return ", ".join(parts)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FORMAT = Dot()
