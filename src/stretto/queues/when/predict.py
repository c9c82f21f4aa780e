"""Predict when waiting jobs of a queue start, after learning from how earlier ones of the same queue did."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.when.futures import Futures, Rows, futures_of
from stretto.queues.when.known import KnownQueue
from stretto.queues.when.learner import MEDIAN, REGRESSION, REPLAY, StartInterval, StartLearner, WhenParts
from stretto.queues.when.parameters import WHEN_PARAMETERS

#: Past jobs that are predicted once more to learn from, and out of how many of the latest they are taken.
LEARN_JOBS, LEARN_SPAN = 500, 10_000
#: Only jobs that waited longer are learned from: for the others there was nothing to predict.
LEAST_WAIT_S = 60.0
#: What a prediction is called.
METHODS = {REPLAY: "replay by estimates", MEDIAN: "median of futures", REGRESSION: "regression over futures"}
#: Is told how many of how many past jobs have been predicted; False stops the learning there.
LearnWatch = Callable[[int, int], bool]


@dataclass(frozen=True)
class PredictedStart:
    """When a job starts, in seconds of the queue.

    Attributes
    ----------
    row
        The job.
    moment_s
        When this was predicted.
    promised_s
        The latest start that was promised; None where nothing is.
    method
        How ``likely_s`` was found.
    num_learned
        Outcomes from which the interval was made, beside those of other queues that every queue begins with.
    num_futures
        Simulated futures; fewer where many jobs wait.
    """

    row: int
    submit_s: float
    moment_s: float
    promised_s: float | None
    low_s: float
    likely_s: float
    high_s: float
    coverage: float
    method: str
    num_learned: int
    num_futures: int


class StartPredictor:
    """Answers questions about one queue, at moments in order of time.

    Parameters
    ----------
    parts
        What the learner uses.
    """

    def __init__(
        self,
        queue: KnownQueue,
        *,
        coverage: float = 0.9,
        seed: int = 0,
        parts: WhenParts | None = None,
        num_futures: int = WHEN_PARAMETERS.num_futures,
    ) -> None:
        if not 0.5 <= coverage <= 0.99:
            raise InvalidInput(f"{coverage} must lie between 0.5 and 0.99", field="coverage")
        self.queue, self._seed, self._num_futures = queue, seed, num_futures
        self.learner = StartLearner(coverage, parts)
        self.futures = futures_of(queue, seed, num_futures)
        self._open: list[tuple[float, int, StartInterval]] = []

    def ask(self, now_s: float, rows: Sequence[int] | Rows) -> list[PredictedStart]:
        """Predict when waiting jobs start, at a moment no earlier than the last one."""
        self._learn_until(now_s)
        wanted = np.asarray(rows, np.int64)
        outlooks = self.futures.outlooks(now_s, wanted)
        return [self._told(int(row), self.learner.predict(one)) for row, one in zip(wanted, outlooks, strict=True)]

    def ask_instead(self, now_s: float, row: int, changed: KnownQueue) -> PredictedStart:
        """Predict when a job would start if it were as in another queue, with what was learned in this one."""
        futures = futures_of(changed, self._seed, self._num_futures)
        outlook = futures.outlooks(now_s, np.array([row]))[0]
        return self._told(row, self.learner.predict(outlook), futures)

    def follow(self, now_s: float, row: int) -> PredictedStart:
        """Predict when one job starts, and learn from it once its start is known."""
        self._learn_until(now_s)
        said = self.learner.predict(self.futures.outlooks(now_s, np.array([row]))[0])
        if np.isfinite(self.queue.start_s[row]):
            heapq.heappush(self._open, (float(self.queue.start_s[row]), row, said))
        return self._told(row, said)

    def learn_past(
        self, now_s: float, *, at_submission: bool, most: int = LEARN_JOBS, watch: LearnWatch | None = None
    ) -> int:
        """Predict past jobs that waited, as they would have been then, and learn; return how many.

        Parameters
        ----------
        at_submission
            Whether questions are asked when jobs are submitted; otherwise at some time of their wait.
        """
        rows, moments = past_questions(self.queue, now_s, at_submission=at_submission, most=most, seed=self._seed)
        for i, (row, moment) in enumerate(zip(rows.tolist(), moments.tolist(), strict=True)):
            if watch is not None and not watch(i, len(rows)):
                return i
            self.follow(moment, row)
        return len(rows)

    def _learn_until(self, now_s: float) -> None:
        while self._open and self._open[0][0] <= now_s:
            start_s, _, said = heapq.heappop(self._open)
            self.learner.learn(said, start_s - said.outlook.moment_s)

    def _told(self, row: int, said: StartInterval, futures: Futures | None = None) -> PredictedStart:
        now = said.outlook.moment_s
        promised = (futures or self.futures).due_s(row)
        # A promise is kept whatever comes: no bound lies behind it.
        latest = np.inf if promised is None else max(promised, now)
        return PredictedStart(
            row=row,
            submit_s=float(self.queue.jobs.submit[row]),
            moment_s=now,
            promised_s=promised,
            low_s=float(min(latest, now + said.low_s)),
            likely_s=float(min(latest, now + said.likely_s)),
            high_s=float(min(latest, now + said.high_s)),
            coverage=self.learner.coverage,
            method=METHODS[said.believed],
            num_learned=self.learner.num_outcomes,
            num_futures=len(said.outlook.futures_s),
        )


def past_questions(
    queue: KnownQueue, now_s: float, *, at_submission: bool, most: int, seed: int
) -> tuple[NDArray[np.int64], Floats]:
    """Return jobs that have waited and started by a moment, and when to ask for each, by time."""
    wait = queue.start_s - queue.jobs.submit
    rows = np.flatnonzero((queue.start_s <= now_s) & (wait > LEAST_WAIT_S))[-LEARN_SPAN:]
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    moments = queue.jobs.submit[rows].copy()
    if not at_submission:
        moments += np.random.default_rng(seed).random(len(rows)) * wait[rows]
    order = np.argsort(moments, kind="stable")
    return rows[order], moments[order]
