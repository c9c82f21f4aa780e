"""What a model is placed on: a number of GPUs, shorthand, a file, a cluster, names of devices, or ``jax.devices()``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.devices.profiles import PROFILES, kind_of_jax
from stretto.errors import InvalidInput
from stretto.files.load import load_cluster
from stretto.reports.placement_memory import MemoryLike, with_memory

DevicesLike: TypeAlias = int | str | Path | Cluster | Sequence[Any]

#: Links of devices that are given as a number: 16 lanes of the third generation of PCI Express.
DEFAULT_LINK = "16GB/s"


@dataclass(frozen=True)
class Devices:
    """A cluster, the devices of JAX that it stands for where it was made from them, and what was assumed."""

    cluster: Cluster
    of_jax: tuple[Any, ...] | None = None
    notes: tuple[str, ...] = ()


def devices_of(devices: DevicesLike, *, memory: MemoryLike | None = None) -> Devices:
    """Return the devices that are meant, with memory as stated."""
    found = _jax_devices(devices)
    made = _from_jax(found) if found is not None else Devices(cluster_of(devices))
    return replace(made, cluster=with_memory(made.cluster, memory))


def cluster_of(devices: DevicesLike) -> Cluster:
    """Return a cluster from a number of GPUs, the shorthand, names of devices, a file, or a cluster."""
    if isinstance(devices, (list, tuple)) and devices and all(isinstance(name, str) for name in devices):
        _check_names(devices)
        counted = ((name, len(list(alike))) for name, alike in groupby(devices))
        return Cluster.parse(",".join(f"{name}:{count}" for name, count in counted))
    if isinstance(devices, bool) or not isinstance(devices, (int, np.integer, str, Path, Cluster)):
        raise InvalidInput(
            f"{type(devices).__name__} is not a number of devices, a cluster, or text such as 'gpu:4@16GB/s'",
            field="devices",
        )
    if isinstance(devices, (int, np.integer)):
        if devices < 1:
            raise InvalidInput(f"{devices} is not a number of devices: at least 1", field="devices")
        return Cluster.parse(f"gpu:{devices}@{DEFAULT_LINK}")
    return load_cluster(devices)


def _check_names(names: Sequence[str]) -> None:
    unknown = next((name for name in names if name not in (*PROFILES, "cpu", "gpu")), None)
    if unknown is not None:
        raise InvalidInput(
            f"{unknown!r} is no device with a profile; there are cpu, gpu, {', '.join(PROFILES)}", field="devices"
        )


def _jax_devices(devices: DevicesLike) -> tuple[Any, ...] | None:
    """Return ``jax.devices()`` or part of it as a tuple, and None for everything else."""
    if not isinstance(devices, (list, tuple)) or not devices:
        return None
    return tuple(devices) if all(hasattr(device, "device_kind") for device in devices) else None


def _from_jax(devices: Sequence[Any]) -> Devices:
    """Describe devices of JAX by their profiles; without one they are assumed to be a typical CPU or GPU."""
    names = [kind_of_jax(str(device.device_kind), device.platform) for device in devices]
    assumed = dict.fromkeys(name for name in names if name not in PROFILES)
    link = f"@{DEFAULT_LINK}" if assumed else ""
    text = ",".join(f"{name}:{len(list(alike))}" for name, alike in groupby(names)) + link
    cluster = Cluster.parse(text)
    limits = [_limit(device, ours.memory_bytes) for device, ours in zip(devices, cluster.devices, strict=True)]
    cluster = replace(
        cluster,
        devices=tuple(replace(d, memory_bytes=limit) for d, limit in zip(cluster.devices, limits, strict=True)),
    )
    named = zip(names, devices, strict=True)
    kinds = ", ".join(dict.fromkeys(str(device.device_kind) for name, device in named if name in assumed))
    told = f"Devices of JAX without a profile ({kinds}) are assumed to be typical, joined by {DEFAULT_LINK}."
    return Devices(cluster, tuple(devices), (told,) if assumed else ())


def _limit(device: Any, otherwise: float) -> float:
    """Return the bytes that JAX may use of a device, where it says so."""
    stats = device.memory_stats() if device.platform != "cpu" else None
    return float((stats or {}).get("bytes_limit", otherwise))
