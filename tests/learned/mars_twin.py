"""A replay by a scoring network as plainly as it can be said; slow, and the same to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stretto.domain.trace import QueueArrays
from stretto.kernels import mars_near
from stretto.kernels import mars_policy as f
from stretto.kernels.queue_forecast import (
    BOUND,
    FIRST_SHARP_RATIO,
    LEAN,
    LONG,
    PLENTY,
    Past,
    believe,
    new_past,
    remember,
)


@dataclass
class Waiting:
    job: int
    believed: float
    sharp: float
    looked: int


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


def replay(jobs: QueueArrays, kinds: np.ndarray, num_procs: int, net: f.Net) -> np.ndarray:
    n = len(jobs.submit)
    start = np.full(n, -1.0)
    past = new_past(int(kinds.max()) + 1)
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
        spare = math.ceil(float(net.spare[0]) * num_procs) if one.believed > LONG else 0
        procs = int(jobs.procs[one.job])
        return min(procs + spare, max(procs, math.ceil(num_procs / PLENTY)))

    def begin(one: Waiting, now: float) -> None:
        nonlocal free
        user = int(jobs.user[one.job])
        if net.near[0] > 0.0:
            due[user] = min(due[user], now + math.exp(2.0 * (0.5 * math.log(one.believed) - 4.0 + 4.0)))
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
        if net.near[0] > 0.0:
            said = [one for one in neighbours(job, believed) if one is not None]
            weights = [1.0, *(float(net.near[0]) * math.exp(-distance / mars_near.FAR) for _, distance in said)]
            runs = [ratio * estimate for ratio, _ in said]
            mean = [math.log(believed), *(math.log(max(1.0, run)) for run in runs)]
            harm = [math.log(sharp), *(math.log(max(BOUND, run)) for run in runs)]
            believed, sharp = (
                math.exp(sum(w * v for w, v in zip(weights, values)) / sum(weights)) for values in (mean, harm)
            )
        return Waiting(job, believed, sharp, moment)

    def neighbours(job: int, believed: float) -> list[tuple[float, int] | None]:
        """Return what the nearest before and after a job in its series did, over its estimate, and how far it is."""

        def like(other: int) -> tuple[int, int, int]:
            octave = math.floor(math.log2(max(1.0, float(jobs.estimate[other]))))
            return int(jobs.user[other]), int(jobs.procs[other]), octave

        series = [other for other in range(arrived) if like(other) == like(job) and other != job]
        before = [other for other in reversed(series) if other < job]
        after = [other for other in series if other > job]
        return [nearest(side[: mars_near.REACH], believed) for side in (before, after)]

    def nearest(side: list[int], believed: float) -> tuple[float, int] | None:
        for distance, other in enumerate(side):
            if start[other] < 0.0:
                continue
            user, estimate = int(jobs.user[other]), max(1.0, float(jobs.estimate[other]))
            if start[other] + jobs.run[other] <= now:
                return float(jobs.run[other]) / estimate, distance
            elapsed = now - float(start[other])
            if elapsed >= believed:
                due[user] = min(due[user], float(start[other]) + mars_near.AGAIN * elapsed)
                return min(1.0, mars_near.GROWTH * elapsed / estimate), distance
            due[user] = min(due[user], float(start[other]) + believed)
        return None

    while arrived < n or running:
        moment += 1
        now = min([end for end, _, _ in running] + ([float(jobs.submit[arrived])] if arrived < n else []))
        for end, expected, job in sorted(running, key=lambda one: (one[0], one[2])):
            if end == now:
                running.remove((end, expected, job))
                free += int(jobs.procs[job])
                remember(past, kinds[job], jobs.run[job], max(1.0, jobs.estimate[job]))
                last_end[int(jobs.user[job])] = moment
        while arrived < n and jobs.submit[arrived] == now:
            queue.append(look(arrived))
            arrived += 1
        if not any(need(one) <= free for one in queue):
            continue
        for one in queue:
            user = int(jobs.user[one.job])
            if due[user] <= now:
                due[user], last_end[user] = math.inf, moment
            if one.looked < last_end.get(user, 0):
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
