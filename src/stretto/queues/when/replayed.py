"""The queue of a replay, or of a record, whose starts are predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes
from stretto.queues.promises.slack import Slack
from stretto.queues.recorded.record import RECORDED
from stretto.queues.replay import Machine, RuleArguments, make_rules, replay_told
from stretto.queues.result import QueueResult
from stretto.queues.setup import procs_of
from stretto.queues.strategies import Strategy, StrategySelector, strategy_of
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.on_site import PlacedQueue

#: The order of the futures where the queue's own is not known or changes.
ASSUMED_ORDER = "fcfs"
_BACKFILLS = {"none": codes.NONE, "easy": codes.EASY, "promise": codes.PROMISE}


@dataclass(frozen=True, eq=False)
class ReplayedQueue:
    """A queue with what its jobs are called in the trace.

    Attributes
    ----------
    rows
        The row of each job in the trace.
    zero_s
        The time of the trace at which the queue's time begins.
    assumed
        What futures take for granted though nobody said so, one sentence each.
    """

    queue: KnownQueue
    rows: NDArray[np.intp]
    zero_s: float
    notes: tuple[str, ...]
    assumed: tuple[str, ...]

    def index_of(self, row: int) -> int | None:
        """Return the job that stands in a row of the trace; None where it is not in the replay."""
        at = int(np.searchsorted(self.rows, row))
        return at if at < len(self.rows) and self.rows[at] == row else None


def replayed_queue(
    trace: Trace, machine: Machine, strategy: str = "fcfs", seed: int = 0, **rules: object
) -> ReplayedQueue:
    """Replay a trace, or take its record, and return the queue.

    Parameters
    ----------
    rules
        As for :func:`stretto.queues.replay.replay`; predictions know backfill ``easy``, ``none`` and ``promise``.
    """
    given: RuleArguments = rules  # type: ignore[assignment]
    future, assumed = future_rules(machine, strategy, given)
    tagged = replace(trace, job_id=np.arange(trace.num_jobs, dtype=np.int32))
    result, _ = replay_told(tagged, machine, strategy=strategy, seed=seed, **given)
    assert result.trace.job_id is not None
    rows = result.trace.job_id.astype(np.intp)
    num_procs = procs_of(machine)
    fits = (result.trace.num_procs <= num_procs) & (result.end_s > result.start_s)
    fits &= result.start_s >= result.trace.submit_s
    zero = float(trace.submit_s[rows[0]])
    queue = _queue(trace, result, rows, fits, num_procs, future)
    if isinstance(machine, Site) and _is_playable(strategy):
        queue = replace(queue, site=_site_queue(trace, machine, result, future, given))
    notes = result.notes
    if not bool(np.all(fits)):
        count = int(np.count_nonzero(~fits))
        notes = (*notes, f"{count:,} recorded jobs that never ran or do not fit the machine: left out")
    return ReplayedQueue(queue, rows[fits], zero, notes, assumed)


def future_rules(machine: Machine, strategy: str, rules: RuleArguments) -> tuple[FutureRules, tuple[str, ...]]:
    """Return how futures are played, and what that assumes; raise where they cannot be."""
    if not isinstance(machine, int | Site):
        message = "starts in pools are not predicted: give one machine with --procs, or a site"
        raise InvalidInput(message, field="pools")
    backfill = rules.get("backfill", "easy")
    if backfill not in _BACKFILLS:
        message = f"starts are predicted with backfill {', '.join(_BACKFILLS)}, not with {backfill!r}"
        raise InvalidInput(message, field="backfill")
    if rules.get("estimates", "user") not in ("user", "perfect"):
        raise InvalidInput("starts are predicted with estimates of the user only", field="estimates")
    if rules.get("tie", "batch") != "batch":
        raise InvalidInput("starts are predicted with tie 'batch' only", field="tie")
    assumed = []
    order = None if strategy == RECORDED else strategy_of(strategy)
    if order is None or isinstance(order, StrategySelector):
        own = "the record does not say by which order jobs were started" if order is None else f"{strategy} changes it"
        assumed.append(f"futures follow {ASSUMED_ORDER} with EASY: {own}")
        order = strategy_of(ASSUMED_ORDER)
    if not isinstance(order, Strategy):
        raise InvalidInput(f"starts are predicted for named orders only, not for {strategy!r}", field="strategy")
    promises = backfill == "promise" and strategy != RECORDED
    if isinstance(machine, Site):
        if not _is_playable(strategy):
            assumed.append(
                f"futures see the site as {machine.num_cpus:,} processors, without nodes and partitions: "
                "where jobs run is known of fixed orders only"
            )
        if order.code == codes.MULTIFACTOR or promises:
            raise InvalidInput("on a site, starts are predicted without promises and multifactor", field="site")
    made = make_rules(order, **rules)
    easy = strategy == RECORDED or backfill != "none"
    return FutureRules(order.code, easy=easy, promises=promises, rules=made), tuple(assumed)


def _is_playable(strategy: str) -> bool:
    """Say whether futures on a site know where jobs run: the replay says so where its order does not change."""
    return strategy != RECORDED and not isinstance(strategy_of(strategy), StrategySelector)


def _site_queue(
    trace: Trace, site: Site, result: QueueResult, future: FutureRules, rules: RuleArguments
) -> PlacedQueue:
    """Return where the jobs of a result ran; the replay is the same once more."""
    backfill = codes.EASY if future.easy else codes.NONE
    perfect = rules.get("estimates", "user") == "perfect"
    queue, run = PlacedQueue.of(
        trace, site, future.code, backfill, kill=bool(rules.get("kill", False)), perfect=perfect
    )
    assert np.array_equal(run.start_s, result.start_s)
    return queue


def _queue(
    trace: Trace,
    result: QueueResult,
    rows: NDArray[np.intp],
    fits: NDArray[np.bool_],
    num_procs: int,
    future: FutureRules,
) -> KnownQueue:
    """Return the queue of a result, with all columns of the trace for the forecaster."""
    part = trace.take(rows[fits].tolist())
    run = (result.end_s - result.start_s)[fits]
    estimate = result.trace.estimate_s[fits]
    estimate = np.where(np.isfinite(estimate) & (estimate > 0), estimate, run)
    if result.spec.get("strategy") == RECORDED:
        estimate = np.maximum(estimate, run)
    part = replace(part, submit_s=result.trace.submit_s[fits], run_s=run, estimate_s=estimate, parent=None, child=None)
    jobs = part.arrays()
    slack = None
    if future.promises and future.rules is not None:
        rules = future.rules
        slack = Slack(rules.slack_s, rules.slack, rules.slack_wait).of(jobs.estimate)
    return KnownQueue(
        trace=part,
        jobs=jobs,
        num_procs=num_procs,
        start_s=result.start_s[fits],
        end_s=result.end_s[fits],
        rules=future,
        slack_s=slack,
        due_s=None if result.due_s is None else result.due_s[fits],
    )
