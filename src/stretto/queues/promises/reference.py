"""What promises mean, as a slow and obvious program; ``promises/kernels`` must equal it, start for start.

Every job with a finite slack is promised a latest start when it is submitted: the earliest time at which it fits behind
everything that runs and everything that is planned, by estimates, plus its slack. From then on any order may propose
starts.

At every event: jobs that have ended leave. A job that outlives its estimate is expected to run for a fifth more, a
minute at least, and all is planned again; a promise that cannot be met then is put off to what can. The plan moves
forward: each job, in the order of planned starts, goes to the earliest time at which it fits. Jobs that arrive are
planned behind all others.

Then a pass: waiting jobs are offered in the order of their keys. The first one that does not fit is the head, and
reserves as in EASY. A job that fits and does not delay the head may start if it is planned for now, or fits without a
change of the plan, or if the others can be planned around it so that each meets its latest start: one after the other,
in the order of planned starts, or else in the order of latest starts. A refused job is not tested again before a job
has ended, and a pass makes only so many tests.

At last, jobs that are planned for now and have not started: all are planned again, none before the next expected end.
Where no such plan meets every promise, the one with the earliest latest start starts now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.promises.slack import parts_of_slack

#: From, until, and processors.
Taken = tuple[float, float, int]
#: Gives the key of a job at a moment; the lowest comes first.
Key = Callable[[int, float], float]


class PromiseReference:
    """A queue with promises.

    Parameters
    ----------
    length
        How long jobs are believed to run, for the reservation of the head; None = reserve by estimates.
    """

    def __init__(
        self,
        jobs: QueueArrays,
        num_procs: int,
        slack_s: Floats,
        key: Key,
        *,
        reserves: bool = True,
        length: Floats | None = None,
        max_tests: int = 1 << 30,
    ) -> None:
        n = len(jobs.submit)
        self.num_procs, self.key, self.reserves, self.max_tests = num_procs, key, reserves, max_tests
        self.submit, self.run_s = jobs.submit.tolist(), jobs.run.tolist()
        self.estimate, self.procs = jobs.estimate.tolist(), [int(p) for p in jobs.procs]
        time_s, wait_share = parts_of_slack(slack_s, n)
        self.slack: list[float] = time_s.tolist()
        self.wait_share: list[float] = wait_share.tolist()
        self.length: list[float] | None = None if length is None else length.tolist()
        self.start, self.due, self.latest = [-1.0] * n, [math.inf] * n, [math.inf] * n
        self.expected: dict[int, float] = {}  # of jobs that run
        self.planned: dict[int, float] = {}  # of waiting jobs with a promise
        self.waiting: list[int] = []
        self.refused_at: dict[int, int] = {}
        self.now, self.num_arrived, self.num_ended = 0.0, 0, 0

    def run(self) -> None:
        """Replay everything."""
        while True:
            times = [min(self.start[j] + self.run_s[j], self.expected[j]) for j in self.expected]
            if self.num_arrived < len(self.submit):
                times.append(self.submit[self.num_arrived])
            if not times:
                return
            self.now = max(self.now, min(times))
            self.happen()
            self.propose()
            self.settle()

    def happen(self) -> None:
        for job in [j for j in self.expected if self.start[j] + self.run_s[j] <= self.now]:
            del self.expected[job]
            self.num_ended += 1
        outlived = [j for j in self.expected if self.expected[j] <= self.now]
        for job in outlived:
            self.expected[job] = self.now + max(60.0, 0.2 * (self.now - self.start[job]))
        self.planned = self.plan(self.by_planned_start(), self.running(), self.now)
        if outlived:
            for job, begin in self.planned.items():
                self.latest[job] = max(self.latest[job], begin)
        while self.num_arrived < len(self.submit) and self.submit[self.num_arrived] <= self.now:
            job = self.num_arrived
            self.num_arrived += 1
            self.waiting.append(job)
            if self.slack[job] < math.inf:
                self.planned[job] = self.earliest(job, self.running() + self.plans(self.planned), self.now)
                begin = self.planned[job]
                self.due[job] = begin + self.slack[job] + self.wait_share[job] * (begin - self.submit[job])
                self.latest[job] = self.due[job]

    def propose(self) -> None:
        head: tuple[float, int] | None = None
        num_tests = 0
        for job in sorted(self.waiting, key=lambda j: (self.key(j, self.now), j)):
            if self.procs[job] > self.free():
                if head is None and self.reserves:
                    head = self.reservation(job)
                continue
            length = self.estimate[job] if self.length is None else min(self.estimate[job], self.length[job])
            ends_late = head is not None and self.now + length > head[0]
            if head is not None and ends_late and self.procs[job] > head[1]:
                continue
            can_start, tested = self.can_start(job, num_tests < self.max_tests)
            num_tests += tested
            if can_start:
                self.begin(job)
                if head is not None and ends_late:
                    head = head[0], head[1] - self.procs[job]

    def can_start(self, job: int, may_test: bool) -> tuple[bool, bool]:
        """Say whether every promise can be met with this job running; the plan is then one that does."""
        others = {j: begin for j, begin in self.planned.items() if j != job}
        if self.planned.get(job, math.inf) <= self.now:
            self.planned = others
            return True, False
        if self.earliest(job, self.running() + self.plans(others), self.now) <= self.now:
            self.planned = others
            return True, False
        if not may_test or self.refused_at.get(job) == self.num_ended:
            return False, False
        mine = (self.now, self.now + self.estimate[job], self.procs[job])
        by_start = [j for j in self.by_planned_start() if j != job]
        for order in (by_start, sorted(by_start, key=lambda j: self.latest[j])):
            found = self.plan(order, [*self.running(), mine], self.now)
            if all(begin <= self.latest[j] for j, begin in found.items()):
                self.planned = found
                return True, True
        self.refused_at[job] = self.num_ended
        return False, True

    def settle(self) -> None:
        while any(begin <= self.now for begin in self.planned.values()):
            by_start = self.by_planned_start()
            for order in (by_start, sorted(by_start, key=lambda j: self.latest[j])) if self.expected else ():
                found = self.plan(order, self.running(), min(self.expected.values()))
                if all(begin <= self.latest[j] for j, begin in found.items()):
                    self.planned = found
                    return
            job = min((j for j in by_start if self.planned[j] <= self.now), key=lambda j: self.latest[j])
            del self.planned[job]
            self.begin(job)

    def begin(self, job: int) -> None:
        self.waiting.remove(job)
        self.start[job] = self.now
        self.expected[job] = self.now + self.estimate[job]

    def reservation(self, head: int) -> tuple[float, int]:
        """Return when the head will fit, and how many processors it will leave then."""
        ends = {job: self.believed_end(job) for job in self.expected}
        for time in sorted(set(ends.values())):
            free = self.free() + sum(self.procs[j] for j, end in ends.items() if end <= time)
            if free >= self.procs[head]:
                return time, free - self.procs[head]
        raise AssertionError("a head that never fits")

    def believed_end(self, job: int) -> float:
        if self.length is None or self.start[job] + self.length[job] <= self.now:
            return self.expected[job]
        return min(self.expected[job], self.start[job] + self.length[job])

    def free(self) -> int:
        return self.num_procs - sum(self.procs[job] for job in self.expected)

    def running(self) -> list[Taken]:
        return [(self.start[j], end, self.procs[j]) for j, end in self.expected.items()]

    def plans(self, planned: dict[int, float]) -> list[Taken]:
        return [(begin, begin + self.estimate[j], self.procs[j]) for j, begin in planned.items()]

    def by_planned_start(self) -> list[int]:
        return sorted(self.planned, key=lambda j: (self.planned[j], j))

    def plan(self, order: Iterable[int], taken: list[Taken], not_before: float) -> dict[int, float]:
        """Return when each job would start, one after the other as early as possible."""
        taken, found = list(taken), {}
        for job in order:
            found[job] = self.earliest(job, taken, not_before)
            taken.append((found[job], found[job] + self.estimate[job], self.procs[job]))
        return found

    def earliest(self, job: int, taken: list[Taken], not_before: float) -> float:
        """Return the first time from which on the job has its processors for as long as its estimate says."""
        for begin in sorted({not_before, *(end for _, end, _ in taken if end > not_before)}):
            end = begin + self.estimate[job]
            moments = [begin, *(b for b, _, _ in taken if begin < b < end)]
            if all(self._free_at(time, taken) >= self.procs[job] for time in moments):
                return begin
        raise AssertionError("a job that never fits")

    def _free_at(self, time: float, taken: list[Taken]) -> int:
        return self.num_procs - sum(procs for begin, end, procs in taken if begin <= time < end)
