"""The definition of a replay under recorded conditions, as a slow and obvious program; the compiled loop equals it.

It is the replay on one machine of ``queues.reference.replay``, with two more rules.

**Usable processors** change at given times. Jobs start while what runs, with them, takes no more than what is usable;
a drop stops no running job. A head that is wider than what is usable may take the whole machine, and starts once what
runs leaves enough of that. Nobody knows future changes: the promise to the head counts with what is usable now, and
where the ends of all running jobs would not be enough for it, there is no promise and every job that fits may pass it.

**Orders** may change with the wait; ``multifactor`` counts the size of a job against the whole machine, and what users
have used when their jobs end, with a half-life.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.recorded.kernels.conditions import DONE, STUCK, ConditionArrays, PolicyCode


class LimitedReference:
    """From one moment to the next."""

    def __init__(self, jobs: QueueArrays, conditions: ConditionArrays, policy: PolicyCode) -> None:
        self.jobs, self.conditions, self.policy = jobs, conditions, policy
        self.arriving = {job: float(time) for job, time in enumerate(jobs.submit.tolist())}
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}
        #: What users (None: everyone) have used, and since when it fades.
        self.usage: dict[int | None, tuple[float, float]] = {}
        self.start_s: Floats = np.full(len(jobs.submit), -1.0)
        self.now = 0.0

    def run(self) -> int:
        """Replay everything."""
        while self.arriving or self.waiting or self.running:
            times = [*self.arriving.values(), *self.running.values()]
            if self.waiting:
                times += [float(time) for time in self.conditions.time[1:] if time > self.now]
            if not times:
                return STUCK
            self.now = min(times)
            self.end_jobs()
            self.arrive()
            self.waiting.sort(key=lambda job: (self.key(job), job))
            self.start_heads()
            if self.policy.is_easy and self.waiting:
                self.backfill()
        return DONE

    def procs(self, job: int) -> int:
        return int(self.jobs.procs[job])

    def key(self, job: int) -> float:
        q, code = self.jobs, self.policy.order
        submit, estimate = float(q.submit[job]), float(q.estimate[job])
        if code == MULTIFACTOR:
            return -self.priority(job)
        if code >= FIRST_DYNAMIC:
            return float(dynamic_key(code, self.now, submit, estimate, self.procs(job)))
        return float(static_key(code, job, submit, estimate, self.procs(job), q.deadline[job]))

    def priority(self, job: int) -> float:
        """Return age, size and fair share, weighted."""
        weights, num_users = self.policy, int(self.jobs.user.max()) + 1
        everyone, factor = self.used_by(None), 1.0
        if everyone > 0:
            factor = math.exp(-math.log(2.0) * (self.used_by(int(self.jobs.user[job])) / everyone * num_users))
        age = weights.age * min(1.0, (self.now - float(self.jobs.submit[job])) / weights.max_age)
        size = weights.size * (self.procs(job) / int(self.conditions.full.max()))
        return age + size + weights.fair_share * factor

    def used_by(self, user: int | None) -> float:
        """Return what a user has used, as it counts now."""
        used, since = self.usage.get(user, (0.0, 0.0))
        return used * math.exp(-math.log(2.0) * ((self.now - since) / self.policy.half_life))

    def capacity(self) -> tuple[int, int]:
        """Return the usable processors, and those of the whole machine."""
        step = int(np.searchsorted(self.conditions.time, self.now, side="right")) - 1
        return int(self.conditions.usable[step]), int(self.conditions.full[step])

    def used(self) -> int:
        return sum(self.procs(job) for job in self.running)

    def end_jobs(self) -> None:
        for job in sorted(job for job, end in self.running.items() if end == self.now):
            del self.running[job]
            for user in (int(self.jobs.user[job]), None) if self.policy.order == MULTIFACTOR else ():
                used = self.procs(job) * (self.now - float(self.start_s[job]))
                self.usage[user] = (self.used_by(user) + used, self.now)

    def arrive(self) -> None:
        for job in sorted(job for job, time in self.arriving.items() if time == self.now):
            del self.arriving[job]
            self.waiting.append(job)

    def begin(self, job: int) -> None:
        self.waiting.remove(job)
        self.start_s[job] = self.now
        self.running[job] = self.now + float(self.jobs.run[job])

    def room(self, job: int) -> int:
        """Return the processors that a head finds."""
        usable, full = self.capacity()
        return (full if self.procs(job) > usable else usable) - self.used()

    def start_heads(self) -> None:
        while self.waiting:
            head = self.waiting[0]
            if self.procs(head) <= self.room(head):
                self.begin(head)
            else:
                return

    def promise(self, head: int) -> tuple[float, int]:
        """Return when the head will fit by the estimates of what runs, and what is then left."""
        room = self.room(head)
        expected = sorted(
            (max(self.now, float(self.start_s[job] + self.jobs.estimate[job])), self.procs(job)) for job in self.running
        )
        for time, _ in expected:
            then = room + sum(procs for end, procs in expected if end <= time)
            if then >= self.procs(head):
                return time, then - self.procs(head)
        return math.inf, 0

    def backfill(self) -> None:
        shadow, extra = self.promise(self.waiting[0])
        for job in self.waiting[1:]:
            is_late = self.now + float(self.jobs.estimate[job]) > shadow
            if self.procs(job) > self.capacity()[0] - self.used() or (is_late and self.procs(job) > extra):
                continue
            if is_late:
                extra -= self.procs(job)
            self.begin(job)


def replay_limited_reference(jobs: QueueArrays, conditions: ConditionArrays, policy: PolicyCode) -> tuple[Floats, int]:
    """Replay slowly; return the starts and DONE or STUCK."""
    replay = LimitedReference(jobs, conditions, policy)
    status = replay.run()
    return replay.start_s, status
