"""Replay a trace with one strategy, take its figures, and tell what was followed when and why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stretto.core.answers.queue import replay_answer
from stretto.core.trace import Trace
from stretto.errors import StrettoError
from stretto.queues.energy import Energy, EnergyMeter
from stretto.queues.metrics import QueueMetrics, Spread, measure
from stretto.queues.promises.replay import PromiseFigures
from stretto.queues.recorded.calibrate import LogCalibration, calibrated_replay
from stretto.queues.recorded.departure import Departure, departure_of
from stretto.queues.recorded.job_table import JobOutcomes, job_table, rows_of_result
from stretto.queues.recorded.record import RecordedResult, has_waits, recorded_result
from stretto.queues.replay import Machine as Machine
from stretto.queues.replay import replay, replay_told, setup_of
from stretto.queues.result import QueueResult, Watch
from stretto.queues.selected import SelectorReplay
from stretto.queues.setup import procs_of, replayed
from stretto.runlog import Run

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsReplay
    from stretto.queues.mars.selector import Choice
    from stretto.queues.mars.summary import FollowedShares
    from stretto.queues.portfolio import PortfolioReplay

#: When a strategy was followed from, and why.
ChoiceRow = dict[str, object]
#: Replays shorter than this are timed again, for one measurement of a few milliseconds says little.
_SHORT_S = 0.3
_MOST_TIMES = 3
_FEW_JOBS = 50
#: Choices that are told one by one; beyond them every k-th is.
_NUM_CHOICES = 2000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A replay and its figures.

    Attributes
    ----------
    replay_seconds
        Wall time of the replay alone, compiled; the least of three where it is short.
    found
        What a selector tells of it, None for a fixed strategy.
    trace, machine
        What was replayed.
    calibration
        What was fitted to the log and applied, None where nothing was asked for.
    meter
        How the energy is counted.
    """

    result: QueueResult
    metrics: QueueMetrics
    replay_seconds: float
    trace: Trace
    machine: Machine
    found: SelectorReplay | None = None
    calibration: LogCalibration | None = None
    meter: EnergyMeter = field(default_factory=EnergyMeter)

    @property
    def jobs_per_second(self) -> float:
        return self.metrics.num_jobs / self.replay_seconds

    @property
    def is_recorded(self) -> bool:
        """Whether this is no replay, but what really happened."""
        return isinstance(self.result, RecordedResult)

    @cached_property
    def recorded(self) -> RecordedResult | None:
        """What really happened to all jobs whose waits are recorded; None where no wait is."""
        if isinstance(self.result, RecordedResult):
            return self.result
        return recorded_result(self.trace, self.machine) if has_waits(self.trace) else None

    @cached_property
    def departure(self) -> Departure | None:
        """How far the replay is from the record, over the jobs that both have; None where there are none."""
        if self.is_recorded or not has_waits(self.trace):
            return None
        rows = rows_of_result(self.trace, self.machine, self.result)
        found = departure_of(self.trace.keep(rows), self.result.wait_s, procs_of(self.machine))
        if found is not None and isinstance(self.machine, Sequence):  # pools are not the machine of the log
            return replace(found, reasons=())
        return found

    @cached_property
    def jobs(self) -> JobOutcomes:
        """One row per job: what happened to it in the replay and in the log."""
        return job_table(self.trace, self.machine, self.result)

    @property
    def num_unplayed(self) -> int:
        """Return how many jobs had not arrived when the replay was stopped."""
        return _num_unplayed(self.found)

    @property
    def choices(self) -> list[ChoiceRow]:
        """Return what was followed from when on, and why."""
        return choices_of(self.found, str(self.result.spec["strategy"]))

    @cached_property
    def energy(self) -> Energy | None:
        """What the replay consumed; None where the machine states no power, and none was given."""
        return self._energy(self.result)

    @cached_property
    def recorded_energy(self) -> Energy | None:
        """What the recorded jobs consumed, up to the same end as the replay where that is later."""
        if self.recorded is None or self.energy is None:
            return None
        found = self._energy(self.recorded)
        return None if found is None else found.until(self.energy.until_s)

    def _energy(self, result: QueueResult) -> Energy | None:
        if not self.meter.applies(self.machine):
            return None
        origin, first = self.trace.origin_unix_s, None
        if origin is not None:
            rows = rows_of_result(self.trace, self.machine, result)
            first = origin + float(self.trace.submit_s[int(np.argmax(rows))])
        return self.meter.measure(result, self.machine, first)

    @cached_property
    def followed(self) -> FollowedShares | None:
        """Which candidates mars followed, and for how many jobs; None for other strategies."""
        if self.found is None or self.result.spec["strategy"] != "mars":
            return None
        from stretto.queues.mars.summary import FollowedShares

        return FollowedShares.of(cast("MarsReplay", self.found))

    @property
    def promises(self) -> PromiseFigures | None:
        """What became of promised latest starts; None where nothing was promised."""
        due = self.result.due_s
        if self.result.margin_s is not None:
            return PromiseFigures.of_margins(self.result.margin_s)
        return None if due is None else PromiseFigures.of(self.result.start_s, due)

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return replay_answer(self)

    def to_json(self) -> dict[str, object]:
        """Return the figures of ``stretto replay --output json``."""
        return {
            "answer": self.answer,
            **figures(self.metrics),
            "cost_usd_by_pool": {
                pool.name: float(usd) for pool, usd in zip(self.result.pools, self.result.cost_usd, strict=True)
            },
            "num_dropped": self.result.num_dropped,
            "num_unplayed": self.num_unplayed,
            **(self.promises.to_json() if self.promises is not None else {}),
            **(self.followed.to_json() if self.followed is not None else {}),
            **(self.energy.to_json() if self.energy is not None else {}),
            "notes": [*self.result.notes, *(self.energy.notes if self.energy is not None else ())],
            "replay_seconds": self.replay_seconds,
            "jobs_per_second": self.jobs_per_second,
            **(_checked(self.result) if isinstance(self.result, RecordedResult) else {}),
            "recorded": None
            if self.recorded is None
            else record_figures(self.recorded)
            | (self.recorded_energy.to_json() if self.recorded_energy is not None else {}),
            "departure": None if self.departure is None else self.departure.to_json(),
            "calibration": None if self.calibration is None else self.calibration.to_json(),
        }


def _num_unplayed(found: SelectorReplay | None) -> int:
    """Return what a selector tells of it; one that cannot be stopped tells nothing."""
    count: int = 0 if found is None else getattr(found, "num_unplayed", 0)
    return count


def record_figures(recorded: RecordedResult) -> dict[str, object]:
    """Return the figures of the record, and how many of its starts break which rule of the machine."""
    return {
        **figures(recorded.metrics),
        "num_unknown": recorded.num_dropped,
        **_checked(recorded),
    }


def _checked(recorded: RecordedResult) -> dict[str, object]:
    return {
        "most_procs": recorded.most_procs,
        "num_violations": recorded.num_violations,
        "violations": dict(recorded.violations),
    }


def figures(metrics: QueueMetrics) -> dict[str, float]:
    """Return the figures of a replay, flat and by the names that programs read."""
    return {
        "num_jobs": metrics.num_jobs,
        **_spread("wait_s", metrics.wait_s),
        **_spread("slowdown", metrics.slowdown),
        **_spread("bounded_slowdown", metrics.bounded_slowdown),
        **_spread("flow_s", metrics.flow_s),
        "utilization": metrics.utilization,
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
    calibrate: bool = False,
    run: Run | None = None,
    watch: Watch | None = None,
    meter: EnergyMeter | None = None,
    **rules: Any,
) -> Evaluation:
    """Replay and measure; ``rules`` are those of :func:`stretto.queues.replay.replay`.

    Parameters
    ----------
    timed
        Whether the time matters: loading compiled code is kept out of it, and a short replay is repeated.
    calibrate
        Whether to fit capacity, outages, partitions and limits to the log, and to replay under these.
    run
        Where a selector records what it does; nothing is repeated then.
    watch
        As for :func:`stretto.queues.replay.replay_told`.
    meter
        How energy is counted; by default by what the site says.
    """
    count = meter or EnergyMeter()
    count.applies(machine)  # carbon without any power is found before the replay
    if calibrate:
        return replace(_calibrated(trace, machine, rules), meter=count)
    if timed:
        with suppress(StrettoError):  # a few jobs may fit nowhere, or the rules be wrong: the replay itself will say so
            replay(trace.take(slice(0, _FEW_JOBS)), machine, **rules)
    seconds = float("inf")
    for _ in range(_MOST_TIMES if timed and run is None else 1):
        begin = time.perf_counter()
        result, found = replay_told(trace, machine, run=run, watch=watch, **rules)
        took = time.perf_counter() - begin
        seconds = min(seconds, took)
        if took > _SHORT_S or _num_unplayed(found):
            break
    return Evaluation(result, measure(result), seconds, trace, machine, found, meter=count)


def _calibrated(trace: Trace, machine: Machine, rules: dict[str, Any]) -> Evaluation:
    """Fit and replay; the time is that of both."""
    begin = time.perf_counter()
    setup, spec = setup_of(trace, machine, **rules)
    result, calibration = calibrated_replay(trace, replayed(trace, machine), setup, spec)
    seconds = time.perf_counter() - begin
    return Evaluation(result, measure(result), seconds, trace, machine, calibration=calibration)


def choices_of(found: SelectorReplay | None, strategy: str) -> list[ChoiceRow]:
    """Return what a replay followed from when on, and why.

    Parameters
    ----------
    found
        What a selector returned; None where the strategy was a fixed one, which needs no reasons.
    """
    if found is None:
        return [{"at_s": 0.0, "chosen": strategy, "reason": "a fixed strategy"}]
    told = getattr(found, "choices", None)
    rows = _told(told) if told is not None else _followed(cast("PortfolioReplay", found))
    return rows[:: max(1, len(rows) // _NUM_CHOICES)]


def _told(choices: Sequence[Choice]) -> list[ChoiceRow]:
    """Return choices that come with the estimates behind them."""
    from stretto.queues.mars.run_record import reason_of, rival_fields

    return [
        {
            "at_s": one.time_s,
            "job": one.job,
            "chosen": one.chosen,
            "reason": reason_of(one),
            "cost": dict(one.cost),
            **({} if one.rival is None else {"rival": rival_fields(one)}),
        }
        for one in choices
    ]


def _followed(found: PortfolioReplay) -> list[ChoiceRow]:
    """Return the changes of a selector that keeps only what it followed."""
    chosen = np.asarray(found.chosen)
    order = np.argsort(found.start_s, kind="stable")
    names = np.asarray(found.strategies)[chosen[order]]
    new = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
    reason = "did best in simulated futures of the present queue"
    return [
        {
            "at_s": float(found.start_s[order[place]]),
            "job": int(order[place]),
            "chosen": str(names[place]),
            "reason": reason,
        }
        for place in new.tolist()
    ]
