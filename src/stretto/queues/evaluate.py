"""Replay a trace with one strategy and take its figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import StrettoError
from stretto.queues.choices import choices_of
from stretto.queues.metrics import QueueMetrics, Spread, measure
from stretto.queues.play import Watch, play, play_told
from stretto.queues.result import QueueResult
from stretto.runlog import Run

Machine = int | Sequence[Pool]

#: Replays shorter than this are timed again, for one measurement of a few milliseconds says little.
_SHORT_S = 0.3
_MOST_TIMES = 3
_FEW_JOBS = 50


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A replay and what it is worth.

    Attributes
    ----------
    replay_seconds
        Wall time of the replay alone, compiled; the least of three where it is short.
    found
        What a selector tells of it, None for a fixed strategy.
    """

    result: QueueResult
    metrics: QueueMetrics
    replay_seconds: float
    found: Any = None

    @property
    def jobs_per_second(self) -> float:
        return self.metrics.num_jobs / self.replay_seconds

    @property
    def num_unplayed(self) -> int:
        """Return how many jobs had not arrived when the replay was stopped."""
        return _num_unplayed(self.found)

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Return what was followed from when on, and why."""
        return choices_of(self.found, str(self.result.spec["strategy"]))

    def to_json(self) -> dict[str, Any]:
        """Return the figures of ``stretto replay --output json``."""
        return {
            **figures(self.metrics),
            "cost_usd_by_pool": {
                pool.name: float(usd) for pool, usd in zip(self.result.pools, self.result.cost_usd, strict=True)
            },
            "num_dropped": self.result.num_dropped,
            "num_unplayed": self.num_unplayed,
            "notes": list(self.result.notes),
            "replay_seconds": self.replay_seconds,
            "jobs_per_second": self.jobs_per_second,
        }


def _num_unplayed(found: Any) -> int:
    """Return what a selector tells of it; one that cannot be stopped tells nothing."""
    count: int = 0 if found is None else getattr(found, "num_unplayed", 0)
    return count


def figures(metrics: QueueMetrics) -> dict[str, float]:
    """Return the figures of a replay, flat and by the names that programs read."""
    return {
        "num_jobs": metrics.num_jobs,
        **_spread("wait_s", metrics.wait_s),
        **_spread("slowdown", metrics.slowdown),
        **_spread("bounded_slowdown", metrics.bounded_slowdown),
        **_spread("flow_s", metrics.flow_s),
        "utilization": metrics.utilisation,
        "makespan_s": metrics.makespan_s,
        "cost_usd": metrics.cost_usd,
        "num_killed": metrics.num_killed,
        "num_interruptions": metrics.num_interruptions,
        "num_late": metrics.num_late,
        "num_users": metrics.fairness.num_users,
        "jain_fairness": metrics.fairness.jain,
        "max_over_mean_user_slowdown": metrics.fairness.max_over_mean,
    }


def _spread(name: str, spread: Spread) -> dict[str, float]:
    return {f"{part}_{name}": getattr(spread, part) for part in ("mean", "p50", "p95", "p99", "max")}


def evaluate_replay(
    trace: Trace,
    machine: Machine,
    *,
    timed: bool = True,
    run: Run | None = None,
    watch: Watch | None = None,
    **rules: Any,
) -> Evaluation:
    """Replay and measure; ``rules`` are those of :func:`stretto.queues.play.play`.

    Parameters
    ----------
    timed
        Whether the time matters: loading compiled code is kept out of it, and a short replay is repeated.
    run
        Where a selector writes down what it does while it plays; nothing is repeated then.
    watch
        As for :func:`stretto.queues.play.play_told`.
    """
    if timed:
        with suppress(StrettoError):  # a few jobs may fit nowhere, or the rules be wrong: the replay itself will say so
            play(trace.take(slice(0, _FEW_JOBS)), machine, **rules)
    seconds = float("inf")
    for _ in range(_MOST_TIMES if timed and run is None else 1):
        begin = time.perf_counter()
        result, found = play_told(trace, machine, run=run, watch=watch, **rules)
        took = time.perf_counter() - begin
        seconds = min(seconds, took)
        if took > _SHORT_S or _num_unplayed(found):
            break
    return Evaluation(result, measure(result), seconds, found)
