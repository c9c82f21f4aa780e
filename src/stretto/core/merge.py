"""Put the graphs of a workload side by side, so that kernels see one graph."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph, check_table, sequence_of
from stretto.core.provenance import merged_meta
from stretto.core.workload import Workload
from stretto.errors import InvalidInput


def merge(work: TaskGraph | Workload) -> tuple[TaskGraph, Floats, Ints]:
    """Return one graph, the release time of each task, and the task range of each job."""
    if isinstance(work, TaskGraph):
        n = work.num_tasks
        return work, np.zeros(n), np.array([0, n], dtype=np.int32)
    graphs = [job.graph for job in work.jobs]
    if not graphs:
        raise InvalidInput("the workload has no jobs", field=work.name)
    units = {graph.transfer_unit for graph in graphs}
    if len(units) > 1:
        raise InvalidInput("graphs with transfers in bytes and in seconds cannot share a workload", field=work.name)
    if any(graph.resources is not None for graph in graphs):
        raise InvalidInput("project graphs (RCPSP) are planned one at a time", field=work.name)
    tasks = np.cumsum([0] + [graph.num_tasks for graph in graphs]).astype(np.int32)
    objects = np.cumsum([0] + [graph.num_objects for graph in graphs]).astype(np.int32)
    kinds = tuple(dict.fromkeys(kind for graph in graphs for kind in graph.kinds))
    check_table(int(tasks[-1]), kinds)
    categories, category = sequence_of([g.category_name(t) for g in graphs for t in range(g.num_tasks)])
    merged = TaskGraph(
        name=work.name,
        work_s=np.concatenate([graph.work_s for graph in graphs]),
        object_task=np.concatenate([g.object_task + at for g, at in zip(graphs, tasks, strict=False)]),
        object_size=np.concatenate([graph.object_size for graph in graphs]),
        read_task=np.concatenate([g.read_task + at for g, at in zip(graphs, tasks, strict=False)]),
        read_object=np.concatenate([g.read_object + at for g, at in zip(graphs, objects, strict=False)]),
        task_names=tuple(f"{j}/{g.task_name(t)}" for j, g in enumerate(graphs) for t in range(g.num_tasks)),
        kinds=kinds,
        kind_duration_s=np.concatenate([_table(graph, kinds) for graph in graphs]) if kinds else None,
        cores=_stack([graph.cores for graph in graphs], graphs),
        memory_bytes=_stack([graph.memory_bytes for graph in graphs], graphs),
        resident_bytes=_stack([graph.resident_bytes for graph in graphs], graphs),
        categories=categories if categories != ("",) else (),
        category=category if categories != ("",) else None,
        transfer_unit=units.pop(),
        meta=merged_meta(graphs),
    )
    release = np.repeat([job.arrival_s for job in work.jobs], np.diff(tasks)).astype(np.float64)
    return merged, release, tasks


def _table(graph: TaskGraph, kinds: tuple[str, ...]) -> Floats:
    """Durations over all kinds: a graph without measurements runs its work anywhere."""
    if graph.kind_duration_s is None:
        return np.repeat(graph.work_s[:, None], len(kinds), axis=1)
    table = np.full((graph.num_tasks, len(kinds)), np.inf)
    for column, kind in enumerate(graph.kinds):
        table[:, kinds.index(kind)] = graph.kind_duration_s[:, column]
    return table


def _stack(columns: list[Floats | None], graphs: list[TaskGraph]) -> Floats | None:
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [np.zeros(g.num_tasks) if column is None else column for column, g in zip(columns, graphs, strict=True)]
    )
