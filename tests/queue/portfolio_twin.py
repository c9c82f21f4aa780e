"""The look-ahead portfolio once more, in plain Python with lists and sorts: slow, and easy to check by eye."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.domain.trace import QueueArrays
from stretto.kernels.queue_forecast import WINDOW
from stretto.kernels.queue_keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.kernels.queue_portfolio import Look
from stretto.kernels.rng import below


@dataclass
class Job:
    """A job as the scheduler sees it, or a guess of one."""

    index: int
    submit: float
    estimate: float
    procs: int
    deadline: float
    user: int
    start: float = -1.0
    run: float = 0.0
    weight: float = 0.0

    @property
    def expected(self) -> float:
        return self.start + self.estimate


def key(code: int, job: Job, now: float) -> tuple[float, int]:
    if code >= FIRST_DYNAMIC:
        return dynamic_key.py_func(code, now, job.submit, job.estimate, job.procs), job.index
    return static_key.py_func(code, job.index, job.submit, job.estimate, job.procs, job.deadline), job.index


def easy(queue: list[Job], running: list[tuple[float, int]], now: float, free: int) -> list[Job]:
    """Return what starts now; ``running`` holds expected ends and processors."""
    started: list[Job] = []
    waiting = list(queue)
    while waiting and waiting[0].procs <= free:
        job = waiting.pop(0)
        started.append(job)
        free -= job.procs
    if not waiting:
        return started
    ends = sorted(running + [(now + job.estimate, job.procs) for job in started])
    need = waiting[0].procs - free
    shadow = min(end for end, _ in ends if sum(p for e, p in ends if e <= end) >= need)
    extra = sum(p for e, p in ends if e <= shadow) - need
    for job in waiting[1:]:
        if job.procs > free:
            continue
        if now + job.estimate > shadow:
            if job.procs > extra:
                continue
            extra -= job.procs
        free -= job.procs
        started.append(job)
    return started


@dataclass
class Twin:
    """A replay."""

    q: QueueArrays
    num_procs: int
    codes: list[int]
    look: Look
    state: Any
    rings: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # user: (ratio, estimate)
    count: dict[int, int] = field(default_factory=dict)

    def remember(self, user: int, run: float, estimate: float) -> None:
        for row in (user, -1):
            ring = self.rings.setdefault(row, [])
            seen = self.count.get(row, 0)
            if seen < WINDOW:
                ring.append((run / estimate, estimate))
            else:
                ring[seen % WINDOW] = (run / estimate, estimate)
            self.count[row] = seen + 1

    def alike(self, job: Job) -> list[float]:
        ring = self.rings.get(job.user) or self.rings.get(-1, [])
        same = [ratio for ratio, estimate in ring if estimate == job.estimate]
        return same or [ratio for ratio, _ in ring]

    def expected_run(self, job: Job) -> float:
        ratios = self.alike(job)
        total = 0.0
        for ratio in ratios:
            total += ratio
        return job.estimate * total / len(ratios) if ratios else job.estimate

    def draw_run(self, job: Job, elapsed: float) -> float:
        lasting = [ratio * job.estimate for ratio in self.alike(job) if ratio * job.estimate > elapsed]
        if not lasting:
            return job.estimate if elapsed == 0.0 else (elapsed + job.estimate) / 2.0
        return lasting[int(below(self.state, len(lasting)))]

    def imagine(
        self, jobs: list[Job], running: list[Job], waiting: list[Job], now: float
    ) -> tuple[dict[int, float], list[Job]]:
        ends = {}
        for job in running:
            ends[job.index] = max(job.start + self.draw_run(job, now - job.start), now)
        for job in waiting:
            job.run = self.draw_run(job, 0.0)
            job.weight = 1.0 / max(10.0, self.expected_run(job))
        oldest = max(0, len(jobs) - self.look.memory)
        guesses: list[Job] = []
        if self.look.num_guesses == 0 or len(jobs) - oldest < 2:
            return ends, guesses
        at = oldest + int(below(self.state, len(jobs) - oldest))
        moment = now
        for k in range(self.look.num_guesses):
            at += 1
            if at >= len(jobs):
                at = oldest + 1
            moment += jobs[at].submit - jobs[at - 1].submit
            model = jobs[at]
            guess = Job(
                len(self.q.submit) + k,
                moment,
                model.estimate,
                model.procs,
                moment + (model.deadline - model.submit),
                model.user,
            )
            guess.run = self.draw_run(guess, 0.0)
            guess.weight = 1.0 / max(10.0, self.expected_run(guess))
            guesses.append(guess)
        return ends, guesses

    def work_off(
        self, code: int, waiting: list[Job], running: list[Job], ends: dict[int, float], guesses: list[Job], now: float
    ) -> float:
        busy = [(ends[job.index], job.expected, job.procs) for job in running]
        coming = list(guesses)
        queue = sorted(waiting, key=lambda job: key(code, job, now))
        free = self.num_procs - sum(procs for *_, procs in busy)
        cost = 0.0
        moment = now
        while True:
            started = easy(queue, [(expected, procs) for _, expected, procs in busy], moment, free)
            for job in started:
                cost += job.weight * (moment - max(now, job.submit))
                busy.append((moment + job.run, moment + job.estimate, job.procs))
                free -= job.procs
                queue.remove(job)
            if not queue and not coming:
                return cost
            moment = min([end for end, *_ in busy] + [job.submit for job in coming])
            free += sum(procs for end, _, procs in busy if end == moment)
            busy = [entry for entry in busy if entry[0] != moment]
            queue += [job for job in coming if job.submit == moment]
            coming = [job for job in coming if job.submit != moment]
            queue.sort(key=lambda job: key(code, job, moment))

    def choose(self, jobs: list[Job], waiting: list[Job], running: list[Job], now: float) -> int:
        costs = [0.0] * len(self.codes)
        for _ in range(self.look.num_scenarios):
            ends, guesses = self.imagine(jobs, running, waiting, now)
            for c, code in enumerate(self.codes):
                costs[c] += self.work_off(code, waiting, running, ends, guesses, now)
        costs[0] *= 1.0 - self.look.margin
        return self.codes[costs.index(min(costs))]

    def replay(self) -> tuple[list[float], list[int], int]:
        """Return starts, orders in force, and the number of epochs."""
        n = len(self.q.submit)
        columns = (self.q.submit, self.q.estimate, self.q.procs, self.q.deadline, self.q.user)
        todo = [Job(j, *(column[j].item() for column in columns)) for j in range(n)]
        jobs: list[Job] = []
        waiting: list[Job] = []
        running: list[Job] = []
        chosen = [0] * n
        code, next_epoch, pause, num_epochs = self.codes[0], -np.inf, 0, 0
        while len(jobs) < n or running:
            end = {job.index: job.start + self.q.run[job.index].item() for job in running}
            now = min([*end.values(), *(job.submit for job in todo[len(jobs) : len(jobs) + 1])])
            for job in sorted(running, key=lambda job: job.index):
                if end[job.index] == now:
                    running.remove(job)
                    self.remember(job.user, self.q.run[job.index].item(), job.estimate)
            arrivals = [job for job in todo[len(jobs) :] if job.submit == now]
            jobs += arrivals
            waiting += arrivals
            if not waiting:
                continue
            pause -= 1
            free = self.num_procs - sum(job.procs for job in running)
            known = [(job.expected, job.procs) for job in running]
            passes = {c: easy(sorted(waiting, key=lambda job: key(c, job, now)), known, now, free) for c in self.codes}
            sets = {frozenset(job.index for job in started) for started in passes.values()}
            if len(sets) > 1 and now >= next_epoch and pause < 0:
                code = self.choose(jobs, waiting, running, now)
                next_epoch = now + self.look.interval
                pause = (len(waiting) // self.look.depth) ** 2
                num_epochs += 1
            for job in passes[code]:
                job.start = now
                chosen[job.index] = code
                waiting.remove(job)
                running.append(job)
            running.sort(key=lambda job: job.expected)  # stable: equal ends in order of start
        return [job.start for job in todo], chosen, num_epochs
