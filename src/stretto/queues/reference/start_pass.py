"""One pass of the reference replay: who starts now."""

from __future__ import annotations

import math

from stretto.queues.kernels import codes
from stretto.queues.reference.nodes import Nodes


class Passes(Nodes):
    """Heads, orders, the promise, and backfilling."""

    def schedule(self) -> None:
        self.waiting.sort(key=lambda job: (self.key(job), job))
        self.start_heads()
        if not self.waiting:
            return
        queue = list(self.waiting)
        ahead = [0.0]
        for job in queue:
            ahead.append(ahead[-1] + self.work_in_first_pool(job))
        self.order_nodes(queue, ahead)
        promise = self.promise(queue[0])
        if promise is not None:
            k = promise[0]
            self.keep[k] = max(self.keep[k], int(self.setup.width[queue[0], k]))
        if self.rules.backfill == codes.CONSERVATIVE:
            self.plan_all(queue, ahead)
        elif self.rules.backfill != codes.NONE:
            self.backfill(queue, ahead, promise)

    def start_heads(self) -> None:
        while self.waiting:
            self.count_backlog()
            k = self.prefer(self.waiting[0], {k: state.free for k, state in enumerate(self.pools)}, 0.0)
            if k is None:
                return
            self.start(self.waiting[0], k)

    def releases(self, k: int) -> list[tuple[float, int]]:
        """Return when processors of a pool are expected, and how many."""
        ends = [(self.expects(j), int(self.setup.width[j, k])) for j in self.running if self.place[j] == k]
        return sorted(ends + [(time, self.pools[k].per_node) for time in self.pools[k].pending])

    def promise(self, head: int) -> tuple[int, float, int] | None:
        """Return the pool promised to the head, the time, and the extra processors at that time."""
        found: list[tuple[float, tuple[float, float, int]]] = []
        for k in self.usable(head, 0.0):
            free = self.pools[k].free
            for time, procs in self.releases(k):
                free += procs
                if free >= self.setup.width[head, k]:
                    found.append((time, self.score(head, k)))
                    break
        if not found:
            return None
        time, (_, _, k) = min(found)
        if self.rules.backfill == codes.SLACK:
            if math.isnan(self.promised[head]):
                self.promised[head] = time + self.rules.slack * self.span(head, k)
            time = max(time, self.promised[head])
        free = self.pools[k].free + sum(procs for at, procs in self.releases(k) if at <= time)
        return k, time, free - int(self.setup.width[head, k])

    def backfill(self, queue: list[int], ahead: list[float], promise: tuple[int, float, int] | None) -> None:
        place, limit, extra = promise if promise is not None else (-1, 0.0, 0)
        order = list(range(1, len(queue)))
        if self.rules.backfill == codes.EASY_SHORTEST:
            order.sort(key=lambda i: (self.believed(queue[i]), queue[i]))
        for i in order:
            job = queue[i]
            room = {k: state.free for k, state in enumerate(self.pools)}
            if place >= 0 and self.now + self.span(job, place) > limit:
                room[place] = min(room[place], extra)
            k = self.prefer(job, room, ahead[i])
            if k is None:
                continue
            if k == place and self.now + self.span(job, place) > limit:
                extra -= int(self.setup.width[job, k])
            self.start(job, k)

    def plan_all(self, queue: list[int], ahead: list[float]) -> None:
        """Reserve for every job in turn; start those whose reservation is now and that fit."""
        changes: list[list[tuple[float, int]]] = [self.releases(k) for k in range(len(self.pools))]
        base = [state.free for state in self.pools]
        for i, job in enumerate(queue):
            best: tuple[float, tuple[float, float, int]] | None = None
            for k in self.usable(job, ahead[i]):
                time = earliest(changes[k], base[k], self.now, int(self.setup.width[job, k]), self.span(job, k))
                if time is not None and (best is None or (time, self.score(job, k)) < best):
                    best = (time, self.score(job, k))
            if best is None:
                continue
            time, (_, _, k) = best
            width = int(self.setup.width[job, k])
            if self.span(job, k) > 0:
                changes[k] += [(time, -width), (time + self.span(job, k), width)]
            if time <= self.now and width <= self.pools[k].free:
                self.start(job, k)


def earliest(changes: list[tuple[float, int]], free: int, now: float, width: int, span: float) -> float | None:
    """Return the first time from which on ``width`` processors are free for ``span`` seconds."""

    def at(time: float) -> int:
        return free + sum(procs for when, procs in changes if when <= time)

    times = sorted({now, *(when for when, _ in changes)})
    for time in times:
        if at(time) >= width and all(at(other) >= width for other in times if time < other < time + span):
            return time
    return None
