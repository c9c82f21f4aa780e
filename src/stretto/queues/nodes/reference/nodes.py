"""Which nodes jobs get, in the reference replay on nodes."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.queues.nodes.kernels.arrays import CPUS, ShapeArrays, SiteArrays

#: Shapes by component and alternative.
Components = tuple[tuple[int, ...], ...]
#: What is free, by node and resource; nodes in the order of weight and index.
Room = list[list[int]]


@dataclass(frozen=True)
class TaskPlace:
    """Some tasks of a shape on a node."""

    shape: int
    node: int
    tasks: int


class NodeChoice:
    """What is free on nodes, and which of them a request gets."""

    def __init__(self, site: SiteArrays, shapes: ShapeArrays) -> None:
        self.site, self.shapes = site, shapes
        self.capacity: Room = site.capacity.T.tolist()
        self.free: Room = site.capacity.T.tolist()

    def change(self, room: Room, places: list[TaskPlace], sign: int) -> None:
        for place in places:
            unit, base = self.shapes.unit[place.shape], self.shapes.base[place.shape]
            for r in range(len(unit)):
                if self.shapes.exclusive[place.shape]:
                    room[place.node][r] += sign * self.capacity[place.node][r]
                else:
                    room[place.node][r] += sign * int(base[r] + place.tasks * unit[r])

    def place(
        self, components: Components, room: Room, beside: Room | None, span: tuple[float, float], *, prefers_busy: bool
    ) -> list[TaskPlace] | None:
        """Take the nodes of all components out of the rooms and return them; None where one does not fit."""
        found: list[TaskPlace] = []
        for alternatives in components:
            for shape in alternatives:
                chosen = self.choose(shape, room, beside, span, prefers_busy)
                if chosen is not None:
                    break
            else:
                for other in (room, beside):
                    if other is not None:
                        self.change(other, found, 1)
                return None
            for other in (room, beside):
                if other is not None:
                    self.change(other, chosen, -1)
            found += chosen
        return found

    def fit(self, shape: int, room: Room, node: int) -> int:
        """Return how many tasks of a shape fit on a node."""
        row = room[node]
        if self.shapes.exclusive[shape] and row != self.capacity[node]:
            return 0
        left = [have - int(need) for have, need in zip(row, self.shapes.base[shape], strict=True)]
        if min(left) < 0:
            return 0
        each = [have // int(need) for have, need in zip(left, self.shapes.unit[shape], strict=True) if need]
        return int(min([int(self.shapes.per_node[shape]), *each]))

    def is_closed(self, node: int, span: tuple[float, float]) -> bool:
        return any(
            span[0] < self.site.closed_until[i] and span[1] > self.site.closed_from[i]
            for i in range(self.site.closed_ptr[node], self.site.closed_ptr[node + 1])
        )

    def choose(
        self, shape: int, room: Room, beside: Room | None, span: tuple[float, float], prefers_busy: bool
    ) -> list[TaskPlace] | None:
        """Return the nodes of a shape: one if one is enough, otherwise the first in order, otherwise the roomiest.

        A reservation prefers nodes that are busy now: others can be used until it starts.
        """
        nodes = [node for node, has in enumerate(self.site.in_set[self.shapes.node_set[shape]]) if has]
        fit = {}
        for node in nodes:
            tasks = self.fit(shape, room, node)
            if beside is not None:
                tasks = min(tasks, self.fit(shape, beside, node))
            if tasks and not self.is_closed(node, span):
                fit[node] = tasks
        tasks, fewest, most, each = (
            int(column[shape])
            for column in (self.shapes.tasks, self.shapes.min_nodes, self.shapes.max_nodes, self.shapes.each)
        )

        def avoid(node: int, count: int) -> bool:
            return prefers_busy and self.fit(shape, self.free, node) >= count

        alone = [node for node in fit if fit[node] >= tasks]
        if fewest == 1 and alone:
            weight = self.site.weight
            best = min(alone, key=lambda node: (avoid(node, tasks), int(weight[node]), room[node][CPUS], node))
            return [TaskPlace(shape, best, tasks)]
        if each:
            full = sorted((node for node in fit if fit[node] >= each), key=lambda node: (avoid(node, each), node))
            wanted = tasks // each
            return [TaskPlace(shape, node, each) for node in full[:wanted]] if len(full) >= wanted else None
        in_order = sorted(fit, key=lambda node: (avoid(node, 1), node))
        roomiest = sorted(fit, key=lambda node: (-fit[node], node))
        bounds = (tasks, fewest, most)
        return self.spread(shape, in_order, fit, bounds) or self.spread(shape, roomiest, fit, bounds)

    @staticmethod
    def spread(
        shape: int, nodes: list[int], fit: dict[int, int], bounds: tuple[int, int, int]
    ) -> list[TaskPlace] | None:
        """Fill nodes one after the other, with at least one task for each of the fewest nodes."""
        left, fewest, most = bounds
        found: list[TaskPlace] = []
        for node in nodes:
            if left == 0 and len(found) >= fewest:
                break
            if len(found) == most:
                return None
            tasks = min(fit[node], left - max(0, fewest - len(found) - 1))
            found.append(TaskPlace(shape, node, tasks))
            left -= tasks
        return found if left == 0 and len(found) >= fewest else None
