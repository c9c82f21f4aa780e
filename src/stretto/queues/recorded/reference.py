"""The definition of a replay under recorded conditions, as a slow and obvious program; the compiled loop equals it.

It is the replay on one machine of ``queues.reference.replay``, with four more rules.

**Usable processors** change at given times. Jobs start while what runs, with them, takes no more than what is usable;
a drop stops no running job. A head that is wider than what is usable may take the whole machine, and starts once what
runs leaves enough of that. Nobody knows future changes: the promise to the head counts with what is usable now, and
where the ends of all running jobs would not be enough for it, there is no promise and every job that fits may pass it.

**Limits.** The running jobs of a group (a user, say) take no more processors than its limit; a group with no running
job may always start one. A job that would start but for the limit leaves the queue and is parked behind the parked
jobs of its group; new jobs of a group with parked jobs are parked at once. At every moment at which jobs of the group
end, its first parked jobs come back into the queue, as many as the limit has room for.

**Delay.** A job can be considered from ``delay`` seconds after its submission.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.keys import static_key
from stretto.queues.recorded.kernels.conditions import DONE, STUCK, ConditionArrays


class LimitedReference:
    """From one moment to the next."""

    def __init__(self, jobs: QueueArrays, conditions: ConditionArrays, code: int, easy: bool) -> None:
        self.jobs, self.conditions, self.code, self.easy = jobs, conditions, code, easy
        self.arriving = {job: float(time) + conditions.delay for job, time in enumerate(jobs.submit.tolist())}
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}
        self.parked: dict[int, list[int]] = {}
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
            if self.easy and self.waiting:
                self.backfill()
        return DONE

    def procs(self, job: int) -> int:
        return int(self.jobs.procs[job])

    def key(self, job: int) -> float:
        q = self.jobs
        found: float = static_key(self.code, job, q.submit[job], q.estimate[job], self.procs(job), q.deadline[job])
        return found

    def capacity(self) -> tuple[int, int]:
        """Return the usable processors, and those of the whole machine."""
        step = int(np.searchsorted(self.conditions.time, self.now, side="right")) - 1
        return int(self.conditions.usable[step]), int(self.conditions.full[step])

    def used(self) -> int:
        return sum(self.procs(job) for job in self.running)

    def held(self, group: int) -> int:
        return sum(self.procs(job) for job in self.running if self.conditions.group[job] == group)

    def lacks(self, job: int) -> bool:
        group = int(self.conditions.group[job])
        held = self.held(group) if group >= 0 else 0
        return held > 0 and held + self.procs(job) > self.conditions.limit[group]

    def end_jobs(self) -> None:
        ended = [job for job, end in self.running.items() if end == self.now]
        for job in ended:
            del self.running[job]
        for group in {int(self.conditions.group[job]) for job in ended}:
            parked = self.parked.get(group, [])
            taken = self.held(group) if parked else 0
            while parked and (taken == 0 or taken + self.procs(parked[0]) <= self.conditions.limit[group]):
                taken += self.procs(parked[0])
                self.waiting.append(parked.pop(0))

    def arrive(self) -> None:
        for job in sorted(job for job, time in self.arriving.items() if time == self.now):
            del self.arriving[job]
            group = int(self.conditions.group[job])
            if group >= 0 and self.parked.get(group):
                self.parked[group].append(job)
            else:
                self.waiting.append(job)

    def park(self, job: int) -> None:
        self.waiting.remove(job)
        self.parked.setdefault(int(self.conditions.group[job]), []).append(job)

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
            if self.lacks(head):
                self.park(head)
            elif self.procs(head) <= self.room(head):
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
            if self.lacks(job):
                self.park(job)
                continue
            if is_late:
                extra -= self.procs(job)
            self.begin(job)


def replay_limited_reference(
    jobs: QueueArrays, conditions: ConditionArrays, code: int, easy: bool
) -> tuple[Floats, int]:
    """Replay slowly; return the starts and DONE or STUCK."""
    replay = LimitedReference(jobs, conditions, code, easy)
    status = replay.run()
    return replay.start_s, status
