"""Memory of devices as a caller of ``place`` states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from stretto.core.cluster import Cluster
from stretto.core.units import parse_bytes
from stretto.errors import InvalidInput, UnknownName

Size: TypeAlias = int | float | str
#: One size for all devices, one for each, or sizes by the name or number of a device.
MemoryLike: TypeAlias = Size | Sequence[Size] | Mapping[int | str, Size]


def with_memory(cluster: Cluster, memory: MemoryLike | None) -> Cluster:
    """Return the cluster with the memory of its devices as stated; the others keep theirs.

    Examples
    --------
    >>> with_memory(Cluster.parse("gpu:2"), {"gpu1": "200MB"}).devices[1].memory_bytes
    200000000.0
    """
    if memory is None:
        return cluster
    sizes = _sizes(cluster, memory)
    devices = [replace(device, memory_bytes=sizes.get(place, device.memory_bytes))
               for place, device in enumerate(cluster.devices)]  # fmt: skip
    return replace(cluster, devices=tuple(devices))


def _sizes(cluster: Cluster, memory: MemoryLike) -> dict[int, float]:
    m = cluster.num_devices
    if isinstance(memory, Mapping):
        return {_place(cluster, key): _bytes(size, key) for key, size in memory.items()}
    if isinstance(memory, (int, float, str)):
        return dict.fromkeys(range(m), _bytes(memory, "all"))
    if len(memory) != m:
        raise InvalidInput(f"{len(memory)} sizes for {m} devices: one for each", field="memory")
    return {place: _bytes(size, place) for place, size in enumerate(memory)}


def _place(cluster: Cluster, key: int | str) -> int:
    names = [device.name for device in cluster.devices]
    if key in names:
        return names.index(str(key))
    if isinstance(key, int) and 0 <= key < len(names):
        return key
    raise UnknownName("device", str(key), names)


def _bytes(size: Size, key: object) -> float:
    if isinstance(size, str):
        return parse_bytes(size)
    if isinstance(size, bool) or not size >= 0:
        raise InvalidInput(f"{size!r} is not a number of bytes", field=f"memory of {key}")
    return float(size)
