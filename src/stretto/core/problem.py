"""A problem: one graph or several on a cluster, compiled to the arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph
from stretto.core.heterogeneity import durations
from stretto.core.horizon import check_times
from stretto.core.merge import merge
from stretto.core.problem_size import check_problem_size
from stretto.core.workload import Workload


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
    """

    graph: TaskGraph
    cluster: Cluster
    arrays: ProblemArrays
    job_ptr: Ints

    @staticmethod
    def of(work: TaskGraph | Workload, cluster: Cluster) -> Problem:
        """Compile a graph or a workload for a cluster; raise Infeasible where a task fits nowhere."""
        graph, release, job_ptr = merge(work)
        check_problem_size(graph.num_tasks, len(graph.in_object), cluster.num_devices)
        table, device_class = durations(graph, cluster)
        latency, inv_bandwidth = _links(graph, cluster)
        check_times(graph, cluster, table, latency, inv_bandwidth, release)
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
        return Problem(graph, cluster, arrays, job_ptr)

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
