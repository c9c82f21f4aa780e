"""What ``queues/mars/kernels`` should do, as a slow and obvious program on top of that of promises.

Quantiles of forecasts come from the kernels of ``queues/forecasts``, which have a twin of their own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.forecasts.kernels.online import FADE, LEAN_JOBS, LEAST_S, NUM_LEVELS, RING, foresee, remember
from stretto.queues.kernels.keys import FIRST_DYNAMIC, dynamic_key, static_key
from stretto.queues.mars.candidates import Candidate
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.promises.reference import PromiseReference

MEDIAN, UPPER = 2, 4


def classic_key(q: QueueArrays, code: int, job: int, now: float) -> float:
    """Return the key of a job by a code of ``keys``."""
    if code >= FIRST_DYNAMIC:
        return float(dynamic_key(code, now, q.submit[job], q.estimate[job], q.procs[job]))
    return float(static_key(code, job, q.submit[job], q.estimate[job], q.procs[job], q.deadline[job]))


def score_of(net: Any, x: list[float]) -> float:
    """Return the score of the features of a job, by the formula."""
    return sum(float(weight) * value for weight, value in zip(net.weight, x, strict=True))


class PolicyTwin(PromiseReference):
    """A queue without promises that can be led from event to event."""

    def until(self, now: float) -> None:
        while True:
            times = [min(self.start[j] + self.run_s[j], self.expected[j]) for j in self.expected]
            if self.num_arrived < len(self.submit):
                times.append(self.submit[self.num_arrived])
            if not times or max(self.now, min(times)) > now:
                return
            self.now = max(self.now, min(times))
            self.happen()
            self.propose()
            self.settle()


class MarsTwin(PromiseReference):
    """One candidate on a queue with promises, with its forecasts, and the operator's policy beside it."""

    def __init__(
        self,
        jobs: QueueArrays,
        num_procs: int,
        slack_s: Floats,
        one: Candidate,
        forecasts: Any,
        policy: int,
        pause: float = P.forecast_pause,
    ) -> None:
        def key(job: int, now: float) -> float:
            return classic_key(jobs, one.code, job, now)

        super().__init__(jobs, num_procs, slack_s, key, length=jobs.estimate, max_tests=P.max_tests)
        self.jobs, self.one, self.f, self.pause = jobs, one, forecasts, pause
        self.length: list[float] = jobs.estimate.tolist()
        n = len(jobs.submit)
        self.mean, self.sharp, self.looked = [1.0] * n, [1.0] * n, [-1.0] * n
        self.features: dict[int, list[float]] = {}
        self.width = 0.0  # running mean of the processors of short jobs
        nothing = np.full(n, math.inf)
        self.beside = PolicyTwin(jobs, num_procs, nothing, lambda job, now: classic_key(jobs, policy, job, now))
        self.beside.run_s = [max(1.0, e) for e in self.beside.estimate]

    def happen(self) -> None:
        over = [j for j in sorted(self.expected, key=lambda j: self.expected[j]) if self._has_ended(j)]
        for job in over:
            remember(self.f, job, self.now - self.start[job], self.now)
            self.beside.run_s[job] = self.run_s[job]
        first = self.num_arrived
        super().happen()
        for job in range(first, self.num_arrived):
            self.length[job] = min(self.estimate[job], foresee(self.f, job, self.now, MEDIAN))
        for job in self.waiting:
            news = self.f.learned[self.f.user[job]] > self.f.told[job]
            waited = self.now - self.submit[job]
            if self.looked[job] < 0:
                self.look(job)
                if self.mean[job] <= P.long_s:
                    self.width += P.width_rate * (self.procs[job] - self.width)
            elif news and self.now - self.looked[job] >= self.pause * waited:
                self.look(job)
        for job in range(first, self.num_arrived):
            self.beside.run_s[job] = max(1.0, self.length[job])
        self.beside.until(self.now)

    def _has_ended(self, job: int) -> bool:
        return self.start[job] + self.run_s[job] <= self.now

    def look(self, job: int) -> None:
        """Forecast a job and note the features that come of it."""
        self.length[job] = min(self.estimate[job], foresee(self.f, job, self.now, MEDIAN))
        self.mean[job], self.sharp[job] = self.means(job)
        self.looked[job] = self.now
        limit = float(self.f.log_limit[job])
        logs = math.log(self.mean[job]), math.log(self.sharp[job]), limit + float(self.f.quantile[UPPER]), limit
        width = math.log(self.procs[job]) / 3.0
        self.features[job] = [
            *((value - math.log(3600.0)) / 3.0 for value in logs),
            width,
            self.procs[job] / self.num_procs,
        ]

    def means(self, job: int) -> tuple[float, float]:
        """Return mean and harmonic mean of the mixture of recent jobs over the groups of a job."""
        f, limit, left, parts = self.f, float(self.f.log_limit[job]), 1.0, []
        for k in range(NUM_LEVELS):
            of, ended = f.level[job, k], int(f.ended[f.level[job, k]])
            recent = [float(f.ring[of, (ended - 1 - back) % RING]) for back in range(min(ended, RING))]
            if recent:
                weights = [FADE**back for back in range(len(recent))]
                share = left if k == NUM_LEVELS - 1 else left * sum(weights) / (sum(weights) + LEAN_JOBS)
                runs = [max(LEAST_S, min(math.exp(limit), math.exp(limit + ratio))) for ratio in recent]
                parts += [(share * weight / sum(weights), run) for weight, run in zip(weights, runs, strict=True)]
                left -= share
        if not parts:
            half = max(LEAST_S, math.exp(limit + float(f.quantile[MEDIAN])))
            return half, half
        total = sum(weight for weight, _ in parts)
        return sum(w * run for w, run in parts) / total, total / sum(w / run for w, run in parts)

    def score(self, job: int) -> float:
        """Return the score of a waiting job now."""
        waited, late = self.now - self.submit[job], self.beside.start[job]
        latest = self.latest[job]
        urgency = 0.0 if math.isinf(latest) else min(1.0, waited / max(1.0, latest - self.submit[job]))
        x = [
            *self.features[job],
            math.log(1.0 + waited / 60.0) / 3.0,
            math.log(1.0 + waited / self.sharp[job]) / 3.0,
            urgency,
            math.log(1.0 + max(0.0, self.now - late) / 60.0) / 3.0 if late >= 0 else 0.0,
        ]
        return score_of(self.one.net, x)

    def need(self, job: int) -> int:
        """Return how many processors must be free for a job to start."""
        reserve = float(self.one.net.reserve[0])
        if reserve <= 0 or self.mean[job] <= P.long_s:
            return self.procs[job]
        kept = self.procs[job] + math.ceil(reserve * self.width)
        return max(self.procs[job], min(kept, math.ceil(P.roomy * self.num_procs)))

    def propose(self) -> None:
        if not self.one.is_network:
            kept, self.length = self.length, None  # type: ignore[assignment]
            super().propose()
            self.length = kept
            return
        score = {job: self.score(job) for job in self.waiting}
        head: tuple[float, int] | None = None
        num_tests = 0
        for job in sorted(self.waiting, key=lambda j: (-score[j], j)):
            if self.need(job) > self.free():
                head = self.reservation(job) if head is None else head
                continue
            late = head is not None and self.now + min(self.estimate[job], self.length[job]) > head[0]
            if head is not None and late and self.procs[job] > head[1]:
                continue
            can_start, tested = self.can_start(job, num_tests < self.max_tests)
            num_tests += tested
            if can_start:
                self.begin(job)
                if head is not None and late:
                    head = head[0], head[1] - self.procs[job]

    def reservation(self, head: int) -> tuple[float, int]:
        """A head that only leaves too little free for others fits now."""
        if self.procs[head] <= self.free():
            return self.now, self.free() - self.procs[head]
        return super().reservation(head)
