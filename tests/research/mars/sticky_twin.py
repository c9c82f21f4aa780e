"""The sticky queue once more, as plain lists that are sorted as they go: slow, and easy to read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from stretto.core.trace import Trace

#: (now, submit, estimate, processors) -> score
Score = Callable[[float, float, float, int], float]


def _late(submit: float) -> float:
    return math.log10(submit) if submit > 0 else -math.inf


def _wfp3(wait: float, estimate: float, procs: int) -> float:
    return -((wait / estimate) ** 3) * procs


def _unicep(wait: float, estimate: float, procs: int) -> float:
    return -(wait + 1e-15) / (float(np.log2(procs + 1e-15)) * estimate)


SCORES: dict[str, Score] = {
    "fcfs": lambda now, s, e, p: s,
    "sjf": lambda now, s, e, p: e,
    "smallest": lambda now, s, e, p: p,
    "f1": lambda now, s, e, p: math.log10(e) * p + 870 * math.log10(s if s > 0 else 0.1),
    "f2": lambda now, s, e, p: math.sqrt(e) * p + 25600 * _late(s),
    "f3": lambda now, s, e, p: e * p + 6860000 * _late(s),
    "f4": lambda now, s, e, p: e * math.sqrt(p) + 530000 * _late(s),
    "rl-wfp3": lambda now, s, e, p: _wfp3(-1 - s, e, p),
    "rl-unicep": lambda now, s, e, p: _unicep(-1 - s, e, p),
    "wfp3-sticky": lambda now, s, e, p: _wfp3(now - s, e, p),
    "unicep-sticky": lambda now, s, e, p: _unicep(now - s, e, p),
}


@dataclass
class Twin:
    """A machine, a queue and a clock."""

    trace: Trace
    free: int
    start: dict[int, float] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    now: float = 0.0
    arrived: int = 0

    def end(self, job: int) -> float:
        return self.start[job] + float(self.trace.run_s[job])

    def expected(self, job: int) -> float:
        return self.start[job] + float(self.trace.estimate_s[job])

    def fits(self, job: int) -> bool:
        return int(self.trace.num_procs[job]) <= self.free

    def begin(self, job: int) -> None:
        self.queue.remove(job)
        self.running.append(job)
        self.start[job] = self.now
        self.free -= int(self.trace.num_procs[job])

    def next_event(self) -> None:
        self.running.sort(key=self.end)
        release = self.end(self.running[0]) if self.running else math.inf
        if self.arrived < self.trace.num_jobs and self.trace.submit_s[self.arrived] <= release:
            self.now = max(self.now, float(self.trace.submit_s[self.arrived]))
            self.queue.append(self.arrived)
            self.arrived += 1
            return
        self.now = max(self.now, release)
        self.free += int(self.trace.num_procs[self.running.pop(0)])

    def reservation(self, head: int) -> float:
        self.running.sort(key=self.expected)
        free, moment = self.free, self.now
        for job in self.running:
            free += int(self.trace.num_procs[job])
            moment = self.expected(job)
            if free >= self.trace.num_procs[head]:
                break
        return moment

    def backfill(self, moment: float) -> None:
        self.queue.sort(key=lambda job: float(self.trace.submit_s[job]))
        for job in list(self.queue):
            if self.now + float(self.trace.estimate_s[job]) < moment and self.fits(job):
                self.begin(job)


def replay(trace: Trace, num_procs: int, score: str, backfill: bool) -> list[float]:
    """Return the start of each job."""
    twin = Twin(trace, num_procs)

    def key(job: int) -> float:
        return SCORES[score](
            twin.now, float(trace.submit_s[job]), float(trace.estimate_s[job]), int(trace.num_procs[job])
        )

    while len(twin.start) < trace.num_jobs:
        while not twin.queue:
            twin.next_event()
        twin.queue.sort(key=key)
        head = twin.queue[0]
        moment = twin.reservation(head) if backfill and not twin.fits(head) else 0.0
        while not twin.fits(head):
            if backfill:
                twin.backfill(moment)
            twin.next_event()
        twin.begin(head)
    return [twin.start[job] for job in range(trace.num_jobs)]
