"""What nodes have left while tasks run: the driver asks before every start on a node that packs."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.core.problem import Problem


class NodeRooms:
    """Counts what tasks under way hold of each node, in whole units (``core/nodes/packing.py``)."""

    def __init__(self, problem: Problem) -> None:
        packing = problem.packing
        assert packing is not None, "only clusters with nodes have rooms"
        self.packs = packing.packs
        self._need: list[list[float]] = packing.need.tolist()
        self._capacity: list[list[float]] = packing.capacity.tolist()
        self._free = [list(row) for row in self._capacity]
        self._held: dict[int, int] = {}  # node of each task under way

    @staticmethod
    def of(problem: Problem) -> NodeRooms | None:
        """Return the rooms, or None where every device runs one task at a time."""
        return NodeRooms(problem) if problem.packing is not None else None

    def is_node(self, device: int) -> bool:
        return self.packs[device]

    def fits(self, task: int, node: int) -> bool:
        """Say whether a node has enough left for a task."""
        return all(need <= free for need, free in zip(self._need[task], self._free[node], strict=True))

    def take(self, task: int, node: int) -> None:
        """Record that a task starts on a node."""
        self._held[task] = node
        free = self._free[node]
        for column, need in enumerate(self._need[task]):
            free[column] -= need

    def give(self, task: int) -> None:
        """Record that a task no longer holds anything."""
        node = self._held.pop(task, -1)
        if node >= 0:
            free = self._free[node]
            for column, need in enumerate(self._need[task]):
                free[column] += need

    def has_room(self, node: int, held: Sequence[int], task: int) -> bool:
        """Say whether a task fits a node beside given others, whatever runs there now; for dispatchers."""
        for column, capacity in enumerate(self._capacity[node]):
            if sum(self._need[other][column] for other in held) + self._need[task][column] > capacity:
                return False
        return True
