"""Which part of which node stands for a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.core.cluster import Cluster, Device
from stretto.engines.slurm.client.jobs import SlurmNode
from stretto.errors import Infeasible


@dataclass(frozen=True)
class Slot:
    """What a task on a device asks Slurm for."""

    node: str
    num_cpus: int
    num_gpus: int
    is_whole_node: bool

    def options(self) -> dict[str, str | int | bool]:
        """Return it as options of ``sbatch``."""
        found: dict[str, str | int | bool] = {"nodelist": self.node, "nodes": 1, "ntasks": 1}
        if self.is_whole_node:
            found["exclusive"] = True
        else:
            found["cpus-per-task"] = self.num_cpus
        if self.num_gpus:
            found["gres"] = f"gpu:{self.num_gpus}"
        return found


def slots_of(cluster: Cluster, nodes: Sequence[SlurmNode]) -> list[Slot]:
    """Return the slot of each device.

    A cluster that names its machines (or its devices) as Slurm names its nodes means those. Otherwise devices get
    nodes of their own while there are enough, GPUs those that have some, and else share them evenly.
    """
    usable = {node.name: node for node in nodes if node.is_usable}
    if not usable:
        raise Infeasible("no node of this Slurm is usable")
    place = _named(cluster.devices, usable) or _spread(cluster.devices, list(usable.values()))
    num_on = Counter(place)
    return [_slot(device, usable[name], num_on[name]) for device, name in zip(cluster.devices, place, strict=True)]


def _named(devices: Sequence[Device], nodes: dict[str, SlurmNode]) -> list[str] | None:
    for names in ([device.machine for device in devices], [device.name for device in devices]):
        if all(name in nodes for name in names):
            return names
    return None


def _spread(devices: Sequence[Device], nodes: list[SlurmNode]) -> list[str]:
    """Give the next node to each device, those that need GPUs first; begin again where nodes are fewer."""
    place: dict[int, str] = {}
    used: Counter[str] = Counter()
    for index in sorted(range(len(devices)), key=lambda index: (not _needs_gpu(devices[index]), index)):
        needs = _needs_gpu(devices[index])
        able = [node for node in nodes if not needs or node.num_gpus]
        if not able:
            raise Infeasible(f"device {devices[index].name!r} is a GPU, and no node of this Slurm has one")
        best = min(able, key=lambda node: (used[node.name], node.num_gpus > 0 and not needs, nodes.index(node)))
        used[best.name] += 1
        place[index] = best.name
    return [place[index] for index in range(len(devices))]


def _slot(device: Device, node: SlurmNode, num_sharing: int) -> Slot:
    if num_sharing > node.num_cpus:
        raise Infeasible(f"{num_sharing} devices share node {node.name!r}, which has {node.num_cpus} processors")
    num_gpus = 0
    if _needs_gpu(device):
        num_gpus = max(1, node.num_gpus) if num_sharing == 1 else 1
    return Slot(node.name, node.num_cpus // num_sharing, num_gpus, num_sharing == 1)


def _needs_gpu(device: Device) -> bool:
    return device.kind.lower().startswith("gpu")
