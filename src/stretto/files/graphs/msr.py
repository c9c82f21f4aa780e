"""Graphs of the MSR dnn-partitioning project: neural networks on CPUs and accelerators (JSON).

Latencies are milliseconds. The edges' ``cost`` is a transfer *time*: in most of the published
files it is milliseconds too, at 2 GiB/s, but in the layer graphs of the throughput set it is
seconds, a thousand times smaller for the same bytes. The unit is therefore told from the data:
costs that would mean more than 100 GB/s when read as milliseconds are seconds.
``meta["edge_cost_unit"]`` says which was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, MEASURED
from stretto.files.document import Document
from stretto.files.fields import as_array, as_name, as_object, member
from stretto.files.sniff import graph_name

#: No link of that time moved this much; beyond it the costs cannot be milliseconds.
MAX_PLAUSIBLE_BYTES_PER_S = 1e11
_LIMITS = {"maxSizePerFPGA": "accelerator_memory_bytes", "maxFPGAs": "num_accelerators", "maxCPUs": "num_cpus"}


@dataclass(frozen=True)
class MsrFormat:
    """Reads one graph with durations for the kinds ``cpu`` and ``accelerator``.

    A node's ``size`` (weights and buffers) becomes resident bytes. Edges of one source with
    one cost carry one object, since they are one tensor. The devices that the authors used
    are in ``meta``.
    """

    summary: str = "MSR dnn-partitioning graph (JSON): measured CPU and accelerator latencies"
    endings: tuple[str, ...] = ("json",)

    def matches(self, document: Document) -> bool:
        head = document.head
        return head.lstrip()[:1] == b"{" and (b'"fpgaLatency"' in head or b'"maxFPGAs"' in head)

    def read(self, document: Document) -> TaskGraph:
        root = as_object(document, document.json, "document")
        build = GraphBuilder(graph_name(document), transfer_unit="seconds")
        for key, name in _LIMITS.items():
            if key in root:
                build.meta[name] = document.number(root[key], key)
        ids = _read_nodes(document, build, as_array(document, member(document, root, "nodes", "document"), "nodes"))
        edges = as_array(document, member(document, root, "edges", "document"), "edges")
        _read_edges(document, build, ids, edges)
        return build.graph()


def _read_nodes(document: Document, build: GraphBuilder, nodes: list[object]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for position, item in enumerate(nodes):
        field = f"nodes[{position}]"
        node = as_object(document, item, field)
        key = as_name(document, member(document, node, "id", field), f"{field}.id")
        if key in ids:
            document.fail(f"two nodes have the id {key}", field=f"{field}.id")
        cpu_s = document.number(member(document, node, "cpuLatency", field), f"{field}.cpuLatency") / 1e3
        accelerator_s = math.inf
        if node.get("supportedOnFpga", True):
            accelerator_s = document.number(member(document, node, "fpgaLatency", field), f"{field}.fpgaLatency") / 1e3
        name = as_name(document, node.get("name", key), f"{field}.name")
        ids[key] = build.task(
            name if name not in build else f"{name}#{key}",
            cpu_s,
            durations={"cpu": cpu_s, "accelerator": accelerator_s},
            resident_bytes=document.number(node.get("size", 0), f"{field}.size"),
            category="backward" if node.get("isBackwardNode") else "forward",
        )
    return ids


def _read_edges(document: Document, build: GraphBuilder, ids: dict[str, int], edges: list[object]) -> None:
    rows: list[tuple[int, int, float]] = []
    seconds_per_byte: list[float] = []
    for position, item in enumerate(edges):
        field = f"edges[{position}]"
        edge = as_object(document, item, field)
        ends = []
        for key in ("sourceId", "destId"):
            node = as_name(document, member(document, edge, key, field), f"{field}.{key}")
            if node not in ids:
                document.fail(f"there is no node {node}", field=f"{field}.{key}")
            ends.append(ids[node])
        cost = document.number(member(document, edge, "cost", field), f"{field}.cost")
        size_bytes = document.number(edge.get("size", 0), f"{field}.size")
        if size_bytes > 0 and cost > 0:
            seconds_per_byte.append(cost / 1e3 / size_bytes)
        rows.append((ends[0], ends[1], cost))
    are_seconds = bool(seconds_per_byte) and median(seconds_per_byte) < 1 / MAX_PLAUSIBLE_BYTES_PER_S
    build.meta[DURATIONS] = MEASURED
    build.meta["edge_cost_unit"] = "s" if are_seconds else "ms"
    objects: dict[tuple[int, float], int] = {}
    for source, target, cost in rows:
        cost_s = cost if are_seconds else cost / 1e3
        if (source, cost_s) not in objects:
            objects[source, cost_s] = build.object(source, cost_s)
        build.read(target, objects[source, cost_s])


FORMAT = MsrFormat()
