"""Weights of a model: bytes that stay on every device which runs a task that reads them, counted once per device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.magnitudes import BYTES
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.graph import TaskGraph


@dataclass(frozen=True, eq=False)
class Weights:
    """Which tasks read which weights; a pair of a task and a weight stands once.

    ``resident_bytes`` of a graph belong to one task each; a weight may belong to several, as one that the forward
    and the backward pass read.
    """

    size_bytes: Floats  # [W]
    task: Ints  # [P]
    item: Ints  # [P] the weight that the task reads

    def __post_init__(self) -> None:
        bad = BYTES.first_outside(self.size_bytes)
        if bad is not None:
            value = self.size_bytes[bad]
            raise InvalidInput(f"weight {bad} has {value} bytes; {BYTES.why_not(value)}", field="weights")
        if len(self.task) != len(self.item):
            raise InvalidInput(f"{len(self.task)} tasks for {len(self.item)} weights", field="weights")
        if len(self.item) and (int(self.item.min()) < 0 or int(self.item.max()) >= len(self.size_bytes)):
            raise InvalidInput(f"index out of range 0..{len(self.size_bytes) - 1}", field="weights.item")

    @property
    def num_weights(self) -> int:
        return len(self.size_bytes)

    def check(self, num_tasks: int) -> None:
        """Raise where a task does not exist."""
        if len(self.task) and (int(self.task.min()) < 0 or int(self.task.max()) >= num_tasks):
            raise InvalidInput(f"index out of range 0..{num_tasks - 1}", field="weights.task")

    def read_by(self, num_tasks: int) -> list[list[int]]:
        """Return the weights that each task reads."""
        found: list[list[int]] = [[] for _ in range(num_tasks)]
        for task, item in zip(self.task.tolist(), self.item.tolist(), strict=True):
            found[task].append(item)
        return found

    def on_devices(self, assignment: Ints, num_devices: int) -> Floats:
        """Return the bytes of the weights that each device holds, in whole bytes, [m]."""
        pair = np.unique(assignment[self.task].astype(np.int64) * max(1, self.num_weights) + self.item)
        device, item = np.divmod(pair, max(1, self.num_weights))
        size = np.ceil(self.size_bytes)
        return np.bincount(device, weights=size[item], minlength=num_devices).astype(np.float64)

    def at_first_reader(self, num_tasks: int) -> Floats:
        """Charge each weight to the first task that reads it, [n]: a part of what any assignment holds."""
        lowest = np.full(self.num_weights, num_tasks, dtype=np.int64)
        np.minimum.at(lowest, self.item, self.task)
        is_read = lowest < num_tasks
        size = np.ceil(self.size_bytes)
        return np.bincount(lowest[is_read], weights=size[is_read], minlength=num_tasks).astype(np.float64)

    def of_readers(self, num_tasks: int) -> Floats:
        """Return the bytes of all weights that each task reads, [n]: what its device holds at least."""
        return np.bincount(self.task, weights=np.ceil(self.size_bytes)[self.item], minlength=num_tasks).astype(
            np.float64
        )


def merged_weights(graphs: Sequence[TaskGraph]) -> Weights | None:
    """Return the weights of graphs that become one, each with its own."""
    if all(graph.weights is None for graph in graphs):
        return None
    sizes, tasks, items, first_task, first_item = [], [], [], 0, 0
    for graph in graphs:
        if graph.weights is not None:
            sizes.append(graph.weights.size_bytes)
            tasks.append(graph.weights.task + first_task)
            items.append(graph.weights.item + first_item)
            first_item += graph.weights.num_weights
        first_task += graph.num_tasks
    return Weights(
        np.concatenate(sizes), np.concatenate(tasks).astype(np.int32), np.concatenate(items).astype(np.int32)
    )


def resident_of_tasks(graph: TaskGraph) -> Floats:
    """Return what each task keeps on its device, in whole bytes, [n]; a weight counts at its first reader."""
    n = graph.num_tasks
    own = np.ceil(graph.resident_bytes) if graph.resident_bytes is not None else np.zeros(n)
    return own + graph.weights.at_first_reader(n) if graph.weights is not None else own


def resident_of_devices(graph: TaskGraph, assignment: Ints, num_devices: int) -> Floats:
    """Return what the tasks of each device keep there, in whole bytes, [m]; a weight counts once per device."""
    held = np.zeros(num_devices)
    if graph.resident_bytes is not None:
        held += np.bincount(assignment, weights=np.ceil(graph.resident_bytes), minlength=num_devices)
    if graph.weights is not None:
        held += graph.weights.on_devices(assignment, num_devices)
    return held
