"""What there is to say about a graph at a glance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from stretto.core.answers.facts import graph_answer
from stretto.core.cluster import DEFAULT_BANDWIDTH
from stretto.core.graph import TaskGraph
from stretto.core.notes import graph_notes
from stretto.core.provenance import duration_basis


@dataclass(frozen=True)
class GraphFacts:
    """Size and shape of a graph.

    Attributes
    ----------
    depth
        Tasks on the longest path.
    width
        The most tasks at one depth.
    critical_path_s
        Work on the heaviest path, at speed 1 and with free transfers.
    data
        Bytes (or seconds) of all distinct objects that somebody reads.
    durations
        Where the durations come from: measured, recorded, estimated or assumed, and by what.
    notes
        What was assumed when the graph was read.
    ccr
        Communication over computation: mean transfer time of a read at ``bandwidth``, over the
        mean work of a task.
    """

    name: str
    num_tasks: int
    num_edges: int
    num_objects: int
    depth: int
    width: int
    work_s: float
    critical_path_s: float
    data: float
    transfer_unit: str
    ccr: float
    bandwidth: float
    kinds: tuple[str, ...]
    categories: dict[str, int]
    resources: tuple[str, ...]
    durations: str
    notes: tuple[str, ...]

    @property
    def answer(self) -> str:
        """What this is, in one sentence."""
        return graph_answer(self)

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"answer": self.answer, **vars(self)}


def graph_facts(graph: TaskGraph, *, bandwidth: float = DEFAULT_BANDWIDTH) -> GraphFacts:
    """Measure a graph; transfers are priced at the given bandwidth."""
    _, _, size = graph.edges
    work = typical_work_s(graph)
    depth, path = _levels(graph, work)
    rate = bandwidth if graph.transfer_unit == "bytes" else 1.0
    total = float(work.sum())
    read = np.unique(graph.read_object)
    return GraphFacts(
        name=graph.name,
        num_tasks=graph.num_tasks,
        num_edges=graph.num_edges,
        num_objects=graph.num_objects,
        depth=int(depth.max()) + 1,
        width=int(np.bincount(depth).max()),
        work_s=total,
        critical_path_s=float(path.max()),
        data=float(graph.object_size[read].sum()),
        transfer_unit=graph.transfer_unit,
        ccr=float(size.mean()) / rate / float(work.mean()) if total > 0 and len(size) else 0.0,
        bandwidth=bandwidth,
        kinds=graph.kinds,
        categories=_categories(graph),
        resources=graph.resources.names if graph.resources is not None else (),
        durations=duration_basis(graph),
        notes=graph_notes(graph),
    )


def typical_work_s(graph: TaskGraph) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return one duration per task: its work, or the fastest measured kind where work is unknown."""
    if graph.kind_duration_s is None:
        return graph.work_s
    return np.where(np.isfinite(graph.work_s), graph.work_s, graph.kind_duration_s.min(axis=1))


def _levels(graph: TaskGraph, work: Any) -> tuple[Any, Any]:
    """Return the depth of each task and the heaviest work on a path that ends with it."""
    starts: list[int] = graph.in_ptr.tolist()
    producers: list[int] = graph.object_task[graph.in_object].tolist()
    seconds: list[float] = work.tolist()
    depth, path = [0] * graph.num_tasks, [0.0] * graph.num_tasks
    for task in graph.topo.tolist():
        before = producers[starts[task] : starts[task + 1]]
        depth[task] = 1 + max((depth[p] for p in before), default=-1)
        path[task] = seconds[task] + max((path[p] for p in before), default=0.0)
    return np.array(depth), np.array(path)


def _categories(graph: TaskGraph) -> dict[str, int]:
    if graph.category is None:
        return {}
    counts = Counter(graph.category.tolist())
    return {graph.categories[code]: count for code, count in counts.most_common()}
