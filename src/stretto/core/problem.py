"""A problem: one graph or several on a cluster, compiled to the arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import merged_weights
from stretto.core.graph import TaskGraph, check_table, sequence_of
from stretto.core.heterogeneity import durations
from stretto.core.magnitudes import DERIVED_SECONDS, TOTAL_SECONDS
from stretto.core.nodes.packing import Packing
from stretto.core.problem_size import check_problem_size
from stretto.core.provenance import merged_meta
from stretto.core.workload import Workload
from stretto.errors import InvalidInput


class ProblemArrays(NamedTuple):
    """What kernels see; n tasks, m devices in C classes, O objects, E reads.

    Moving object o from device a to b takes ``latency[a, b] + size[o] * inv_bandwidth[a, b]``
    seconds, and nothing when a == b or the size is zero; the diagonals hold zeros.
    """

    duration: Floats  # [n, C] seconds; inf = cannot run
    device_class: Ints  # [m]
    latency: Floats  # [m, m]
    inv_bandwidth: Floats  # [m, m] seconds per byte
    in_ptr: Ints  # [n+1]
    in_task: Ints  # [E] producer of each object read
    in_size: Floats  # [E]
    in_object: Ints  # [E]
    out_ptr: Ints  # [n+1] objects of each task: out_ptr[t] .. out_ptr[t+1]
    object_task: Ints  # [O] producer
    object_size: Floats  # [O]
    object_ptr: Ints  # [O+1]
    object_reader: Ints  # [E] readers of each object
    release: Floats  # [n] arrival of the task's graph
    topo: Ints  # [n] a topological order


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph (or several, merged) on a cluster.

    Attributes
    ----------
    job_ptr
        Tasks ``job_ptr[j]`` to ``job_ptr[j+1]`` belong to job j.
    packing
        Needs and capacities where a device of the cluster is a node that packs, else None.
    """

    graph: TaskGraph
    cluster: Cluster
    arrays: ProblemArrays
    job_ptr: Ints
    packing: Packing | None = None

    @staticmethod
    def of(work: TaskGraph | Workload, cluster: Cluster) -> Problem:
        """Compile a graph or a workload for a cluster; raise Infeasible where a task fits nowhere."""
        graph, release, job_ptr = merge(work)
        if graph.resources is not None and cluster.packs:
            raise InvalidInput(
                f"graph {graph.name!r} has renewable resources of its own (a project) and cannot be planned on nodes "
                "that pack; use a cluster of devices, such as shop:1",
                field="cluster",
            )
        check_problem_size(graph.num_tasks, len(graph.in_object), cluster.num_devices)
        table, device_class = durations(graph, cluster)
        latency, inv_bandwidth = _links(graph, cluster)
        _check_times(graph, cluster, table, latency, inv_bandwidth, release)
        arrays = ProblemArrays(
            duration=table,
            device_class=device_class,
            latency=latency,
            inv_bandwidth=inv_bandwidth,
            in_ptr=graph.in_ptr,
            in_task=graph.object_task[graph.in_object],
            in_size=graph.object_size[graph.in_object],
            in_object=graph.in_object,
            out_ptr=graph.out_ptr,
            object_task=graph.object_task,
            object_size=graph.object_size,
            object_ptr=graph.object_ptr,
            object_reader=graph.object_reader,
            release=release,
            topo=graph.topo,
        )
        return Problem(graph, cluster, arrays, job_ptr, Packing.of(graph, cluster))

    @property
    def num_tasks(self) -> int:
        return self.graph.num_tasks

    @property
    def num_devices(self) -> int:
        return self.cluster.num_devices

    @cached_property
    def device_duration(self) -> Floats:
        """Seconds of each task on each device, [n, m]; large graphs should use the classes."""
        return self.arrays.duration[:, self.arrays.device_class]

    @cached_property
    def is_free_to_move(self) -> bool:
        """True when no transfer costs anything."""
        if self.num_devices == 1 or not np.any(self.arrays.object_size):
            return True
        return not (np.any(self.arrays.latency) or np.any(self.arrays.inv_bandwidth))


def _links(graph: TaskGraph, cluster: Cluster) -> tuple[Floats, Floats]:
    m = cluster.num_devices
    if graph.transfer_unit == "seconds":
        return np.zeros((m, m)), np.ones((m, m)) - np.eye(m)
    latency = np.array(cluster.latency_s, dtype=np.float64)
    inverse = 1.0 / np.where(np.eye(m, dtype=bool), 1.0, cluster.bandwidth)
    np.fill_diagonal(latency, 0.0)
    np.fill_diagonal(inverse, 0.0)
    return latency, inverse


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
        gpus=_stack([graph.gpus for graph in graphs], graphs),
        other_needs=_merged_needs(graphs),
        categories=categories if categories != ("",) else (),
        category=category if categories != ("",) else None,
        transfer_unit=units.pop(),
        meta=merged_meta(graphs),
        weights=merged_weights(graphs),
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


def _merged_needs(graphs: list[TaskGraph]) -> dict[str, Floats]:
    names = dict.fromkeys(name for graph in graphs for name in graph.other_needs)
    stacked = {name: _stack([graph.other_needs.get(name) for graph in graphs], graphs) for name in names}
    return {name: column for name, column in stacked.items() if column is not None}


def _check_times(
    graph: TaskGraph, cluster: Cluster, duration: Floats, latency: Floats, inv_bandwidth: Floats, release: Floats
) -> None:
    """Raise where a duration, a transfer or the sum of all times lies outside the supported range.

    Parameters
    ----------
    duration
        Seconds per task and class of devices, [n, C]; inf = cannot run.
    """
    longest = np.zeros(graph.num_tasks)
    for column in range(duration.shape[1]):
        seconds = np.where(np.isfinite(duration[:, column]), duration[:, column], 0.0)
        bad = DERIVED_SECONDS.first_outside(seconds)
        if bad is not None:
            raise InvalidInput(
                f"task {graph.task_name(bad)!r} would take {seconds[bad]:g} s on a device of cluster {cluster.name!r}, "
                f"its duration divided by the device's speed; supported: {DERIVED_SECONDS}",
                field="duration",
            )
        np.maximum(longest, seconds, out=longest)
    size = float(graph.object_size.max(initial=0.0))
    slowest = _slowest_transfer(graph, cluster, latency, inv_bandwidth, size) if size > 0 else 0.0
    total = float(longest.sum()) + float(release.max()) + slowest * graph.num_objects
    if not TOTAL_SECONDS.holds(total):
        raise InvalidInput(
            f"all tasks and transfers of graph {graph.name!r} one after the other would take up to {total:g} s "
            f"on cluster {cluster.name!r}; supported: at most {TOTAL_SECONDS.most:g} s",
            field="duration",
        )


def _slowest_transfer(graph: TaskGraph, cluster: Cluster, latency: Floats, inv_bandwidth: Floats, size: float) -> float:
    """Return the seconds of the largest object over the slowest link."""
    slowest = 0.0
    for a in range(len(latency)):  # row by row: the matrices of a large cluster take a gigabyte
        seconds = latency[a] + size * inv_bandwidth[a]
        b = int(np.argmax(seconds))
        if seconds[b] > DERIVED_SECONDS.most:
            task = graph.task_name(int(graph.object_task[int(np.argmax(graph.object_size))]))
            raise InvalidInput(
                f"an output of task {task!r} ({size:g} bytes) would take {seconds[b]:g} s from "
                f"{cluster.devices[a].name} to {cluster.devices[b].name}; supported: {DERIVED_SECONDS}",
                field="bandwidth",
            )
        slowest = max(slowest, float(seconds[b]))
    return slowest
