"""The shapes of requests: what a request takes in one partition, as numbers, and why it cannot run there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.request import ANY_GPU, ResourceRequest
from stretto.core.site import MIB, Partition, Site
from stretto.queues.nodes.kernels.arrays import (
    CPUS,
    GPUS,
    MEMORY,
    NUM_COMMON,
    UNLIMITED,
    Longs,
    ShapeArrays,
)

#: Memory of a task or node in MiB, beyond which sums could overflow; no node has as much.
_MOST_MIB = 2**28


@dataclass(frozen=True)
class Shape:
    """A request in one partition, as numbers."""

    partition: str
    unit: tuple[int, ...]
    base: tuple[int, ...]
    tasks: int
    min_nodes: int
    max_nodes: int
    per_node: int
    exclusive: bool
    features: frozenset[str]

    @property
    def each(self) -> int:
        """Tasks on every node, where the request leaves no choice; 0 = nodes may take different numbers."""
        if self.max_nodes == 1:
            return self.tasks
        if self.tasks == self.min_nodes:
            return 1
        is_full = self.min_nodes == self.max_nodes and self.per_node * self.max_nodes == self.tasks
        return self.per_node if is_full else 0


class Shapes:
    """Collects the different shapes of a site's jobs, and says why one cannot run."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.gpu_column = {kind: NUM_COMMON + i for i, kind in enumerate(site.gpu_types)}
        self.num_resources = NUM_COMMON + len(self.gpu_column)
        self.capacity = self._capacities()
        self.most_cpus = int(self.capacity[:, CPUS].max())
        self.node_index = {node.name: i for i, node in enumerate(site.nodes)}
        self.shapes: dict[Shape, int] = {}
        self._reasons: dict[Shape, str] = {}

    def _capacities(self) -> Longs:
        table = np.zeros((len(self.site.nodes), self.num_resources), np.int64)
        for row, node in zip(table, self.site.nodes, strict=True):
            row[CPUS] = node.cpus
            row[MEMORY] = UNLIMITED if math.isinf(node.memory_bytes) else int(node.memory_bytes // MIB)
            row[GPUS] = sum(node.gpus.values())
            for kind, count in node.gpus.items():
                if count:
                    row[self.gpu_column[kind]] = count
        return table

    def of(self, request: ResourceRequest, partition: Partition) -> Shape | str:
        """Return a request's shape in a partition, or the reason why it cannot run there."""
        for kind in (*request.gpus_per_task, *request.gpus_per_node):
            if kind != ANY_GPU and kind not in self.gpu_column:
                return f"asks for GPUs of type {kind!r}, which no node has"
        unit, base = [0] * self.num_resources, [0] * self.num_resources
        unit[CPUS] = request.cpus_per_task
        unit[MEMORY] = math.ceil(request.memory_bytes_per_cpu * request.cpus_per_task / MIB)
        base[MEMORY] = math.ceil(request.memory_bytes_per_node / MIB)
        for row, gpus in ((unit, request.gpus_per_task), (base, request.gpus_per_node)):
            for kind, count in gpus.items():
                row[GPUS] += count
                if kind != ANY_GPU:
                    row[self.gpu_column[kind]] += count
        if max(unit[MEMORY], base[MEMORY]) > _MOST_MIB:
            return f"asks for more on one node than any node of partition {partition.name!r} has"
        most = min(len(partition.nodes), partition.max_nodes or len(partition.nodes))
        if request.min_nodes > most:
            return f"asks for {request.min_nodes:,} nodes; partition {partition.name!r} allows {most:,}"
        shape = Shape(
            partition.name,
            tuple(unit),
            tuple(base),
            request.num_tasks,
            request.min_nodes,
            min(request.max_nodes or most, most),
            min(request.tasks_per_node or request.num_tasks, request.num_tasks, self.most_cpus),
            request.is_exclusive or partition.is_exclusive,
            request.features,
        )
        reason = self._why_not(shape)
        return reason or shape

    def nodes_of(self, shape: Shape) -> list[int]:
        """Return the nodes that a shape may use, by weight and index."""
        nodes = self.site.nodes
        names = self.site.partition(shape.partition).nodes
        able = [self.node_index[name] for name in names if shape.features <= nodes[self.node_index[name]].features]
        return sorted(able, key=lambda i: (nodes[i].weight, i))

    def _why_not(self, shape: Shape) -> str:
        """Return why a shape does not fit even on an empty site, or nothing."""
        if shape not in self._reasons:
            self._reasons[shape] = self._find_reason(shape)
        return self._reasons[shape]

    def _find_reason(self, shape: Shape) -> str:
        able = self.nodes_of(shape)
        if not able:
            return f"asks for features that no node of partition {shape.partition!r} has: {', '.join(shape.features)}"
        room = self.capacity[able] - np.array(shape.base)
        unit = np.array(shape.unit)
        with np.errstate(divide="ignore"):
            each = np.where(unit > 0, room // np.maximum(unit, 1), UNLIMITED).min(axis=1)
        fit = np.where(np.all(room >= 0, axis=1), np.minimum(each, shape.per_node), 0)
        fit = np.sort(fit[fit > 0])[::-1]
        if not len(fit):
            return f"asks for more on one node than any node of partition {shape.partition!r} has"
        if len(fit) < shape.min_nodes or int(fit[: shape.max_nodes].sum()) < shape.tasks:
            return f"does not fit on the nodes of partition {shape.partition!r}"
        return ""

    def index(self, shape: Shape) -> int:
        """Return a shape's number."""
        return self.shapes.setdefault(shape, len(self.shapes))

    def arrays(self) -> tuple[ShapeArrays, list[list[int]]]:
        """Return the shapes as arrays, and the sets of nodes that they name."""
        sets: dict[tuple[int, ...], int] = {}
        found = list(self.shapes)
        node_set = [sets.setdefault(tuple(self.nodes_of(shape)), len(sets)) for shape in found]

        def longs(values: Sequence[object]) -> Longs:
            return np.array(values, dtype=np.int64)

        unit = longs([shape.unit for shape in found]).reshape(-1, self.num_resources)
        base = longs([shape.base for shape in found]).reshape(-1, self.num_resources)
        each = longs([shape.each for shape in found])
        tasks = longs([shape.tasks for shape in found])
        per_node = longs([shape.per_node for shape in found])
        arrays = ShapeArrays(
            unit,
            base,
            (base + np.maximum(each, 1)[:, None] * unit).astype(np.int64),
            (base + np.minimum(tasks, per_node)[:, None] * unit).astype(np.int64),
            tasks,
            longs([shape.min_nodes for shape in found]),
            longs([shape.max_nodes for shape in found]),
            per_node,
            each,
            np.array([shape.exclusive for shape in found], dtype=np.bool_),
            longs(node_set),
        )
        return arrays, [list(nodes) for nodes in sets]
