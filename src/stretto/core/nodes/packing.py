"""What tasks need and what nodes have, in whole units: the part of a problem that says which tasks run side by side.

A task holds its needs of its node from start to finish. On a device that does not pack every task holds the one
``slot``, so that clusters of both kinds follow one rule. Cores and GPUs count in millionths, memory in bytes, named
resources as they are or, where a need is a fraction, in millionths: sums are exact, and compiled code, its references
and the solver agree on what fits.

A task that states no cores gets one; of anything else that it does not state it gets nothing. Both are assumptions, and
results say so (``core/notes.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph

SLOT, CORES, MEMORY, GPUS = "slot", "cores", "memory", "gpus"
#: What a task gets on a node when it does not say how many cores it needs.
DEFAULT_CORES = 1.0
_MICRO = 1e6
#: 0.3 cores are 300,000 millionths, not 299,999.
_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Packing:
    """Needs and capacities by resource; only resources that can ever be short are listed.

    Attributes
    ----------
    assumed_cores
        How many tasks state no cores and were given :data:`DEFAULT_CORES`.
    assumed_memory
        How many tasks state no memory, although a node limits it.
    """

    names: tuple[str, ...]  # [R]
    need: Floats  # [n, R] whole units
    capacity: Floats  # [m, R] whole units, inf = no limit
    packs: tuple[bool, ...]  # [m]
    unit: tuple[float, ...]  # [R] units per one of the resource
    assumed_cores: int = 0
    assumed_memory: int = 0

    @staticmethod
    def of(graph: TaskGraph, cluster: Cluster) -> Packing | None:
        """Return the packing of a problem, or None where every device runs one task at a time."""
        if not cluster.packs:
            return None
        n = graph.num_tasks
        stated = graph.cores if graph.cores is not None else np.zeros(n)
        memory = graph.memory_bytes if graph.memory_bytes is not None else np.zeros(n)
        stated_needs = {CORES: np.where(stated > 0, stated, DEFAULT_CORES), MEMORY: memory, **graph.other_needs}
        if graph.gpus is not None:
            stated_needs[GPUS] = graph.gpus
        slots = np.array([np.inf if device.packs else 1.0 for device in cluster.devices])
        columns = [(SLOT, np.ones(n), slots, 1.0)]
        columns += [_column(cluster, name, need) for name, need in stated_needs.items()]
        kept = [c for c in columns if c[0] == CORES or (np.any(c[1] > 0) and np.any(np.isfinite(c[2])))]
        limits_memory = any(d.packs and np.isfinite(d.memory_bytes) for d in cluster.devices)
        return Packing(
            tuple(name for name, _, _, _ in kept),
            np.ascontiguousarray(np.stack([need for _, need, _, _ in kept], axis=1)),
            np.ascontiguousarray(np.stack([have for _, _, have, _ in kept], axis=1)),
            tuple(device.packs for device in cluster.devices),
            tuple(unit for _, _, _, unit in kept),
            int(np.count_nonzero(stated == 0)),
            int(np.count_nonzero(memory == 0)) if limits_memory else 0,
        )

    @cached_property
    def beside_memory(self) -> tuple[Floats, Floats]:
        """Needs and capacities for the simulator, which counts memory itself, with objects and residents."""
        keep = [column for column, name in enumerate(self.names) if name not in (MEMORY, SLOT)]
        return np.ascontiguousarray(self.need[:, keep]), np.ascontiguousarray(self.capacity[:, keep])

    def most_at_once(self, node: int) -> int:
        """Return how many tasks can run on a node side by side at most."""
        most = float(len(self.need))
        for column in range(len(self.names)):
            least = float(self.need[:, column].min())
            if least > 0 and np.isfinite(self.capacity[node, column]):
                most = min(most, self.capacity[node, column] // least)
        return max(1, int(most))

    def needs_of(self, task: int) -> dict[str, float]:
        """Return what a task needs, by resource, as its owner states it; nothing of a slot."""
        row = self.need[task].tolist()
        return {name: self.amount(r, row[r]) for r, name in enumerate(self.names) if name != SLOT and row[r] > 0}

    def amount(self, column: int, units: float) -> float:
        """Return units of a resource as its owner states them: cores, bytes, GPUs."""
        return units / self.unit[column]


def _column(cluster: Cluster, resource: str, need: Floats) -> tuple[str, Floats, Floats, float]:
    """Return name, needs, capacities and unit; a device that does not pack is limited by its slot alone."""
    have = np.array([device.amount(resource) if device.packs else np.inf for device in cluster.devices])
    if resource == MEMORY:
        return resource, np.ceil(need), np.floor(have), 1.0
    unit = 1.0 if resource not in (CORES, GPUS) and np.all(need == np.floor(need)) else _MICRO
    return resource, np.round(need * unit), np.floor(have * unit + _ROUNDING), unit
