"""The definition of a replay on nodes, as a slow and obvious program."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.nodes.kernels.arrays import CPUS
from stretto.queues.nodes.setup import NodeSetup

Room = list[list[int]]


@dataclass(frozen=True)
class TaskPlace:
    """Some tasks of a shape on a node."""

    shape: int
    node: int
    tasks: int


class NodeReference:
    """Jobs on nodes, one event after the other."""

    def __init__(self, setup: NodeSetup, strategy: int, backfill: str) -> None:
        self.site, self.shapes, self.q = setup.site_arrays, setup.shapes, setup.arrays
        self.strategy, self.is_easy = strategy, backfill == "easy"
        self.capacity: Room = self.site.capacity.tolist()
        self.free: Room = self.site.capacity.tolist()
        self.now = -math.inf
        n = len(self.q.submit)
        self.start, self.end = [math.nan] * n, [math.nan] * n
        self.ready = [math.nan] * n
        self.places: list[list[TaskPlace]] = [[] for _ in range(n)]
        self.missing = self.q.num_parents.tolist()
        self.pending = {job for job in range(n) if not self.missing[job]}
        self.waiting: list[int] = []
        self.running: list[int] = []
        #: Head, start and what is left beside it, by island; kept until a job ends or another one comes first.
        self.reservation: dict[int, tuple[int, float, Room]] = {}

    def run(self) -> None:
        """Run until every job has ended."""
        while self.pending or self.waiting or self.running:
            self.now = self.next_moment()
            for job in [job for job in self.running if self.end[job] == self.now]:
                self.finish(job)
            arrived = sorted(job for job in self.pending if self.arrival(job) <= self.now)
            for job in arrived:
                self.ready[job] = self.now
            self.pending -= set(arrived)
            self.waiting += arrived
            self.schedule()

    def arrival(self, job: int) -> float:
        """Return when a job without missing parents joins the queue."""
        parents_end = self.ready[job]
        submit = float(self.q.submit[job])
        return submit if math.isnan(parents_end) else max(submit, parents_end)

    def next_moment(self) -> float:
        times = [self.arrival(job) for job in self.pending] + [self.end[job] for job in self.running]
        if self.waiting:
            times += [float(until) for until in self.site.closed_until if until > self.now]
        assert times, "jobs wait for ever"
        return min(times)

    def finish(self, job: int) -> None:
        self.running.remove(job)
        self.reservation.clear()
        self.change(self.free, self.places[job], 1)
        for child in self.q.child[self.q.child_ptr[job] : self.q.child_ptr[job + 1]].tolist():
            self.missing[child] -= 1
            if not self.missing[child]:
                self.ready[child] = self.now
                self.pending.add(child)

    # The queue.

    def sort_key(self, job: int) -> tuple[float, float, int]:
        estimate, procs = float(self.q.estimate[job]), int(self.q.procs[job])
        if self.strategy >= FIRST_DYNAMIC:
            key = dynamic_key(self.strategy, self.now, self.ready[job], estimate, procs)
        else:
            submit, deadline = float(self.q.submit[job]), float(self.q.deadline[job])
            key = static_key(self.strategy, job, submit, estimate, procs, deadline)
        return (-int(self.q.tier[self.q.kind[job]]), key, job)

    def schedule(self) -> None:
        """Walk through the queue in order; the first job of an island that has to wait gets a reservation."""
        blocked: set[int] = set()
        for job in sorted(self.waiting, key=self.sort_key):
            if self.is_throttled(job):
                continue
            island, end = int(self.q.island[self.q.kind[job]]), self.now + float(self.q.estimate[job])
            if island in blocked:
                if self.is_easy:
                    _, time, later = self.reservation[island]
                    self.start_if_fits(job, end, None if end <= time else later)
            elif self.start_if_fits(job, end, None):
                self.reservation.pop(island, None)
            else:
                blocked.add(island)
                if self.is_easy and self.reservation.get(island, (-1,))[0] != job:
                    self.reservation[island] = (job, *self.reserve(job))

    def is_throttled(self, job: int) -> bool:
        group = int(self.q.limit_group[job])
        if group < 0:
            return False
        at_once = sum(int(self.q.limit_group[other]) == group for other in self.running)
        return at_once >= int(self.q.group_limit[group])

    def start_if_fits(self, job: int, end: float, beside: Room | None) -> bool:
        places = self.place(job, self.free, beside, (self.now, end), prefers_busy=False)
        if places is None:
            return False
        self.start[job], self.end[job] = self.now, self.now + float(self.q.run[job])
        self.places[job] = places
        self.waiting.remove(job)
        self.running.append(job)
        return True

    def reserve(self, job: int) -> tuple[float, Room]:
        """Return when a job can start by estimates, and what is then free beside it."""
        island = int(self.q.island[self.q.kind[job]])
        ends = {other: self.start[other] + float(self.q.estimate[other]) for other in self.running}
        mine = {other: end for other, end in ends.items() if int(self.q.island[self.q.kind[other]]) == island}
        nodes = set(self.site.island_node[self.site.island_ptr[island] : self.site.island_ptr[island + 1]].tolist())
        reopen = {
            float(self.site.closed_until[i])
            for node in nodes
            for i in range(self.site.closed_ptr[node], self.site.closed_ptr[node + 1])
        }
        for time in sorted({*mine.values(), *(until for until in reopen if until > self.now)}):
            later = [row.copy() for row in self.free]
            for other, end in mine.items():
                if end <= time:
                    self.change(later, self.places[other], 1)
            span = (time, time + float(self.q.estimate[job]))
            if self.place(job, later, None, span, prefers_busy=True) is not None:
                return time, later
        return math.inf, [row.copy() for row in self.free]

    # Nodes.

    def change(self, room: Room, places: list[TaskPlace], sign: int) -> None:
        for place in places:
            unit, base = self.shapes.unit[place.shape], self.shapes.base[place.shape]
            for r in range(len(unit)):
                if self.shapes.exclusive[place.shape]:
                    room[place.node][r] += sign * self.capacity[place.node][r]
                else:
                    room[place.node][r] += sign * int(base[r] + place.tasks * unit[r])

    def place(
        self, job: int, room: Room, beside: Room | None, span: tuple[float, float], *, prefers_busy: bool
    ) -> list[TaskPlace] | None:
        """Take the nodes of all components out of the rooms and return them; None where one does not fit."""
        found: list[TaskPlace] = []
        kind = int(self.q.kind[job])
        for component in range(self.q.component_ptr[kind], self.q.component_ptr[kind + 1]):
            shapes = self.q.alternative[self.q.alternative_ptr[component] : self.q.alternative_ptr[component + 1]]
            for shape in shapes.tolist():
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
        """Return the nodes of a shape: one if one is enough, otherwise by weight, otherwise the roomiest."""
        k = int(self.shapes.node_set[shape])
        nodes = self.site.set_node[self.site.set_ptr[k] : self.site.set_ptr[k + 1]].tolist()
        fit = {}
        for node in nodes:
            tasks = self.fit(shape, room, node)
            if beside is not None:
                tasks = min(tasks, self.fit(shape, beside, node))
            if tasks and not self.is_closed(node, span):
                fit[node] = tasks
        avoid = {node: prefers_busy and self.fit(shape, self.free, node) > 0 for node in nodes}
        tasks, fewest, most = (
            int(column[shape]) for column in (self.shapes.tasks, self.shapes.min_nodes, self.shapes.max_nodes)
        )
        alone = [node for node in fit if fit[node] >= tasks]
        if fewest == 1 and alone:
            weight = self.site.weight

            def left_over(node: int) -> int:
                return room[node][CPUS] - int(self.shapes.base[shape][CPUS] + tasks * self.shapes.unit[shape][CPUS])

            best = min(alone, key=lambda node: (avoid[node], int(weight[node]), left_over(node), node))
            return [TaskPlace(shape, best, tasks)]
        in_order = sorted(fit, key=lambda node: (avoid[node], nodes.index(node)))
        roomiest = sorted(fit, key=lambda node: (-fit[node], nodes.index(node)))
        return self.spread(shape, in_order, fit, (tasks, fewest, most)) or self.spread(
            shape, roomiest, fit, (tasks, fewest, most)
        )

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
