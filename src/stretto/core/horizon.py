"""Whether the times of a problem, and all of them together, can be computed with."""

from __future__ import annotations

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import DERIVED_SECONDS, TOTAL_SECONDS
from stretto.errors import InvalidInput


def check_times(
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
