"""How many devices and nodes a cluster has, in words."""

from __future__ import annotations

from stretto.core.cluster import Cluster
from stretto.core.units import format_bytes, format_count


def size_of(cluster: Cluster) -> str:
    """Return ``8 devices``, or ``4 nodes with 64 cores, 256 GB, 2 GPUs``, or both."""
    nodes = [device for device in cluster.devices if device.packs]
    num_devices = cluster.num_devices - len(nodes)
    if not nodes:
        return format_count(num_devices, "device")
    memory, gpus = sum(node.memory_bytes for node in nodes), sum(node.gpus for node in nodes)
    has = [f"{sum(node.cores for node in nodes):g} cores"]
    has += [format_bytes(memory)] if memory < float("inf") else []
    has += [f"{gpus:g} GPUs"] if 0 < gpus < float("inf") else []
    words = f"{format_count(len(nodes), 'node')} with {', '.join(has)}"
    return f"{format_count(num_devices, 'device')} and {words}" if num_devices else words
