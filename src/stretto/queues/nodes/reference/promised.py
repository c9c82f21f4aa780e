"""What promises on nodes mean, as a slow and obvious program; the kernels must equal it, start for start.

Every job with a finite slack is promised a latest start when it becomes eligible: the earliest time at which it fits
behind everything that runs and everything that is planned, by estimates and on certain nodes, plus its slack. From then
on any order may propose starts.

At every event: jobs that have ended leave, and where one ended before its estimate, the plan moves forward: each
job, in the order of planned starts, goes to the earliest time at which it fits beside all others. Jobs that arrive are
planned behind all others. Planned starts are events, too.

Then a pass, as in EASY, with one more rule: a job that could start may only do so if it finds nodes that the plan
leaves it, or if the others can be planned around it such that each meets its latest start: one after the other, in the
order of planned starts, or else in the order of latest starts. A refused job is not tested again before a job has
ended, and an event has only so many tests. A refused job reserves nothing.

At last, jobs that are planned for now and have not started, the most urgent first: each is put off, to the time when
something becomes free by estimates, or later; alone if that is possible, otherwise with a new plan of all. Where that
would break a promise, the job starts as it is planned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from stretto.core.csr import Floats
from stretto.queues.nodes.kernels.arrays import NodeRules
from stretto.queues.nodes.reference.nodes import Room, TaskPlace
from stretto.queues.nodes.reference.replay import NodeReference, Planned
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.promises.slack import parts_of_slack

#: The plan: waiting jobs with a promise.
Plan = dict[int, Planned]


class PromisedReference(NodeReference):
    """A queue on nodes with promises."""

    def __init__(self, setup: NodeSetup, rules: NodeRules, slack_s: Floats, max_tests: int = 1 << 30) -> None:
        super().__init__(setup, rules)
        n = len(self.q.submit)
        time_s, wait_share = parts_of_slack(slack_s, len(setup.arrays.submit))
        self.slack, self.wait_share, self.max_tests = time_s.tolist(), wait_share.tolist(), max_tests
        self.due = [math.inf] * n
        self.planned: Plan = {}
        self.refused_at: dict[int, int] = {}
        self.num_ended = self.num_tests = 0
        self.has_room: set[int] = set()
        self.has_changed: set[int] = set()

    def next_moment(self) -> float:
        times = [super().next_moment()] if self.pending or self.running or self.waiting else []
        return min([*times, *(item.start for item in self.planned.values())])

    def finish(self, job: int) -> None:
        if self.expected(job) > self.now:
            self.has_room.add(self.island(job))
        self.num_ended += 1
        self.has_changed.add(self.island(job))
        super().finish(job)

    def schedule(self) -> None:
        """Keep the plan, let jobs join it, and make all starts of this moment."""
        for island in sorted(self.has_room):
            self.move_forward(island)
        self.has_room.clear()
        for job in sorted(job for job in self.waiting if self.ready[job] == self.now):
            self.has_changed.add(self.island(job))
            found = None if self.slack[job] == math.inf else self.earliest(job, self.planned, (self.now, math.inf))
            if found is not None:
                self.planned[job] = found
                self.due[job] = found.start + self.slack[job] + self.wait_share[job] * (found.start - self.now)
        self.num_tests = 0
        self.has_changed |= {self.island(job) for job, item in self.planned.items() if item.start <= self.now}
        if self.now in self.site.closed_until:
            self.has_changed |= {self.island(job) for job in self.waiting}
        for island in sorted(self.has_changed):
            self.propose(island)
            self.settle(island)
        self.has_changed.clear()

    def move_forward(self, island: int) -> None:
        for job in self.by_start(island):
            old = self.planned.pop(job)
            found = self.earliest(job, self.planned, (self.now, old.start)) if old.start > self.now else None
            self.planned[job] = old if found is None else found

    def by_start(self, island: int) -> list[int]:
        mine = [job for job in self.planned if self.island(job) == island]
        return sorted(mine, key=lambda job: (self.planned[job].start, job))

    def propose(self, island: int) -> None:
        head = -1
        for job in self.in_order([job for job in self.waiting if self.island(job) == island]):
            if self.is_throttled(job):
                continue
            span = (self.now, self.now + float(self.q.estimate[job]))
            beside: Room | None = None
            if head >= 0:
                _, time, later = self.reservation[island]
                beside = later if span[1] > time else None
            places = self.place(self.components(job), self.free, beside, span, prefers_busy=False)
            if places is not None:
                self.change(self.free, places, 1)
                if beside is not None:
                    self.change(beside, places, 1)
                started = self.may_start(job, places, beside)
                if started is not None:
                    self.change(self.free, started, -1)
                    if beside is not None:
                        self.change(beside, started, -1)
                    self.begin(job, started)
                    if head < 0:
                        self.reservation.pop(island, None)
            elif head < 0:
                head = job
                if self.reservation.get(island, (-1,))[0] != job:
                    self.reservation[island] = (job, *self.reserve(job))

    def may_start(self, job: int, places: list[TaskPlace], beside: Room | None) -> list[TaskPlace] | None:
        """Return the nodes on which a job may start now, None = it may not; the plan is then one without it."""
        others = {other: item for other, item in self.planned.items() if other != job}
        span = (self.now, self.now + float(self.q.estimate[job]))
        if self.group_time(job, others, self.now) == self.now:
            room = self.window_room(list(others.values()), *span)
            found = self.place(self.components(job), room, beside, span, prefers_busy=False)
            if found is not None:
                if beside is not None:
                    self.change(beside, found, 1)
                if self.planned.get(job, Planned(self.now, 0.0, [])).start > self.now:
                    self.has_room.add(self.island(job))
                self.planned = others
                return found
        if self.num_tests >= self.max_tests or self.refused_at.get(job) == self.num_ended:
            return None
        self.num_tests += 1
        island = self.island(job)
        by_start = [other for other in self.by_start(island) if other != job]
        mine = {job: Planned(*span, places)}
        for order in (by_start, sorted(by_start, key=lambda other: self.due[other])):
            plan = self.plan_all(island, order, mine, self.now)
            if plan is not None:
                del plan[job]
                self.planned = plan
                self.has_room.discard(island)
                return places
        self.refused_at[job] = self.num_ended
        return None

    def plan_all(self, island: int, order: Iterable[int], fixed: Plan, not_before: float) -> Plan | None:
        """Plan the jobs of an island one after the other beside fixed ones; None where somebody would be late."""
        plan = {job: item for job, item in self.planned.items() if self.island(job) != island} | fixed
        for job in order:
            found = self.earliest(job, plan, (not_before, math.nextafter(self.due[job], math.inf)))
            if found is None:
                return None
            plan[job] = found
        return plan

    def settle(self, island: int) -> None:
        while True:
            urgent = [job for job in self.by_start(island) if self.planned[job].start <= self.now]
            if not urgent:
                return
            job = min(urgent, key=lambda other: self.due[other])
            if not self.put_off(job, island):
                item = self.planned.pop(job)
                self.change(self.free, item.places, -1)
                self.begin(job, item.places)
                self.reservation.pop(island, None)

    def put_off(self, job: int, island: int) -> bool:
        """Plan a job later, alone or together with all others; return whether all promises allow it."""
        ends = [self.expected(other) for other in self.running if self.island(other) == island]
        later = min([*ends, *(float(until) for until in self.site.closed_until if until > self.now), math.inf])
        if later == math.inf:
            return False
        others = {other: item for other, item in self.planned.items() if other != job}
        alone = self.earliest(job, others, (later, math.nextafter(self.due[job], math.inf)))
        if alone is not None:
            self.planned[job] = alone
            self.has_room.add(island)
            return True
        by_start = self.by_start(island)
        for order in (by_start, sorted(by_start, key=lambda other: self.due[other])):
            plan = self.plan_all(island, order, {}, later)
            if plan is not None:
                self.planned = plan
                self.has_room.add(island)
                return True
        return False

    def earliest(self, job: int, plan: Plan, between: tuple[float, float]) -> Planned | None:
        """Return the first place of a job in a plan that does not hold it, from a time on and before another one."""
        time, before = between
        while time < before:
            later = self.group_time(job, plan, time)
            if later > time:
                time = later
                continue
            span = (time, time + float(self.q.estimate[job]))
            room = self.window_room(list(plan.values()), *span)
            places = self.place(self.components(job), room, None, span, prefers_busy=False)
            if places is not None:
                return Planned(*span, places)
            time = self.next_change(job, plan, time)
        return None

    def next_change(self, job: int, plan: Plan, time: float) -> float:
        """Return when what is free on the nodes of a job's island changes next, or a node reopens."""
        ends = {self.expected(other) for other in self.running}
        moments = sorted(t for item in plan.values() for t in (item.start, item.end))
        reopen = {float(until) for until in self.site.closed_until if until > time}
        first = self.site.island_ptr
        nodes = self.site.island_node[first[self.island(job)] : first[self.island(job) + 1]].tolist()
        before = self.room_at(plan, time)
        for moment in sorted({t for t in (*ends, *moments) if t > time} | reopen):
            now = self.room_at(plan, moment)
            if moment in reopen or any(before[node] != now[node] for node in nodes):
                return moment
        return math.inf

    def room_at(self, plan: Plan, time: float) -> Room:
        return self.window_room(list(plan.values()), time, time)

    def group_time(self, job: int, plan: Plan, time: float) -> float:
        """Return the first time, from one on, at which the limits of a job leave it a place."""
        while True:
            later = max((self.limit_time(job, plan, time, *own) for own in self.adds_to(job).items()), default=time)
            if later == time:
                return time
            time = later

    def limit_time(self, job: int, plan: Plan, time: float, limit: int, amount: int) -> float:
        """Return the first time, from one on, at which one limit leaves a job a place."""
        spans = [(j, -math.inf, self.expected(j)) for j in self.running]
        spans += [(j, one.start, one.end) for j, one in plan.items()]
        members = [(begin, end, self.adds_to(j).get(limit, 0)) for j, begin, end in spans]
        members = [one for one in members if one[2]]
        while True:
            end = time + float(self.q.estimate[job])
            moments = [time, *(begin for begin, _, _ in members if time < begin < end)]
            most = max(sum(adds for begin, until, adds in members if begin <= at < until) for at in moments)
            if most + amount <= int(self.q.limit_most[limit]):
                return time
            time = min(until for _, until, _ in members if until > time)
