"""The events of the reference replay on nodes, and the pass over the queue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stretto.queues.kernels import codes
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.reference.nodes import Room, TaskPlace
from stretto.queues.nodes.reference.order import NodeOrder
from stretto.queues.nodes.setup import NodeSetup


@dataclass(frozen=True)
class Planned:
    """A job that the plan of conservative backfilling starts later."""

    start: float
    end: float
    places: list[TaskPlace]


class NodeReference(NodeOrder):
    """Jobs on nodes, one event after the other."""

    def __init__(self, setup: NodeSetup, rules: NodeRules) -> None:
        super().__init__(setup, rules)
        self.missing = self.q.num_parents.tolist()
        self.pending = {job for job in range(len(self.missing)) if not self.missing[job]}
        self.waiting: list[int] = []
        self.running: list[int] = []
        #: Head, start and what is left beside it, by island; kept until a job ends or another one comes first.
        self.reservation: dict[int, tuple[int, float, Room]] = {}

    def run(self) -> None:
        """Run until every job has ended."""
        while self.pending or self.waiting or self.running:
            self.now = self.next_moment()
            for job in sorted(job for job in self.running if self.end[job] == self.now):
                self.finish(job)
            arrived = sorted(job for job in self.pending if self.arrival(job) <= self.now)
            for job in arrived:
                self.ready[job] = self.now
            self.pending -= set(arrived)
            self.waiting += arrived
            if self.now in self.site.closed_until:
                self.reservation.clear()
            if self.rules.backfill == codes.CONSERVATIVE:
                self.plan()
            else:
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
        self.reservation.pop(self.island(job), None)
        self.change(self.free, self.places[job], 1)
        self.charge(job)
        for child in self.q.child[self.q.child_ptr[job] : self.q.child_ptr[job + 1]].tolist():
            self.missing[child] -= 1
            if not self.missing[child]:
                self.ready[child] = self.now
                self.pending.add(child)

    def island(self, job: int) -> int:
        return int(self.q.island[self.q.kind[job]])

    def is_throttled(self, job: int) -> bool:
        adds = self.adds_to(job)
        for other in self.running:
            for limit, amount in self.adds_to(other).items():
                if limit in adds:
                    adds[limit] += amount
        return any(total > int(self.q.limit_most[limit]) for limit, total in adds.items())

    def adds_to(self, job: int) -> dict[int, int]:
        """Return what a job adds to each of its limits while it runs."""
        span = slice(int(self.q.limit_ptr[job]), int(self.q.limit_ptr[job + 1]))
        return dict(zip(self.q.limit_of[span].tolist(), self.q.limit_amount[span].tolist(), strict=True))

    def begin(self, job: int, places: list[TaskPlace]) -> None:
        """Start a job on nodes that have been taken out of what is free."""
        self.start[job], self.end[job] = self.now, self.now + float(self.q.run[job])
        self.places[job] = places
        self.waiting.remove(job)
        self.running.append(job)

    def expected(self, job: int) -> float:
        return self.start[job] + float(self.q.estimate[job])

    # No backfilling, and EASY.

    def schedule(self) -> None:
        """Walk through the queue in order; the first job of an island that has to wait gets a reservation."""
        blocked: set[int] = set()
        is_easy = self.rules.backfill == codes.EASY
        for job in self.in_order(self.waiting):
            if self.is_throttled(job):
                continue
            island, end = self.island(job), self.now + float(self.q.estimate[job])
            if island in blocked:
                if is_easy:
                    _, time, later = self.reservation[island]
                    self.start_if_fits(job, end, None if end <= time else later)
            elif self.start_if_fits(job, end, None):
                self.reservation.pop(island, None)
            else:
                blocked.add(island)
                if is_easy and self.reservation.get(island, (-1,))[0] != job:
                    self.reservation[island] = (job, *self.reserve(job))

    def start_if_fits(self, job: int, end: float, beside: Room | None) -> bool:
        places = self.place(self.components(job), self.free, beside, (self.now, end), prefers_busy=False)
        if places is None:
            return False
        self.begin(job, places)
        return True

    def reserve(self, job: int) -> tuple[float, Room]:
        """Return when a job can start by estimates, and what is then free beside it."""
        mine = [other for other in self.running if self.island(other) == self.island(job)]
        reopen = {float(until) for until in self.site.closed_until if until > self.now}
        for time in sorted({*map(self.expected, mine), *reopen}):
            later = [row.copy() for row in self.free]
            for other in mine:
                if self.expected(other) <= time:
                    self.change(later, self.places[other], 1)
            span = (time, time + float(self.q.estimate[job]))
            if self.place(self.components(job), later, None, span, prefers_busy=True) is not None:
                return time, later
        return math.inf, [row.copy() for row in self.free]

    # Conservative backfilling.

    def plan(self) -> None:
        """Give every waiting job in order the earliest place that those before it leave, and start what starts now."""
        plan: list[Planned] = []
        for job in self.in_order(self.waiting):
            if self.is_throttled(job):
                continue
            ends = {self.expected(other) for other in self.running} | {item.end for item in plan}
            reopen = {float(until) for until in self.site.closed_until}
            for time in sorted({self.now, *(end for end in ends | reopen if end > self.now)}):
                span = (time, time + float(self.q.estimate[job]))
                places = self.place(self.components(job), self.window_room(plan, *span), None, span, prefers_busy=False)
                if places is None:
                    continue
                if time == self.now:
                    self.change(self.free, places, -1)
                    self.begin(job, places)
                else:
                    plan.append(Planned(*span, places))
                break

    def window_room(self, plan: list[Planned], start: float, end: float) -> Room:
        """Return what stays free on every node from a start to an end."""
        rooms = []
        for time in {start, *(item.start for item in plan if start < item.start < end)}:
            room = [row.copy() for row in self.free]
            for other in self.running:
                if self.expected(other) <= time:
                    self.change(room, self.places[other], 1)
            for item in plan:
                if item.start <= time < item.end:
                    self.change(room, item.places, -1)
            rooms.append(room)
        return [[min(values) for values in zip(*rows, strict=True)] for rows in zip(*rooms, strict=True)]
