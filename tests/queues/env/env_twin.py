"""The queue environment once more, with lists and dictionaries: slow, and easy to read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from stretto.core.trace import Trace

Key = Callable[[float, int], float]


def key_of(trace: Trace, order: str) -> Key:
    """Return the key of a job at a time; a handful of orders is enough here."""

    def key(now: float, job: int) -> float:
        wait = now - float(trace.submit_s[job])
        estimate, procs = float(trace.estimate_s[job]), int(trace.num_procs[job])
        if order == "sjf":
            return estimate
        if order == "saf":
            return estimate * procs
        if order == "wfp3":
            ratio = wait / max(1.0, estimate)
            return -ratio * ratio * ratio * procs
        return float(job)

    return key


@dataclass
class Twin:
    """One episode: the whole trace, which must start at zero."""

    trace: Trace
    num_procs: int
    order: str
    easy: bool
    now: float = 0.0
    start: dict[int, float] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    queue: list[int] = field(default_factory=list)
    arrived: int = 0

    def procs(self, job: int) -> int:
        return int(self.trace.num_procs[job])

    def end(self, job: int) -> float:
        return self.start[job] + float(self.trace.run_s[job])

    @property
    def free(self) -> int:
        return self.num_procs - sum(self.procs(job) for job in self.running)

    @property
    def is_over(self) -> bool:
        return len(self.start) == self.trace.num_jobs

    def begin(self, job: int) -> None:
        self.queue.remove(job)
        self.running.add(job)
        self.start[job] = self.now

    def advance(self) -> None:
        times = [self.end(job) for job in self.running]
        if self.arrived < self.trace.num_jobs:
            times.append(float(self.trace.submit_s[self.arrived]))
        self.now = min(times)
        self.running = {job for job in self.running if self.end(job) > self.now}
        while self.arrived < self.trace.num_jobs and self.trace.submit_s[self.arrived] == self.now:
            self.queue.append(self.arrived)
            self.arrived += 1

    def settle(self) -> None:
        """Go on to the next decision."""
        while not self.is_over and not any(self.procs(job) <= self.free for job in self.queue):
            self.advance()
        key = key_of(self.trace, self.order)
        self.queue.sort(key=lambda job: (key(self.now, job), job))

    def backfill(self, head: int) -> None:
        """Let jobs pass the head if it can still start when it otherwise would, by estimates."""
        releases = sorted((self.start[j] + float(self.trace.estimate_s[j]), self.procs(j)) for j in self.running)
        free, shadow = self.free, math.inf
        for time, procs in releases:
            free += procs
            if free >= self.procs(head):
                shadow = time
                break
        extra = self.free + sum(procs for time, procs in releases if time <= shadow) - self.procs(head)
        for job in [job for job in self.queue if job != head]:
            in_time = self.now + float(self.trace.estimate_s[job]) <= shadow
            if self.procs(job) <= self.free and (in_time or self.procs(job) <= extra):
                extra -= 0 if in_time else self.procs(job)
                self.begin(job)

    def pick(self, job: int) -> None:
        """Start a job, or wait for it until the next event."""
        if self.procs(job) <= self.free:
            self.begin(job)
        else:
            if self.easy:
                self.backfill(job)
            self.advance()
        self.settle()

    def slowdown_so_far(self) -> float:
        """Return the sum of bounded slowdowns, of those that wait as if they started now."""
        total = 0.0
        for job in range(self.arrived):
            run = float(self.trace.run_s[job])
            wait = self.start.get(job, self.now) - float(self.trace.submit_s[job])
            total += max(1.0, (wait + run) / max(run, 10.0))
        return total
