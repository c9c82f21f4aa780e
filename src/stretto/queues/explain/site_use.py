"""What jobs hold on the nodes of a site over time, and whether one more job would fit."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.request import ResourceRequest, components_of
from stretto.core.site import Partition, Site
from stretto.queues.nodes.shapes import Shape, Shapes
from stretto.queues.result import QueueResult

Room = NDArray[np.int64]


class SiteUse:
    """The entries (job, node, amount of each resource) of the jobs that run within a time.

    Times are asked for in ascending order.
    """

    def __init__(self, result: QueueResult, site: Site, begin_s: float, end_s: float) -> None:
        self.result, self.site = result, site
        self.shapes = Shapes(site)
        self._index = {name: i for i, name in enumerate(node.name for node in site.nodes)}
        self._shape = lru_cache(maxsize=None)(self._find_shape)
        around = np.flatnonzero((result.start_s < end_s) & (result.end_s > begin_s))
        found = [entry for job in around.tolist() for entry in self._entries(job)]
        self.job = np.array([job for job, _, _ in found], np.intp)
        self.node = np.array([node for _, node, _ in found], np.intp)
        width = self.shapes.num_resources
        self.amount = np.array([amount for _, _, amount in found], np.int64).reshape(-1, width)
        self.start, self.end = result.start_s[self.job], result.end_s[self.job]
        self._by_start, self._by_end = np.argsort(self.start, kind="stable"), np.argsort(self.end, kind="stable")
        self._room = self.shapes.capacity.copy()
        self._started, self._ended = 0, 0

    def alternatives(self, job: int) -> list[list[Shape]]:
        """Return the shapes of each component of a job, one per partition that it may use, preferred first."""
        trace = self.result.trace
        assert trace.request is not None
        limit = float(trace.estimate_s[job])
        parts = components_of(trace.requests[int(trace.request[job])])
        return [self._shapes_of(part, limit) for part in parts]

    def _shapes_of(self, part: ResourceRequest, limit_s: float) -> list[Shape]:
        names = part.partitions or (self.site.default_partition.name,)
        known = {one.name for one in self.site.partitions}
        partitions = sorted(
            (self.site.partition(name) for name in names if name in known), key=lambda one: -one.priority_tier
        )
        found = [self._shape(part, one) for one in partitions if limit_s <= one.max_time_s]
        return [shape for shape in found if isinstance(shape, Shape)] or [
            shape for shape in (self._shape(part, one) for one in partitions) if isinstance(shape, Shape)
        ]

    def _find_shape(self, part: ResourceRequest, partition: Partition) -> Shape | str:
        return self.shapes.of(part, partition)

    def nodes_of(self, shape: Shape) -> NDArray[np.intp]:
        return np.array(self.shapes.nodes_of(shape), np.intp)

    def _entries(self, job: int) -> list[tuple[int, int, Room]]:
        result = self.result
        assert result.place_ptr is not None
        assert result.node is not None
        assert result.tasks is not None
        assert result.partition is not None
        first, last = int(result.place_ptr[job]), int(result.place_ptr[job + 1])
        rows = (result.node, result.tasks, result.partition)
        places = list(zip(*(row[first:last].tolist() for row in rows), strict=True))
        found, at = [], 0
        for shapes in self.alternatives(job):
            here, tasks = [], 0
            while at < len(places) and tasks < shapes[0].tasks:
                here.append(places[at])
                tasks += places[at][1]
                at += 1
            used = {self.site.partitions[partition].name for _, _, partition in here}
            shape = next(one for one in shapes if one.partition in used)
            found += [(job, node, self._taken(shape, node, count)) for node, count, _ in here]
        return found

    def _taken(self, shape: Shape, node: int, tasks: int) -> Room:
        if shape.exclusive:
            whole: Room = self.shapes.capacity[node]
            return whole
        return np.array(shape.base, np.int64) + tasks * np.array(shape.unit, np.int64)

    def room_at(self, now: float) -> Room:
        """Return what is free on each node after the pass at a moment."""
        for order, times, sign in ((self._by_start, self.start, -1), (self._by_end, self.end, 1)):
            at = self._started if sign < 0 else self._ended
            upto = int(np.searchsorted(times[order], now, side="right"))
            some = order[at:upto]
            np.add.at(self._room, self.node[some], sign * self.amount[some])
            if sign < 0:
                self._started = upto
            else:
                self._ended = upto
        return self._room

    def fits(self, components: list[list[Shape]], room: Room, is_open: NDArray[np.bool_]) -> bool:
        """Say whether all components of a job fit into the room of open nodes at the same time."""
        left = room if len(components) == 1 else room.copy()
        for shapes in components:
            for shape in shapes:
                places = self._places(shape, left, is_open)
                if places is not None:
                    break
            else:
                return False
            if len(components) > 1:
                for node, tasks in places:
                    left[node] -= self._taken(shape, node, tasks)
        return True

    def _places(self, shape: Shape, room: Room, is_open: NDArray[np.bool_]) -> list[tuple[int, int]] | None:
        nodes = self.nodes_of(shape)
        here = room[nodes]
        able = is_open[nodes]
        if shape.exclusive:
            able &= np.all(here == self.shapes.capacity[nodes], axis=1)
        left = here - np.array(shape.base, np.int64)
        able &= np.all(left >= 0, axis=1)
        unit = np.array(shape.unit, np.int64)
        used = unit > 0
        fit = np.full(len(nodes), shape.per_node, np.int64)
        if np.any(used):
            fit = np.minimum(fit, (left[:, used] // unit[used]).min(axis=1))
        fit = np.where(able, fit, 0)
        order = np.argsort(-fit, kind="stable")[: shape.max_nodes]
        order = order[fit[order] > 0]
        if len(order) < shape.min_nodes or int(fit[order].sum()) < shape.tasks:
            return None
        found, open_tasks = [], shape.tasks
        for rank, at in enumerate(order.tolist()):
            tasks = min(int(fit[at]), open_tasks - max(0, shape.min_nodes - rank - 1))
            if tasks <= 0:
                break
            found.append((int(nodes[at]), tasks))
            open_tasks -= tasks
        return found


def without(components: list[list[Shape]], columns: tuple[int, ...]) -> list[list[Shape]]:
    """Return the shapes with nothing asked of some resources."""

    def cleared(row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if r in columns else value for r, value in enumerate(row))

    return [[replace(one, unit=cleared(one.unit), base=cleared(one.base)) for one in shapes] for shapes in components]


def overlap(start: Floats, end: Floats, begin_s: float, end_s: float) -> Floats:
    """Return for how long each interval overlaps with a time."""
    length: Floats = np.maximum(np.minimum(end, end_s) - np.maximum(start, begin_s), 0.0)
    return length
