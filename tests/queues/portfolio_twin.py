"""The look-ahead portfolio once more, in plain Python with lists and sorts: slow, and easy to check by eye."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.core.kernels.rng import below, uniform
from stretto.core.trace import QueueArrays
from stretto.queues.kernels import forecast as facts
from stretto.queues.kernels import leader as leading
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.kernels.lookahead import BELIEVED, LONG, NARROW, RESERVE
from stretto.queues.kernels.portfolio import HEAT, LookaheadRules


@dataclass
class Job:
    """A job as the scheduler sees it, or a guess of one."""

    index: int
    submit: float
    estimate: float
    procs: int
    deadline: float
    kinds: tuple[int, ...]
    start: float = -1.0
    run: float = 0.0
    believed: float = 0.0

    @property
    def expected(self) -> float:
        return self.start + self.estimate


def _plain(kernel: Any) -> Any:
    """Return a kernel as a Python function, which it is without the compiler."""
    return getattr(kernel, "py_func", kernel)


def key(code: int, job: Job, now: float) -> tuple[float, int]:
    code %= RESERVE
    length = job.believed if code >= BELIEVED else job.estimate
    if code % BELIEVED >= FIRST_DYNAMIC:
        return _plain(dynamic_key)(code % BELIEVED, now, job.submit, length, job.procs), job.index
    return _plain(static_key)(code % BELIEVED, job.index, job.submit, length, job.procs, job.deadline), job.index


@dataclass
class Kind:
    """What jobs of a kind did."""

    weight: float = 0.0
    ratio: float = 0.0
    sharp: float = 0.0
    last: list[float] = field(default_factory=list)  # the newest at the place of the oldest
    num_ended: int = 0

    def add(self, ratio: float, sharp: float) -> None:
        self.weight = facts.DISCOUNT * self.weight + 1.0
        self.ratio = facts.DISCOUNT * self.ratio + ratio
        self.sharp = facts.DISCOUNT * self.sharp + sharp
        place = self.num_ended % facts.RING
        self.last[place : place + 1] = [ratio]
        self.num_ended += 1


def need(code: int, job: Job, num_procs: int) -> int:
    """Return how many processors must be free: a long job leaves some percent of them to others."""
    reserve = math.ceil(code // RESERVE % 100 * num_procs / 100) if job.believed > LONG else 0
    return min(job.procs + reserve, max(job.procs, math.ceil(num_procs / facts.PLENTY)))


def easy(
    queue: list[Job], running: list[tuple[float, int]], now: float, free: int, code: int, num_procs: int
) -> list[Job]:
    """Return what starts now; ``running`` holds expected ends and processors."""
    started: list[Job] = []
    waiting = list(queue)
    while waiting and need(code, waiting[0], num_procs) <= free:
        job = waiting.pop(0)
        started.append(job)
        free -= job.procs
    if not waiting:
        return started
    ends = sorted(running + [(now + job.estimate, job.procs) for job in started])
    lack = need(code, waiting[0], num_procs) - free
    shadow = min(end for end, _ in ends if sum(p for e, p in ends if e <= end) >= lack)
    extra = sum(p for e, p in ends if e <= shadow) - lack
    for job in waiting[1:]:
        if need(code, job, num_procs) > free or (code >= NARROW and job.believed > LONG):
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
    kinds: Any
    num_procs: int
    codes: list[int]
    look: LookaheadRules
    state: Any
    past: dict[int, Kind] = field(default_factory=dict)
    is_hurt: bool = False

    @property
    def base(self) -> int:
        """The base; until a short job has had to wait, nothing is kept free."""
        return self.codes[0] if self.is_hurt else self.codes[0] % RESERVE

    def remember(self, job: Job, run: float) -> None:
        for kind in job.kinds:
            sharp = max(facts.BOUND, job.estimate) / max(facts.BOUND, run)
            self.past.setdefault(kind, Kind()).add(run / job.estimate, sharp)

    def believe(self, job: Job) -> float:
        ratio = facts.FIRST_RATIO
        bounded = max(facts.BOUND, job.estimate)
        sharp = bounded / max(facts.BOUND, facts.FIRST_SHARP_RATIO * job.estimate)
        for kind in reversed(job.kinds):
            known = self.past.get(kind, Kind())
            ratio = (known.ratio + facts.LEAN * ratio) / (known.weight + facts.LEAN)
            sharp = (known.sharp + facts.LEAN * sharp) / (known.weight + facts.LEAN)
        mean, harmonic = job.estimate * ratio, bounded / sharp
        return max(1.0, mean ** (1.0 - facts.SHARPNESS) * harmonic**facts.SHARPNESS)

    def draw_run(self, job: Job) -> float:
        for kind in job.kinds:
            ratios = self.past.get(kind, Kind()).last
            is_last = kind == job.kinds[-1]
            if ratios and (is_last or uniform(self.state) * (len(ratios) + facts.LEAN) < len(ratios)):
                return ratios[int(below(self.state, len(ratios)))] * job.estimate
        return job.estimate * (0.5 + 0.5 * float(uniform(self.state)))

    def draw_end(self, job: Job, now: float) -> float:
        elapsed = now - job.start
        for _ in range(facts.TRIES):
            run = self.draw_run(job)
            if run > elapsed:
                return max(job.start + run, now)
        return max(job.start + (elapsed + (job.estimate - elapsed) * float(uniform(self.state))), now)

    def imagine(
        self, jobs: list[Job], running: list[Job], waiting: list[Job], now: float
    ) -> tuple[dict[int, float], list[Job]]:
        ends = {job.index: self.draw_end(job, now) for job in running}
        for job in waiting:
            job.run = self.draw_run(job)
        recent = jobs[-self.look.memory :]
        guesses: list[Job] = []
        if self.look.num_guesses == 0 or len(recent) < 2:
            return ends, guesses
        gone = {job.index for job in jobs} - {job.index for job in running + waiting}
        at = int(below(self.state, len(recent)))
        moment = now
        for k in range(self.look.num_guesses):
            at = at + 1 if at + 1 < len(recent) else 1
            model = recent[at]
            moment += model.submit - recent[at - 1].submit
            deadline = moment + (model.deadline - model.submit)
            guess = Job(len(self.q.submit) + k, moment, model.estimate, model.procs, deadline, model.kinds)
            guess.believed = self.believe(guess)
            guess.run = self.q.run[model.index].item() if model.index in gone else self.draw_run(guess)
            guesses.append(guess)
        return ends, guesses

    def cost(
        self,
        choice: list[Job],
        waiting: list[Job],
        running: list[Job],
        ends: dict[int, float],
        guesses: list[Job],
        now: float,
    ) -> float:
        """Return what waiting costs when these start now and the base goes on, with a whole pass at every moment."""
        busy = [(ends[job.index], job.expected, job.procs) for job in running]
        busy += [(now + job.run, now + job.estimate, job.procs) for job in choice]
        queue = [job for job in waiting if job not in choice]
        coming = list(guesses)
        free = self.num_procs - sum(procs for *_, procs in busy)
        cost = 0.0
        while queue or coming:
            moment = min([end for end, *_ in busy] + [job.submit for job in coming])
            free += sum(procs for end, _, procs in busy if end == moment)
            busy = [entry for entry in busy if entry[0] != moment]
            queue += [job for job in coming if job.submit == moment]
            coming = [job for job in coming if job.submit != moment]
            queue.sort(key=lambda job: key(self.base, job, moment))
            known = [(expected, procs) for _, expected, procs in busy]
            for job in easy(queue, known, moment, free, self.base, self.num_procs):
                cost += (moment - max(now, job.submit)) / max(facts.BOUND, job.believed)
                busy.append((moment + job.run, moment + job.estimate, job.procs))
                free -= job.procs
                queue.remove(job)
        return cost

    def choose(
        self, choices: dict[int, list[Job]], jobs: list[Job], waiting: list[Job], running: list[Job], now: float
    ) -> int:
        gains: dict[int, list[float]] = {c: [] for c in choices if c != 0}
        done = 0
        while gains and done < self.look.num_scenarios:
            ends, guesses = self.imagine(jobs, running, waiting, now)
            done += 1
            base = self.cost(choices[0], waiting, running, ends, guesses, now)
            for c in list(gains):
                gains[c].append(base - self.cost(choices[c], waiting, running, ends, guesses, now))
                if done >= HEAT and not sum(gains[c]) > 0.0:
                    del gains[c]
        best, most = 0, 0.0
        for c, values in gains.items():
            spread = max(0.0, sum(v * v for v in values) - sum(values) * sum(values) / done)
            sure = sum(values) - self.look.confidence * float(np.sqrt(spread))
            if sure > most:
                best, most = c, sure
        return best

    def past_cost(self, code: int, past: list[Job], running: list[Job], waiting: list[Job], now: float) -> float:
        """Return the slowdown until now, had the past begun with an empty machine and this order."""
        unended = {job.index for job in running + waiting}
        run = {job.index: self.q.run[job.index].item() for job in past if job.index not in unended}
        run |= {job.index: max(job.believed, self.now - job.start) for job in running}
        run |= {job.index: job.believed for job in waiting}
        busy: list[tuple[float, float, int]] = []
        queue: list[Job] = []
        coming, free, cost = list(past), self.num_procs, {}
        while queue or coming:
            moment = min([end for end, *_ in busy] + [job.submit for job in coming])
            free += sum(procs for end, _, procs in busy if end == moment)
            busy = [entry for entry in busy if entry[0] != moment]
            queue += [job for job in coming if job.submit == moment]
            coming = [job for job in coming if job.submit != moment]
            queue.sort(key=lambda job: key(code, job, moment))
            known = [(expected, procs) for _, expected, procs in busy]
            for job in easy(queue, known, moment, free, code, self.num_procs):
                began = min(moment + job.estimate - job.estimate, now)  # rounded as the kernel's
                cost[job.index] = max(0.0, began - job.submit) / max(facts.BOUND, run[job.index])
                busy.append((moment + run[job.index], moment + job.estimate, job.procs))
                free -= job.procs
                queue.remove(job)
        return sum(cost[job.index] for job in past)

    def review(self, jobs: list[Job], running: list[Job], waiting: list[Job], now: float) -> int:
        self.now = now
        past = jobs[-leading.REACH :]
        unended = {job.index for job in running + waiting}
        stretch = max(1, min(leading.STRETCH, len(past) // 4))
        settled = [
            k
            for k in range(stretch, len(past) + 1)
            if 4 * sum(job.index not in unended for job in past[k - stretch : k]) >= 3 * stretch
        ]
        if not settled:
            return 0
        past, now = past[: settled[-1]], past[settled[-1] - 1].submit
        own = [c for c, code in enumerate(self.codes) if code % RESERVE == self.codes[0] % RESERVE]
        costs = {c: self.past_cost(self.codes[c], past, running, waiting, now) for c in own}
        best, least = 0, costs[0] * (1.0 - leading.MARGIN)
        for c, cost in costs.items():
            if c > 0 and cost < least:
                best, least = c, cost
        return best

    def different(self, waiting: list[Job], running: list[Job], now: float, free: int) -> dict[int, list[Job]]:
        """Return what each order would start, without those that start what an earlier one does."""
        known = [(job.expected, job.procs) for job in running]
        found: dict[int, list[Job]] = {}
        for c, own in enumerate(self.codes):
            code = own % RESERVE + self.base // RESERVE * RESERVE  # what the base leaves to reserve all do
            queue = sorted(waiting, key=lambda job: key(code, job, now))
            started = easy(queue, known, now, free, code, self.num_procs)
            if all({job.index for job in started} != {job.index for job in other} for other in found.values()):
                found[c] = started
            if c == 0 and len(started) == len(waiting):
                break  # when the base starts all, nobody is asked whether to hold some back
        return found

    def replay(self) -> tuple[list[float], list[int], int]:
        """Return starts, candidates that made them, and the number of epochs."""
        n = len(self.q.submit)
        columns = (self.q.submit, self.q.estimate, self.q.procs, self.q.deadline)
        todo = [Job(j, *(column[j].item() for column in columns), tuple(self.kinds[j].tolist())) for j in range(n)]
        jobs: list[Job] = []
        waiting: list[Job] = []
        running: list[Job] = []
        chosen = [0] * n
        next_epoch, pause, num_epochs = -np.inf, 0, 0
        self.codes, label = list(self.codes), list(range(len(self.codes)))
        review = self.look.review or n + 1
        while len(jobs) < n or running:
            end = {job.index: job.start + self.q.run[job.index].item() for job in running}
            now = min([*end.values(), *(job.submit for job in todo[len(jobs) : len(jobs) + 1])])
            for job in sorted(running, key=lambda job: job.index):
                if end[job.index] == now:
                    running.remove(job)
                    self.remember(job, self.q.run[job.index].item())
            arrivals = [job for job in todo[len(jobs) :] if job.submit == now]
            jobs += arrivals
            waiting += arrivals
            free = self.num_procs - sum(job.procs for job in running)
            if all(job.procs > free for job in waiting):
                continue
            for job in waiting:
                job.believed = self.believe(job)
            if len(jobs) >= review:
                grown = int(leading.GROWTH * min(len(jobs), leading.REACH))
                review = len(jobs) + max(self.look.review, grown)
                first = self.review(jobs, running, waiting, now)
                for row in (self.codes, label):
                    row[0], row[first] = row[first], row[0]
            pause -= 1
            choices = self.different(waiting, running, now, free)
            best = 0
            looks = len(waiting) > 1 and now >= next_epoch and pause < 0
            if looks:
                pause = (len(waiting) // self.look.depth) ** 2
            if looks and len(choices) > 1:
                best = self.choose(choices, jobs, waiting, running, now)
                next_epoch = now + self.look.interval
                num_epochs += 1
            for job in choices[best]:
                job.start = now
                self.is_hurt = self.is_hurt or (now > job.submit and job.believed <= LONG)
                chosen[job.index] = label[best]
                waiting.remove(job)
                running.append(job)
            running.sort(key=lambda job: job.expected)  # stable: equal ends in order of start
        return [job.start for job in todo], chosen, num_epochs
