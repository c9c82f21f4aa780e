"""What every plan must hold where: bytes that stay, and bytes that each task needs at the moment it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import Weights, resident_of_tasks
from stretto.core.problem import Problem
from stretto.core.provenance import are_objects_in_memory

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class MemoryNeeds:
    """Necessary conditions of a plan within memory, in whole bytes.

    On the device of a task there must be room, at one moment, for the residents of all tasks assigned to it, for the
    task's own bytes, for the objects that it makes and for those that it reads. That is not sufficient: other
    objects may be alive then.
    """

    limit: Floats  # [m]
    resident: Floats  # [n] a weight that several tasks read counts at the first of them: never too much in all
    running: Floats  # [n] own bytes, outputs and inputs
    own: Floats  # [n] residents without weights
    weights: Weights | None = None

    @staticmethod
    def of(problem: Problem) -> MemoryNeeds | None:
        """Return the needs, or None where no device has a limit."""
        limit = np.array([device.memory_bytes for device in problem.cluster.devices])
        graph = problem.graph
        if graph.resources is not None or not np.any(np.isfinite(limit)):
            return None
        zeros = np.zeros(graph.num_tasks)
        own = np.ceil(graph.resident_bytes) if graph.resident_bytes is not None else zeros
        running = np.ceil(graph.memory_bytes) if graph.memory_bytes is not None else zeros.copy()
        if counts_objects(problem):
            size = np.ceil(graph.object_size)
            np.add.at(running, graph.object_task, size)
            np.add.at(running, graph.read_task, size[graph.read_object])
        return MemoryNeeds(np.floor(limit), resident_of_tasks(graph), running, own, graph.weights)

    def fits(self, assignment: Ints) -> bool:
        """Say whether an assignment keeps the necessary conditions on every device."""
        return not np.any(self.excess(assignment) > 0)

    def excess(self, assignment: Ints) -> Floats:
        """Return by how many bytes each device exceeds its limit in its worst moment, [m]."""
        m = len(self.limit)
        kept = np.bincount(assignment, weights=self.own, minlength=m).astype(np.float64)
        if self.weights is not None:
            kept += self.weights.on_devices(assignment, m)
        most = np.zeros(m)
        np.maximum.at(most, assignment, self.running)
        return np.asarray(kept + most - self.limit, dtype=np.float64)

    def impossible(self, problem: Problem) -> str | None:
        """Return a proof that no assignment fits, in words, or None where none is so easy to see."""
        able = np.isfinite(problem.device_duration)
        least = self.own + self.running
        if self.weights is not None:
            least = least + self.weights.of_readers(len(least))
        alone = least[:, None] <= self.limit[None, :]
        lost = np.flatnonzero(~np.any(alone & able, axis=1))
        if len(lost):
            task = int(lost[0])
            need = float(least[task])
            name = problem.graph.task_name(task)
            return f"task {name!r} needs {need:,.0f} bytes at one moment, more than any device that can run it has"
        if float(self.resident.sum()) > float(self.limit.sum()):
            return (
                f"all tasks keep {self.resident.sum():,.0f} bytes resident, "
                f"and all devices together have {self.limit.sum():,.0f}"
            )
        return None


def counts_objects(problem: Problem) -> bool:
    """Say whether data between tasks takes memory of devices."""
    return problem.graph.transfer_unit == "bytes" and (problem.packing is None or are_objects_in_memory(problem.graph))
