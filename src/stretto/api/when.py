"""``stretto.when``: when a waiting job will start, with an interval that holds as often as it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Unpack

import numpy as np

from stretto.api.inputs import MachineLike, TraceLike, cut_window, machine_of, trace_of
from stretto.core.answers.start import when_answer
from stretto.core.trace import Trace
from stretto.core.units import format_percent, parse_seconds
from stretto.errors import InvalidInput
from stretto.queues.explain.names import Clock, JobNames
from stretto.queues.recorded.record import RECORDED
from stretto.queues.replay import RuleArguments, check_rules
from stretto.queues.when.change import RequestChange, changed_queue
from stretto.queues.when.predict import LEARN_JOBS, LearnWatch, PredictedStart, StartPredictor
from stretto.queues.when.replayed import ReplayedQueue, replayed_queue

__all__ = ["ExpectedStart", "WhenAnswer", "when", "when_all"]


@dataclass(frozen=True, eq=False)
class ExpectedStart:
    """When one job starts, in seconds of the trace.

    Attributes
    ----------
    job, row
        The job by its id in the trace, and by its row.
    asked_s
        When this could have been said.
    promised_s
        The latest start that was promised; None where nothing is.
    low_s, high_s, coverage
        Bounds between which the start lies with this probability.
    likely_s
        Above and below which the start is about equally likely.
    method, num_learned, num_futures
        How ``likely_s`` was found, from how many outcomes the bounds, and how many futures were simulated: fewer where
        many jobs wait.
    replayed_s
        When the job starts in the replay or the record; None on a live queue, where nobody knows.
    """

    job: int | str
    row: int
    user: str | None
    procs: int
    submit_s: float
    asked_s: float
    promised_s: float | None
    low_s: float
    likely_s: float
    high_s: float
    coverage: float
    method: str
    num_learned: int
    num_futures: int
    replayed_s: float | None
    clock: Clock

    @property
    def sentence(self) -> str:
        """The answer: latest (where promised), interval, and most likely start."""
        at = self.clock.at
        promised = (
            "" if self.promised_s is None else f"latest {at(self.promised_s, beside_s=self.asked_s)} (promised), "
        )
        low, high = at(self.low_s, beside_s=self.asked_s), at(self.high_s, beside_s=self.low_s)
        share = format_percent(self.coverage, decimals=0)
        likely = at(self.likely_s, beside_s=self.low_s)
        return f"{promised}{share}: between {low} and {high}, most likely {likely}"

    def to_json(self) -> dict[str, object]:
        """Return the fields by the names that programs read."""
        return {name: value for name, value in vars(self).items() if name != "clock"}


@dataclass(frozen=True, eq=False)
class WhenAnswer:
    """When jobs start.

    Attributes
    ----------
    starts
        One per job that was asked for.
    instead
        The same job with the change that was asked for; None without one.
    assumed
        What the answer takes for granted though nobody said so.
    """

    starts: tuple[ExpectedStart, ...]
    instead: ExpectedStart | None
    change: str | None
    assumed: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def start(self) -> ExpectedStart:
        """The first, or only, answer."""
        return self.starts[0]

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return when_answer(self)

    def to_json(self) -> dict[str, object]:
        """Return what ``stretto when --output json`` prints for one job."""
        more = {} if self.instead is None else {"if": {"change": self.change, **self.instead.to_json()}}
        told = {"answer": self.answer, **self.start.to_json(), **more}
        return {**told, "assumed": list(self.assumed), "notes": list(self.notes)}

    def all_to_json(self) -> dict[str, object]:
        """Return what ``stretto when --all --output json`` prints."""
        jobs = [one.to_json() for one in self.starts]
        return {"answer": self.answer, "jobs": jobs, "assumed": list(self.assumed), "notes": list(self.notes)}


def when(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    job: str | int | None = None,
    at: str | float | None = None,
    change: str | Mapping[str, object] | None = None,
    strategy: str = "fcfs",
    coverage: float = 0.9,
    learn: int = LEARN_JOBS,
    window: tuple[int, int] | None = None,
    seed: int = 0,
    watch: LearnWatch | None = None,
    **rules: Unpack[RuleArguments],
) -> WhenAnswer:
    """Say when a job starts, from what was known when it was submitted, or at a later moment of its wait.

    Parameters
    ----------
    machine
        As for :func:`replay`.
    job
        Its id in the trace, or ``row:N`` counted from 0; by default the last one.
    at
        Seconds of the trace, a time such as ``36h``, or a date such as ``2024-03-01T12:00`` (UTC) where the trace has a
        calendar; by default the submission of the job.
    change
        Another request for the job, such as ``limit=2h`` or ``procs=16``, and on a site ``nodes=2`` or
        ``partition=short``: when it would start then.
    strategy, rules
        As for :func:`replay`, with backfill ``easy``, ``none`` or ``promise``; ``recorded`` takes the starts of the
        trace itself.
    coverage
        The probability with which the start shall lie in the interval.
    learn
        Past jobs that are predicted once more, as they would have been then, to learn from; more take longer.
    watch
        Told how many of how many past jobs have been learned from; False stops that.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.when("trace:lublin?num_jobs=400&num_procs=64&load=1.1", job="row:250", learn=50)
    >>> found.start.low_s <= found.start.likely_s <= found.start.high_s
    True
    """
    jobs, known = _prepared(trace, machine, strategy, seed, window, rules)
    names = JobNames(jobs)
    row = int(known.rows[-1]) if job is None else names.row(str(job))
    index = known.index_of(row)
    if index is None:
        raise InvalidInput(f"job {names.of(row)} (row:{row}) is not in the replay: it never ran, or does not fit")
    queue = known.queue
    submit = float(queue.jobs.submit[index])
    now = submit if at is None else moment_of(at, jobs) - known.zero_s
    if now < submit:
        raise InvalidInput(f"job {names.of(row)} is submitted later, at {submit + known.zero_s:,.0f} s", field="at")
    if now > submit and queue.start_s[index] <= now:
        begin = float(queue.start_s[index]) + known.zero_s
        raise InvalidInput(f"job {names.of(row)} is not waiting at that time: it started at {begin:,.0f} s", field="at")
    wanted = None if change is None else RequestChange.parse(change)
    changed = None if wanted is None else changed_queue(queue, index, wanted)
    predictor = StartPredictor(queue, coverage=coverage, seed=seed)
    predictor.learn_past(now, at_submission=at is None, most=learn, watch=watch)
    told = _Telling(jobs, known, names)
    found = predictor.ask(now, [index])
    instead = None if changed is None else told.of(predictor.ask_instead(now, index, changed))
    starts = tuple(told.of(one) for one in found)
    return WhenAnswer(starts, instead, None if wanted is None else str(wanted), known.assumed, known.notes)


def when_all(
    trace: TraceLike,
    machine: MachineLike | None = None,
    *,
    at: str | float,
    strategy: str = "fcfs",
    coverage: float = 0.9,
    learn: int = LEARN_JOBS,
    window: tuple[int, int] | None = None,
    seed: int = 0,
    watch: LearnWatch | None = None,
    **rules: Unpack[RuleArguments],
) -> WhenAnswer:
    """Say when each job starts that waits at a moment; the parameters are those of :func:`when`.

    Examples
    --------
    >>> import stretto
    >>> found = stretto.when_all("trace:lublin?num_jobs=400&num_procs=64&load=1.2", at="30h", learn=50)
    >>> len(found.starts) > 0
    True
    """
    jobs, known = _prepared(trace, machine, strategy, seed, window, rules)
    now = moment_of(at, jobs) - known.zero_s
    waiting = known.queue.waiting_at(now)
    predictor = StartPredictor(known.queue, coverage=coverage, seed=seed)
    if not len(waiting):
        return WhenAnswer((), None, None, known.assumed, known.notes)
    predictor.learn_past(now, at_submission=False, most=learn, watch=watch)
    told = _Telling(jobs, known, JobNames(jobs))
    return WhenAnswer(
        tuple(told.of(one) for one in predictor.ask(now, waiting)), None, None, known.assumed, known.notes
    )


def moment_of(at: str | float, trace: Trace) -> float:
    """Return a moment in seconds of a trace: a number of them, a time such as ``36h``, or a date (UTC)."""
    if not isinstance(at, str):
        return float(at)
    text = at.strip()
    if "-" in text[1:]:
        if trace.origin_unix_s is None:
            raise InvalidInput(f"{trace.name!r} has no calendar: give seconds, or a time such as 36h", field="at")
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput(f"{at!r} is not a date such as 2024-03-01T12:00", field="at") from None
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - trace.origin_unix_s
    if text.endswith("d") and text[:-1].replace(".", "", 1).isdecimal():
        return 86400.0 * float(text[:-1])
    try:
        return parse_seconds(text)
    except InvalidInput:
        raise InvalidInput(f"{at!r} is not a number of seconds, a time such as 36h, or a date", field="at") from None


def _prepared(
    trace: TraceLike,
    machine: MachineLike | None,
    strategy: str,
    seed: int,
    window: tuple[int, int] | None,
    rules: RuleArguments,
) -> tuple[Trace, ReplayedQueue]:
    """Read and replay."""
    if strategy != RECORDED:
        check_rules(strategy, **rules)
    jobs = cut_window(trace_of(trace), window)
    return jobs, replayed_queue(jobs, machine_of(jobs, machine), strategy, seed, **rules)


class _Telling:
    """Writes predictions in the times and names of the trace."""

    def __init__(self, trace: Trace, known: ReplayedQueue, names: JobNames) -> None:
        self._known, self._names = known, names
        self._clock = Clock(trace.origin_unix_s)

    def of(self, said: PredictedStart) -> ExpectedStart:
        zero, row = self._known.zero_s, int(self._known.rows[said.row])
        start = float(self._known.queue.start_s[said.row])
        return ExpectedStart(
            job=self._names.of(row),
            row=row,
            user=self._names.user(row),
            procs=int(self._known.queue.jobs.procs[said.row]),
            submit_s=said.submit_s + zero,
            asked_s=said.moment_s + zero,
            promised_s=None if said.promised_s is None else said.promised_s + zero,
            low_s=said.low_s + zero,
            likely_s=said.likely_s + zero,
            high_s=said.high_s + zero,
            coverage=said.coverage,
            method=said.method,
            num_learned=said.num_learned,
            num_futures=said.num_futures,
            replayed_s=start + zero if np.isfinite(start) else None,
            clock=self._clock,
        )
