"""What promises across pools mean, as a slow and obvious program; ``pools/kernels`` must equal it, start for start.

Promises count on pools that are always up, and on elastic ones whose file says ``promised = true``, up to their
``num_nodes``: a node that is not up counts from its provisioning time and a second on. Spot pools count for nothing.

When a job begins to wait, after its submission or after an interruption, it is promised a latest start: the earliest
time at which it fits in any of these pools behind everything that runs and is planned, by estimates, plus its slack.
So what is promised is the latest *first* start, and after an interruption a latest start of the next attempt.

The plan has a pool and a start for every such job, and proves that all promises can be kept. It rents as late as it
can: a job is planned in a pool that is always up, as early as possible, if that meets its promise; else in the first
elastic pool that has room at its latest start; else as early as possible anywhere.

At every moment, after ends, interruptions, news of pools and arrivals: a job that outlives its estimate is expected to
run for a fifth more, a minute at least, and all is planned again, where promises that are out of reach are put off to
what is not. If processors became free, each planned job, by planned start, moves to where the rule above puts it, with
all others where they are. Then jobs that begin to wait are planned.

The pass is that of EASY in pools (``queues.reference``), but a job may start in a pool that promises count on only if
it fits there beside the plan, or if all others can be planned again, by planned or else by latest starts, so that each
is in time; where a pool is refused, the next best is tried. A refused pair is not tested again before processors
become free, and a pass makes sixteen tests at most. A refused job is no head.

At last, jobs that are planned for now and have not started: all are planned again, none before the next time at which
processors are expected. Where no such plan is in time, the job with the earliest latest start starts now, where it is
planned. Nodes that the plan needs are ordered in time, and none goes that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.kernels.outcome import ReplayOutcome
from stretto.queues.promises.slack import parts_of_slack
from stretto.queues.reference.replay import Reference
from stretto.queues.setup import ReplaySetup

#: Pool, from, until, and processors.
Taken = tuple[int, float, float, int]
#: Pool and start.
Place = tuple[int, float]
MAX_TESTS = 16


class PoolPromiseReference(Reference):
    """A replay in pools with promises."""

    def __init__(self, setup: ReplaySetup, slack_s: Floats) -> None:
        super().__init__(setup)
        time_s, wait_share = parts_of_slack(slack_s, setup.trace.num_jobs)
        self.slack: list[float] = time_s.tolist()
        self.wait_share: list[float] = wait_share.tolist()
        self.counted = [k for k, pool in enumerate(setup.pools) if pool.keeps_promises]
        self.due, self.latest = [math.inf] * self.n, [math.inf] * self.n
        self.margin = [math.inf] * self.n
        self.until: dict[int, float] = {}
        self.planned: dict[int, Place] = {}
        self.is_new = [True] * self.n
        self.refused_at: dict[tuple[int, int], int] = {}
        self.num_stops = self.num_tests = 0

    # Time.

    def next_moment(self) -> float:
        then = super().next_moment()
        if self.planned:
            times = [begin for _, begin in self.planned.values()]
            times += [begin - self.lead(k) for k, begin in self.planned.values() if self.grows(k)]
            times = [time for time in times if time > self.now or time in self.starts()]
            times += [self.until[job] for job in self.running if self.place[job] in self.counted]
            then = min(then, max(self.now, min(times)))
        return then

    def starts(self) -> list[float]:
        return [begin for _, begin in self.planned.values()]

    def happen(self) -> None:
        num_up = [len(state.began) for state in self.pools]
        stops = any(time == self.now for time in self.running.values())
        super().happen()
        self.has_freed = stops or sum(num_up) != sum(len(state.began) for state in self.pools)
        self.num_stops += self.has_freed

    def schedule(self) -> None:
        self.update_plan()
        self.propose()
        self.settle()
        self.rent()

    def update_plan(self) -> None:
        outlived = [j for j in self.running if self.place[j] in self.counted and self.until[j] <= self.now]
        for job in outlived:
            self.until[job] = self.now + max(60.0, 0.2 * (self.now - self.began[job]))
        if self.planned and outlived:
            self.planned = self.plan_all_of(self.by_start(), self.now)
            for job, (_, begin) in self.planned.items():
                self.latest[job] = max(self.latest[job], begin)
        elif self.planned and self.has_freed:
            for job in self.by_start():
                del self.planned[job]
                self.planned[job] = self.find_place(job, self.taken(), self.now)
        for job in sorted(j for j in self.waiting if self.is_new[j]):
            self.is_new[job] = False
            able = [k for k in self.counted if self.setup.width[job, k] >= 0]
            if self.slack[job] < math.inf and able:
                taken = self.taken()
                begin = min(self.earliest(job, k, taken, self.now) for k in able)
                self.due[job] = begin + self.slack[job] + self.wait_share[job] * (begin - self.now)
                self.latest[job] = self.due[job]
                self.planned[job] = self.find_place(job, taken, self.now)

    # The pass.

    def propose(self) -> None:
        self.waiting.sort(key=lambda job: (self.key(job), job))
        self.pass_tests = 0
        head: int | None = None
        for job in list(self.waiting):
            self.count_backlog()
            if self.prefer(job, self.rooms(), 0.0) is None:
                head = job
                break
            self.offer(job, self.rooms(), 0.0)
        queue = list(self.waiting)
        if not queue:
            return
        ahead = [0.0]
        for job in queue:
            ahead.append(ahead[-1] + self.work_in_first_pool(job))
        self.order_nodes(queue, ahead)
        if head is not None:
            self.offer_others(queue, ahead, queue.index(head))

    def offer_others(self, queue: list[int], ahead: list[float], at: int) -> None:
        found = self.promise(queue[at])
        place, limit, extra = found if found is not None else (-1, 0.0, 0)
        if found is not None:
            self.keep[place] = max(self.keep[place], int(self.setup.width[queue[at], place]))
        for i in range(at + 1, len(queue)):
            job, room = queue[i], self.rooms()
            late = place >= 0 and self.now + self.span(job, place) > limit
            if late:
                room[place] = min(room[place], extra)
            if self.offer(job, room, ahead[i]) == place and late:
                extra -= int(self.setup.width[job, place])

    def rooms(self) -> dict[int, int]:
        return {k: state.free for k, state in enumerate(self.pools)}

    def offer(self, job: int, room: dict[int, int], ahead: float) -> int | None:
        """Start a job in the best pool that the plan allows; return that pool."""
        while (k := self.prefer(job, room, ahead)) is not None:
            if self.may_start(job, k):
                self.start(job, k)
                return k
            del room[k]
        return None

    def may_start(self, job: int, k: int) -> bool:
        """Say whether every promise can be met with this job in a pool; the plan is then one that does."""
        others = {j: place for j, place in self.planned.items() if j != job}
        length, width = self.plan_span(job, k), int(self.setup.width[job, k])
        if k not in self.counted or self.fits(k, width, length, self.now, self.running_ones() + self.plans(others)):
            self.planned = others
            return True
        if self.pass_tests >= MAX_TESTS or self.refused_at.get((job, k)) == self.num_stops:
            return False
        self.pass_tests += 1
        mine = (k, self.now, self.now + length, width)
        by_start = [j for j in self.by_start() if j != job]
        for order in (by_start, sorted(by_start, key=lambda j: self.latest[j])):
            found = self.plan_all_of(order, self.now, [mine])
            if all(begin <= self.latest[j] for j, (_, begin) in found.items()):
                self.planned = found
                return True
        self.refused_at[job, k] = self.num_stops
        return False

    def start(self, job: int, k: int) -> None:
        super().start(job, k)
        self.planned.pop(job, None)
        self.until[job] = self.now + self.plan_span(job, k)
        self.margin[job] = min(self.margin[job], self.due[job] - self.now)
        self.is_new[job] = True

    def settle(self) -> None:
        while any(begin <= self.now for _, begin in self.planned.values()):
            then = self.next_change()
            by_start = self.by_start()
            for order in (by_start, sorted(by_start, key=lambda j: self.latest[j])) if then < math.inf else ():
                found = self.plan_all_of(order, then)
                if all(begin <= self.latest[j] for j, (_, begin) in found.items()):
                    self.planned = found
                    return
            job = min((j for j in by_start if self.planned[j][1] <= self.now), key=lambda j: self.latest[j])
            self.start(job, self.planned[job][0])

    def next_change(self) -> float:
        times = [self.until[job] for job in self.running if self.place[job] in self.counted]
        for k in self.counted:
            times += self.pools[k].pending
            times += [self.now + self.lead(k)] if self.pools[k].headroom > 0 else []
        then = min(times, default=math.inf)
        return then if then > self.now else self.now + 1.0

    def rent(self) -> None:
        taken = self.taken()
        for k in self.counted:
            if self.grows(k):
                state, end = self.pools[k], self.now + self.lead(k)
                times = {self.now, *self.times(k, taken)}
                keep = max(state.capacity - self.free_at(k, time, taken) for time in times if self.now <= time < end)
                there = state.pool.num_procs - self.free_at(k, end, taken)
                if there > state.capacity:
                    self.order(k, there - state.capacity)
                self.keep[k] = max(self.keep.get(k, 0), keep, there)

    # The plan.

    def lead(self, k: int) -> float:
        return self.pools[k].pool.provision_s + 1.0

    def grows(self, k: int) -> bool:
        return self.pools[k].pool.is_elastic

    def plan_span(self, job: int, k: int) -> float:
        return max(1.0, (float(self.q.estimate[job]) - self.kept[job]) / self.pools[k].pool.speed)

    def by_start(self) -> list[int]:
        return sorted(self.planned, key=lambda j: (self.planned[j][1], j))

    def running_ones(self) -> list[Taken]:
        return [
            (self.place[j], -math.inf, self.until[j], int(self.setup.width[j, self.place[j]])) for j in self.running
        ]

    def plans(self, planned: dict[int, Place]) -> list[Taken]:
        return [(k, t, t + self.plan_span(j, k), int(self.setup.width[j, k])) for j, (k, t) in planned.items()]

    def taken(self) -> list[Taken]:
        return self.running_ones() + self.plans(self.planned)

    def plan_all_of(self, order: Iterable[int], not_before: float, more: Iterable[Taken] = ()) -> dict[int, Place]:
        taken, found = [*self.running_ones(), *more], {}
        for job in order:
            found[job] = self.find_place(job, taken, not_before)
            taken += self.plans({job: found[job]})
        return found

    def find_place(self, job: int, taken: list[Taken], not_before: float) -> Place:
        able = [k for k in self.counted if self.setup.width[job, k] >= 0]
        fixed = [(self.earliest(job, k, taken, not_before), k) for k in able if not self.grows(k)]
        best = min(fixed, default=(math.inf, -1))
        if best[0] <= self.latest[job]:
            return best[1], best[0]
        for k in (k for k in able if self.grows(k)):
            latest, length, width = self.latest[job], self.plan_span(job, k), int(self.setup.width[job, k])
            if latest >= not_before and self.fits(k, width, length, latest, taken):
                return k, latest
            time = self.earliest(job, k, taken, not_before)
            if time < best[0]:
                best = (time, k)
        return best[1], best[0]

    def earliest(self, job: int, k: int, taken: list[Taken], not_before: float) -> float:
        length, width = self.plan_span(job, k), int(self.setup.width[job, k])
        for time in sorted({not_before, *(t for t in self.times(k, taken) if t > not_before)}):
            if self.fits(k, width, length, time, taken):
                return time
        raise AssertionError("a job that never fits")

    def times(self, k: int, taken: list[Taken]) -> list[float]:
        """Return when what is free in a pool changes."""
        state = self.pools[k]
        times = [end for at, _, end, _ in taken if at == k] + [begin for at, begin, _, _ in taken if at == k]
        times += [*state.pending, *([self.now + self.lead(k)] if state.headroom > 0 else [])]
        return [time for time in times if time > self.now]

    def fits(self, k: int, width: int, length: float, begin: float, taken: list[Taken]) -> bool:
        moments = [begin, *(time for time in self.times(k, taken) if begin < time < begin + length)]
        return all(self.free_at(k, time, taken) >= width for time in moments)

    def free_at(self, k: int, time: float, taken: list[Taken]) -> int:
        state = self.pools[k]
        nodes = len(state.began) + sum(1 for up in state.pending if up <= time)
        if time >= self.now + self.lead(k):
            nodes += state.headroom
        return nodes * state.per_node - sum(w for at, begin, end, w in taken if at == k and begin <= time < end)


def promise_pools_slowly(setup: ReplaySetup, slack_s: Floats) -> tuple[ReplayOutcome, int, PoolPromiseReference]:
    """Replay a set-up slowly; return what happened, DONE or STUCK, and the promises."""
    replay = PoolPromiseReference(setup, slack_s)
    with np.errstate(all="raise"):
        status = replay.run()
    replay.out.due[:] = replay.due
    return replay.out, status, replay
