"""Threads of devices: one for a device, as many for a node as tasks can run there side by side, each with its cores."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from stretto.core.nodes.packing import CORES
from stretto.core.problem import Problem
from stretto.engines.local.cores import usable_cores
from stretto.errors import InvalidInput

#: Threads of one node.
MAX_LANES = 512


class Lanes:
    """Which thread runs a task, and on which cores of this machine.

    Parameters
    ----------
    cores
        The cores of each device, all different; None leaves a device's threads to the system.

    Attributes
    ----------
    device
        Of each lane.
    """

    def __init__(self, problem: Problem, cores: list[list[int] | None]) -> None:
        self.device: list[int] = []
        self._lanes: list[list[int]] = []  # by device; of a node those that are free
        self._is_node = [device.packs for device in problem.cluster.devices]
        self._free_cores = [list(own) if own is not None else None for own in cores]
        self._taken: dict[int, tuple[int, list[int]]] = {}  # lane and cores of each task under way
        self._num_cores = _cores_of_tasks(problem)
        for device in range(problem.num_devices):
            count = _num_lanes(problem, device) if self._is_node[device] else 1
            self._lanes.append(list(range(len(self.device), len(self.device) + count)))
            self.device += [device] * count

    def begin(self, task: int, device: int) -> int:
        """Return the lane that runs a task, and set its cores aside."""
        if not self._is_node[device]:
            return self._lanes[device][0]
        lane, free = self._lanes[device].pop(), self._free_cores[device]
        own: list[int] = []
        if free is not None:
            own = [free.pop(0) for _ in range(min(self._num_cores[task], len(free)))]
        self._taken[task] = lane, own
        return lane

    def cores(self, task: int) -> list[int] | None:
        """Return the cores that a task was given, or None where it keeps those of its thread."""
        return self._taken[task][1] or None if task in self._taken else None

    def end(self, task: int, device: int) -> None:
        """Give back the lane and the cores of a task."""
        if task in self._taken:
            lane, own = self._taken.pop(task)
            self._lanes[device].append(lane)
            free = self._free_cores[device]
            if free is not None:
                free.extend(own)
                free.sort()

    def first_cores(self, lane: int) -> list[int] | None:
        """Return the cores on which a lane begins: those of its device."""
        own = self._free_cores[self.device[lane]]
        return list(own) if own else None


def cores_of_devices(problem: Problem, is_pinned: bool) -> list[list[int] | None]:
    """Return different cores for each device, as many as a node states; None for all where there are too few."""
    wanted = [math.ceil(d.cores) if d.packs else 1 for d in problem.cluster.devices]
    usable = usable_cores()
    if not is_pinned or sum(wanted) > len(usable):
        return [None] * problem.num_devices
    at = np.cumsum([0, *wanted]).tolist()
    return [usable[a:b] for a, b in pairwise(at)]


def _cores_of_tasks(problem: Problem) -> list[int]:
    """Return whole cores for each task: half a core is one, shared with nobody while there are enough."""
    packing = problem.packing
    if packing is None:
        return [1] * problem.num_tasks
    column = packing.names.index(CORES)
    return [max(1, math.ceil(packing.amount(column, need))) for need in packing.need[:, column].tolist()]


def _num_lanes(problem: Problem, node: int) -> int:
    """Return how many tasks can run on a node at most."""
    packing = problem.packing
    assert packing is not None, "only nodes have several lanes"
    most = packing.most_at_once(node)
    if most > MAX_LANES:
        name = problem.cluster.devices[node].name
        raise InvalidInput(
            f"up to {most:,} tasks fit node {name!r} at a time; the local engine runs at most {MAX_LANES} there",
            field="cluster",
        )
    return most
