"""Needs and capacities for the placing kernels; where memory binds, devices take part as nodes with one slot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.problem import Problem
from stretto.graphs.kernels.construct.room import Room
from stretto.graphs.memory.needs import MemoryNeeds, counts_objects


@dataclass(frozen=True, eq=False)
class PlacingLimits:
    """What tasks need and nodes have, and what their memory must hold besides."""

    need: Floats  # [n, R]
    capacity: Floats  # [m, R]
    room: Room


def placing_limits(problem: Problem) -> PlacingLimits | None:
    """Return limits with empty memory; None where each device runs one task at a time and memory cannot bind."""
    needs = binding_needs(problem)
    if problem.packing is not None:
        need, capacity = problem.packing.need, problem.packing.capacity
    elif needs is not None:
        need, capacity = np.ones((problem.num_tasks, 1)), np.ones((problem.num_devices, 1))
    else:
        return None
    return PlacingLimits(need, capacity, NO_LIMITS if needs is None else open_room(problem, needs))


def binding_needs(problem: Problem) -> MemoryNeeds | None:
    """Return the memory needs of a problem where they can exceed a limit besides what nodes pack by, else None."""
    if all(device.memory_bytes == np.inf for device in problem.cluster.devices):
        return None  # the common case, before anything is computed
    needs = MemoryNeeds.of(problem)
    if needs is None:
        return None
    objects = np.ceil(problem.graph.object_size).sum() if counts_objects(problem) else 0.0
    own = needs.running
    if problem.packing is not None and all(problem.packing.packs) and not needs.resident.any() and not objects:
        return None  # the memory of tasks is packed like their cores
    if float(needs.resident.sum() + objects + own.max(initial=0.0)) <= float(needs.limit.min()):
        return None
    return needs


def open_room(problem: Problem, needs: MemoryNeeds) -> Room:
    """Return empty devices."""
    graph, m = problem.graph, problem.num_devices
    own = np.ceil(graph.memory_bytes) if graph.memory_bytes is not None else np.zeros(graph.num_tasks)
    size = np.ceil(graph.object_size) if counts_objects(problem) else np.zeros(graph.num_objects)
    return Room(
        needs.limit,
        needs.resident,
        own,
        needs.running,
        size,
        np.zeros(m),
        np.zeros(m),
        np.zeros(m),
        np.zeros((graph.num_objects, m), dtype=np.uint8),
        np.diff(problem.arrays.object_ptr).astype(np.int32),
    )


_NONE = np.zeros(0)
#: Memory without limits.
NO_LIMITS = Room(*(_NONE,) * 8, np.zeros((0, 0), dtype=np.uint8), np.zeros(0, dtype=np.int32))
