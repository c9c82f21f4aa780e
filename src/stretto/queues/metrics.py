"""What a replay is worth: waits and slowdowns with their tails, use, money, and fairness among users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.moved import old_attribute
from stretto.queues.result import QueueResult

#: Jobs shorter than this count as this long in the bounded slowdown.
BOUND_S = 10.0


@dataclass(frozen=True)
class Spread:
    """A distribution: its mean, and the tail that a mean hides."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    @staticmethod
    def of(values: Floats) -> Spread:
        p50, p95, p99 = np.percentile(values, (50, 95, 99))
        return Spread(float(np.mean(values)), float(p50), float(p95), float(p99), float(np.max(values)))


@dataclass(frozen=True)
class Fairness:
    """How evenly users fared, by the mean bounded slowdown of each.

    Attributes
    ----------
    jain
        Jain's index: 1 when all fared alike, 1/U when one bore everything.
    max_over_mean
        The worst-off user's slowdown over the mean of users.
    """

    num_users: int
    jain: float
    max_over_mean: float


@dataclass(frozen=True)
class QueueMetrics:
    """The figures of one replay.

    Attributes
    ----------
    slowdown, bounded_slowdown
        (wait + run) / run, and ``max(1, (wait + run) / max(run, 10 s))``; run is the attempt that
        ended the job, and earlier attempts count as waiting.
    utilization
        Processor-seconds of the attempts that ended jobs, over those that all pools could have given
        up to the makespan.
    cost_usd
        Of all pools.
    """

    num_jobs: int
    wait_s: Spread
    flow_s: Spread
    slowdown: Spread
    bounded_slowdown: Spread
    utilization: float
    makespan_s: float
    cost_usd: float
    num_killed: int
    num_interruptions: int
    num_late: int
    fairness: Fairness

    utilisation = old_attribute("utilisation", "utilization")


def bounded(wait_s: Floats, run_s: Floats) -> Floats:
    """Return the bounded slowdown of jobs that have waited and run so long."""
    slowdown: Floats = np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, BOUND_S))
    return slowdown


def bounded_slowdown(result: QueueResult) -> Floats:
    """Return ``max(1, (wait + run) / max(run, 10 s))`` per job."""
    run = result.run_s if np.any(result.num_interruptions) or len(result.pools) > 1 else _recorded_run(result)
    return bounded(result.wait_s, run)


def _recorded_run(result: QueueResult) -> Floats:
    """Return run times as given, where nothing changed them: an end minus a start is not exact."""
    plain = result.pools[0].speed == 1.0 and not np.any(result.is_killed)
    return result.trace.run_s if plain else result.run_s


def measure(result: QueueResult) -> QueueMetrics:
    """Compute all figures of a replay."""
    run = result.run_s
    bounded = bounded_slowdown(result)
    shortest = np.where(run > 0, np.maximum(run, np.finfo(np.float64).tiny), 1.0)
    slowdown = np.where(run > 0, (result.wait_s + run) / shortest, 1.0)
    makespan = result.makespan_s
    all_procs = sum(pool.num_procs for pool in result.pools)
    used = float(np.sum(result.trace.num_procs * run))
    deadline = result.trace.deadline_s
    return QueueMetrics(
        num_jobs=result.trace.num_jobs,
        wait_s=Spread.of(result.wait_s),
        flow_s=Spread.of(result.flow_s),
        slowdown=Spread.of(slowdown),
        bounded_slowdown=Spread.of(bounded),
        utilization=used / (all_procs * makespan) if makespan > 0 else 0.0,
        makespan_s=makespan,
        cost_usd=float(np.sum(result.cost_usd)),
        num_killed=int(np.count_nonzero(result.is_killed)),
        num_interruptions=int(np.sum(result.num_interruptions)),
        num_late=int(np.count_nonzero(result.end_s > deadline)) if deadline is not None else 0,
        fairness=fairness(result, bounded),
    )


def fairness(result: QueueResult, slowdown: Floats) -> Fairness:
    """Compare users by the mean slowdown of their jobs; unknown users are one."""
    user = result.trace.user if result.trace.user is not None else np.zeros(result.trace.num_jobs, dtype=np.int32)
    _, index = np.unique(user, return_inverse=True)
    mean = np.bincount(index, weights=slowdown) / np.bincount(index)
    jain = float(np.sum(mean) ** 2 / (len(mean) * np.sum(mean**2)))
    return Fairness(len(mean), jain, float(np.max(mean) / np.mean(mean)))
