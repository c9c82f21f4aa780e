"""A replay by a scoring network as plainly as it can be said; slow, and the same to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stretto.core.trace import QueueArrays
from stretto.queues.kernels.forecast import (
    BOUND,
    DISCOUNT,
    FIRST_SHARP_RATIO,
    LEAN,
    LONG,
    PLENTY,
    Past,
    believe,
    new_past,
    remember,
)
from stretto.queues.mars.kernels import forecast as mf
from stretto.queues.mars.kernels import policy as f
from stretto.queues.mars.kernels.run import PAUSE


@dataclass
class Waiting:
    job: int
    believed: float
    sharp: float
    looked: int
    since: float


def harmonic(past: Past, kinds: np.ndarray, estimate: float) -> float:
    """Return the harmonic mean of like run times: the widest kind first, each narrower one leaning on it."""
    floor = max(BOUND, estimate)
    value = floor / max(BOUND, FIRST_SHARP_RATIO * estimate)
    for kind in reversed(list(kinds)):
        value = (float(past.sharp[kind]) + LEAN * value) / (float(past.weight[kind]) + LEAN)
    return floor / value


def job_features(jobs: QueueArrays, one: Waiting, now: float, fits: bool, num_procs: int) -> list[float]:
    job, believed = one.job, one.believed
    estimate, procs = max(1.0, float(jobs.estimate[job])), float(jobs.procs[job])
    wait = now - float(jobs.submit[job])
    x = [0.0] * f.NUM_JOB
    x[f.LOG_ESTIMATE] = 0.5 * math.log(estimate) - 4.0
    x[f.LOG_PROCS] = 0.5 * math.log(procs)
    x[f.SHARE] = procs / num_procs
    x[f.LOG_BELIEVED] = 0.5 * math.log(believed) - 4.0
    x[f.SUBMITTED] = math.log10(max(1.0, float(jobs.submit[job])))
    x[f.F1] = math.log10(estimate) * procs / 870.0
    x[f.F2] = math.sqrt(estimate) * procs / 25600.0
    x[f.F3] = estimate * procs / 6.86e6
    x[f.F4] = estimate * math.sqrt(procs) / 5.3e5
    x[f.F4_BELIEVED] = believed * math.sqrt(procs) / 5.3e5
    x[f.LOG_SHARP] = 0.5 * math.log(one.sharp) - 4.0
    x[f.LOG_WAIT] = 0.5 * math.log(1.0 + wait)
    x[f.LOG_EXPANSION] = math.log(1.0 + wait / estimate)
    x[f.FITS] = float(fits)
    x[f.WAIT_DAYS] = wait / 86400.0
    return x


def queue_features(jobs: QueueArrays, waiting: list[int], now: float, free: int, num_procs: int) -> list[float]:
    work = sum(max(0.0, float(jobs.estimate[job]) * float(jobs.procs[job])) for job in waiting)
    angle = 2.0 * math.pi * (now / 86400.0 - math.floor(now / 86400.0))
    return [
        math.log(1.0 + len(waiting)) / 3.0,
        free / num_procs,
        math.log(1.0 + work / (3600.0 * num_procs)) / 3.0,
        math.sin(angle),
        math.cos(angle),
    ]


def score(net: f.Net, x: list[float], around: list[float], wait: float) -> float:
    if wait > net.patience[0]:
        return 1e9 + wait
    value = sum(float(w) * v for w, v in zip(net.skip, x))
    clipped = [min(f.CLIP, v) if k < f.NUM_STATIC or k == f.WAIT_DAYS else v for k, v in enumerate(x)] + around
    for row, bias, out in zip(net.hidden, net.bias, net.out):
        z = float(bias) + sum(float(w) * v for w, v in zip(row, clipped))
        value += float(out) * max(z, f.LEAK * z)
    return value


def may_pass(net: f.Net, x: list[float], around: list[float]) -> bool:
    clipped = [min(f.CLIP, v) if k < f.NUM_STATIC or k == f.WAIT_DAYS else v for k, v in enumerate(x)] + around
    return float(net.gate[-1]) + sum(float(w) * v for w, v in zip(net.gate, clipped)) > 0.0


def reservation(
    running: list[tuple[float, float, int]], now: float, free: int, need: int, jobs: QueueArrays
) -> tuple[float, int]:
    """Return when the head will fit, by estimates, and what it will then leave."""
    shadow = now
    for moment in sorted({max(now, expected) for _, expected, _ in running}):
        freed = sum(int(jobs.procs[job]) for _, expected, job in running if max(now, expected) <= moment)
        shadow = moment
        if free + freed >= need:
            return shadow, free + freed - need
    raise AssertionError("every job fits the machine")


@dataclass
class Ended:
    """Jobs that have ended, in that order, and when."""

    jobs: QueueArrays
    order: list[tuple[float, int]]

    def log_ratio(self, job: int) -> float:
        return math.log(max(BOUND, float(self.jobs.run[job])) / max(BOUND, float(self.jobs.estimate[job])))

    def of_kind(self, kinds: np.ndarray, column: int, kind: int) -> list[float]:
        """Return what is seen of a kind of jobs."""
        ratios = [self.log_ratio(job) for _, job in self.order if kinds[job, column] == kind]
        if not ratios:
            return [0.0, 0.0, 0.0, 0.0]
        weights = [DISCOUNT**age for age in reversed(range(len(ratios)))]

        def mean(values: list[float]) -> float:
            return sum(w * v for w, v in zip(weights, values)) / sum(weights)

        spread = mean([ratio * ratio for ratio in ratios]) - mean(ratios) ** 2
        sharp = -math.log(mean([math.exp(-ratio) for ratio in ratios]))
        return [mean(ratios) / 2.0, math.sqrt(max(0.0, spread)), sharp / 3.0, math.log(1.0 + len(ratios)) / 4.0]

    def of_user(self, job: int, now: float) -> list[float]:
        own = [
            (end, self.log_ratio(other)) for end, other in self.order if self.jobs.user[other] == self.jobs.user[job]
        ]
        fresh = own[0][1] if own else 0.0
        for _, ratio in own[1:]:
            fresh = 0.6 * fresh + 0.4 * ratio
        before = [k for k in range(job) if self.jobs.user[k] == self.jobs.user[job]]
        pause = math.log(1.0 + float(self.jobs.submit[job] - self.jobs.submit[before[-1]])) if before else 16.0
        since = math.log(1.0 + now - own[-1][0]) if own else 16.0
        return [pause / 8.0, own[-1][1] / 2.0 if own else 0.0, fresh / 2.0, since / 8.0]


def chains(jobs: QueueArrays, job: int, arrived: int) -> list[list[int]]:
    """Return the jobs on each way from a job, the nearest first."""

    def like(other: int, what: str) -> tuple[float, ...]:
        estimate, procs = float(jobs.estimate[other]), float(jobs.procs[other])
        exactly = {"same": (estimate, procs), "series": (math.floor(math.log2(max(1.0, estimate))), procs), "user": ()}
        return (float(jobs.user[other]), *exactly[what])

    before = {
        what: [k for k in reversed(range(job)) if like(k, what) == like(job, what)]
        for what in ("same", "series", "user")
    }
    after = [k for k in range(job + 1, arrived) if like(k, "series") == like(job, "series")]
    return [before["same"], before["series"], after, before["user"]]


def along(ended: Ended, way: list[int], job: int, now: float, start: np.ndarray) -> tuple[list[float], float]:
    """Return what is seen on one way from a job, and when those that run are looked at anew."""
    jobs, done = ended.jobs, {other for _, other in ended.order}
    near = list(enumerate(way[: mf.REACH]))
    known = [(mf.FADE**k, other) for k, other in near if other in done]
    active = [(mf.FADE**k, other) for k, other in near if other not in done and start[other] >= 0.0]
    first = min([k for k, other in near if start[other] >= 0.0], default=len(near))
    x = [0.0] * mf.PER_CHAIN
    if known:
        weight, other = known[0]
        total = sum(w for w, _ in known)
        x[0] = ended.log_ratio(other) / 2.0
        x[1] = weight
        x[2] = weight * ended.log_ratio(other) / 2.0
        x[3] = math.log(1.0 + abs(float(jobs.submit[other] - jobs.submit[job]))) / 5.0
        x[4] = sum(w * ended.log_ratio(one) for w, one in known) / total / 2.0
        x[5] = total / 4.0
        x[6] = min(0.0, *(ended.log_ratio(one) for _, one in known)) / 3.0
    again = math.inf
    if active:
        elapsed = {one: now - float(start[one]) for _, one in active}
        x[7] = max(math.log(max(BOUND, t) / max(BOUND, float(jobs.estimate[k]))) for k, t in elapsed.items()) / 3.0
        x[8] = active[0][0]
        again = min(now + max(60.0, 0.25 * t) for t in elapsed.values())
    x[9] = math.log(1.0 + first) / 2.0
    return x, again


def inputs(
    ended: Ended, kinds: np.ndarray, job: int, arrived: int, now: float, start: np.ndarray
) -> tuple[list[float], float]:
    """Return what the forecaster sees of a job, and when it should look again."""
    jobs = ended.jobs
    x = [
        math.log(max(1.0, float(jobs.estimate[job]))) / 4.0 - 2.0,
        math.log(float(jobs.procs[job])) / 3.0 - 1.0,
    ]
    for column in range(mf.NUM_KINDS):
        x += ended.of_kind(kinds, column, kinds[job, column])
    again = math.inf
    for way in chains(jobs, job, arrived):
        seen, moment = along(ended, way, job, now, start)
        x, again = x + seen, min(again, moment)
    x += ended.of_user(job, now)
    return [min(mf.CLIP, max(-mf.CLIP, value)) for value in x], again


def heads(forecaster: mf.Forecaster, x: list[float], ended: Ended) -> list[float]:
    """Return what the forecaster says, the less the more exact estimates have been."""
    ratios = [ended.log_ratio(job) for _, job in reversed(ended.order)]
    weights = [DISCOUNT**age for age in range(len(ratios))]
    square = sum(w * ratio * ratio for w, ratio in zip(weights, ratios)) / sum(weights) if ratios else math.inf
    certain = min(1.0, math.sqrt(square) / mf.EXACT)
    z = np.array(x) @ forecaster.first + forecaster.bias
    said = np.maximum(z, mf.LEAK * z) @ forecaster.out + forecaster.out_bias
    return [certain * min(0.0, max(-12.0, float(one))) for one in said]


def replay(jobs: QueueArrays, kinds: np.ndarray, num_procs: int, net: f.Net, forecaster: mf.Forecaster) -> np.ndarray:
    n = len(jobs.submit)
    start = np.full(n, -1.0)
    past = new_past(int(kinds.max()) + 1)
    ended = Ended(jobs, [])
    running: list[tuple[float, float, int]] = []  # end, expected end, job
    queue: list[Waiting] = []
    last_end: dict[int, int] = {}
    due = dict.fromkeys(jobs.user.tolist(), math.inf)
    arrived, free, moment = 0, num_procs, 0

    def length(one: Waiting) -> float:
        """Return what a job is taken to run where room is reserved."""
        trust, estimate = float(net.trust[0]), max(1.0, float(jobs.estimate[one.job]))
        if trust == 0.0:
            return float(jobs.estimate[one.job])
        return estimate * (min(one.believed, estimate) / estimate) ** trust

    def need(one: Waiting) -> int:
        """Return how many processors must be free: a long job leaves some to others."""
        reserve = math.ceil(float(net.reserve[0]) * num_procs) if one.believed > LONG else 0
        procs = int(jobs.procs[one.job])
        return min(procs + reserve, max(procs, math.ceil(num_procs / PLENTY)))

    def begin(one: Waiting, now: float) -> None:
        nonlocal free
        start[one.job] = now
        free -= int(jobs.procs[one.job])
        running.append((now + float(jobs.run[one.job]), now + length(one), one.job))

    def put_off(now: float) -> None:
        """Expect jobs that have outlived a belief at the end of their estimates."""
        for place, (end, expected, job) in enumerate(running):
            late = float(start[job]) + float(jobs.estimate[job])
            if net.trust[0] > 0 and expected <= now < late:
                running[place] = (end, late, job)

    def look(job: int) -> Waiting:
        estimate = max(1.0, float(jobs.estimate[job]))
        believed, sharp = believe(past, kinds[job], estimate), harmonic(past, kinds[job], estimate)
        share = float(net.foresight[0])
        if share > 0.0:
            x, again = inputs(ended, kinds, job, arrived, now, start)
            due[int(jobs.user[job])] = min(due[int(jobs.user[job])], again)
            said = heads(forecaster, x, ended)
            believed = believed ** (1.0 - share) * (max(BOUND, estimate) * math.exp(said[mf.TYPICAL])) ** share
            sharp = sharp ** (1.0 - share) * (max(BOUND, estimate) * math.exp(said[mf.HARMONIC])) ** share
        return Waiting(job, believed, sharp, moment, now)

    while arrived < n or running:
        moment += 1
        now = min([end for end, _, _ in running] + ([float(jobs.submit[arrived])] if arrived < n else []))
        for end, expected, job in sorted(running, key=lambda one: (one[0], one[2])):
            if end == now:
                running.remove((end, expected, job))
                free += int(jobs.procs[job])
                remember(past, kinds[job], jobs.run[job], max(1.0, jobs.estimate[job]))
                ended.order.append((now, job))
                last_end[int(jobs.user[job])] = moment
        while arrived < n and jobs.submit[arrived] == now:
            arrived += 1
            queue.append(look(arrived - 1))
        if not any(need(one) <= free for one in queue):
            continue
        for one in queue:
            user = int(jobs.user[one.job])
            if due[user] <= now:
                due[user], last_end[user] = math.inf, moment
            pause = PAUSE * (now - float(jobs.submit[one.job])) if net.foresight[0] > 0.0 else 0.0
            if one.looked < last_end.get(user, 0) and now - one.since >= pause:
                queue[queue.index(one)] = look(one.job)
        around = queue_features(jobs, [one.job for one in queue], now, free, num_procs)
        seen = {one.job: job_features(jobs, one, now, need(one) <= free, num_procs) for one in queue}
        values = {job: score(net, x, around, now - float(jobs.submit[job])) for job, x in seen.items()}
        order = sorted(values, key=lambda job: (-values[job], job))
        by_job = {one.job: one for one in queue}
        while order and need(by_job[order[0]]) <= free:
            begin(by_job[order.pop(0)], now)
        if order:
            put_off(now)
            shadow, extra = reservation(running, now, free, need(by_job[order[0]]), jobs)
            for job in order[1:]:
                late = now + length(by_job[job]) > shadow
                fits = need(by_job[job]) <= free and (not late or jobs.procs[job] <= extra)
                if fits and may_pass(net, seen[job], around):
                    extra -= int(jobs.procs[job]) if late else 0
                    begin(by_job[job], now)
        queue = [one for one in queue if start[one.job] < 0]
    return start
