"""The instances of the comparison with peers: made by us, written as JSON, read by everyone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import TaskGraph
from stretto.workloads import random_cluster, random_dag

NIC_BYTES_PER_S = 1e9


def related(num_tasks: int, num_devices: int, seed: int, ccr: float) -> tuple[TaskGraph, Cluster]:
    """Layered graph on devices of related speeds and unequal links: SAGA's model."""
    graph = random_dag(num_tasks, seed=seed, ccr=ccr, work_mean_s=10.0)
    return graph, random_cluster(num_devices, seed=seed)


def equal(num_tasks: int, num_devices: int, seed: int, ccr: float) -> tuple[TaskGraph, Cluster]:
    """Layered graph with shared outputs on equal devices behind network cards: estee's model.

    Each device sends over one link and receives over another; max-min sharing of these is
    what estee calls max-min flow.
    """
    graph = random_dag(num_tasks, seed=seed, ccr=ccr, work_mean_s=10.0, share=True)
    m = num_devices
    devices = [Device(f"cpu{i}") for i in range(m)]
    plain = Cluster.uniform(devices, bandwidth=NIC_BYTES_PER_S)
    pairs = [(a, b) for a in range(m) for b in range(m)]
    route = np.array([link for a, b in pairs if a != b for link in (a, m + b)], dtype=np.int32)
    ptr = np.cumsum([0] + [2 * (a != b) for a, b in pairs]).astype(np.int32)
    names = tuple([f"out{i}" for i in range(m)] + [f"in{i}" for i in range(m)])
    links = Links(names, np.full(2 * m, NIC_BYTES_PER_S), ptr, route)
    return graph, Cluster(plain.devices, plain.latency_s, plain.bandwidth, "equal", links)


def write(graph: TaskGraph, cluster: Cluster, path: Path) -> None:
    """Write an instance for the peers."""
    source, target, size = graph.edges
    output = np.zeros(graph.num_tasks)
    output[source] = size  # meaningful where outputs are shared
    instance: dict[str, Any] = {
        "name": graph.name,
        "work": graph.work_s.tolist(),
        "edges": [list(edge) for edge in zip(source.tolist(), target.tolist(), size.tolist(), strict=True)],
        "output": output.tolist(),
        "speed": [device.speed for device in cluster.devices],
        "bandwidth": cluster.bandwidth.tolist(),
        "nic_bytes_per_s": NIC_BYTES_PER_S,
    }
    path.write_text(json.dumps(instance))
