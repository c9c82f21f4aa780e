"""The machines on which a workflow was recorded, as nodes that pack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stretto.core.cluster import DEFAULT_BANDWIDTH, Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.provenance import MACHINES
from stretto.errors import InvalidInput

#: The name of this cluster wherever a cluster is asked for.
RECORDED_CLUSTER = "recorded"


def recorded_cluster(graph: TaskGraph) -> Cluster:
    """Return a node for each machine that the file of a graph names, with its cores and memory.

    Speeds are 1, so that recorded run times hold on every machine, and links are those of the shorthand: both are
    assumptions, and results say so (``core/notes.py``).
    """
    machines = graph.meta.get(MACHINES)
    if not isinstance(machines, (list, tuple)) or not machines:
        raise InvalidInput(
            f"graph {graph.name!r} names no machines: say -c node:COUNT*16c64GB, or give a cluster file",
            field="cluster",
        )
    nodes = [_node(machine, number) for number, machine in enumerate(machines)]
    if len({node.name for node in nodes}) != len(nodes):
        nodes = [_node(machine, number, is_numbered=True) for number, machine in enumerate(machines)]
    return Cluster.uniform(nodes, bandwidth=DEFAULT_BANDWIDTH, name=RECORDED_CLUSTER)


def _node(machine: object, number: int, *, is_numbered: bool = False) -> Device:
    facts: Mapping[str, Any] = machine if isinstance(machine, dict) else {}
    processor = facts.get("cpu")
    cores = processor.get("coreCount", processor.get("count")) if isinstance(processor, dict) else None
    label = str(facts.get("nodeName") or "machine")
    if not isinstance(cores, (int, float)) or not cores > 0:
        raise InvalidInput("states no cores (cpu.coreCount)", field=f"machine {label!r}")
    memory = facts.get("memoryInBytes")
    limit = float(memory) if isinstance(memory, (int, float)) and memory > 0 else float("inf")
    name = f"{label}-{number}" if is_numbered else label
    return Device(name, "cpu", 1.0, limit, float(cores), machine=name, gpus=0.0, packs=True)
