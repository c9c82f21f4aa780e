"""Counterfactual replays: what each candidate would have made of the jobs so far, on a machine of its own.

A replay knows what a scheduler could know: the run time of a job that has ended in the real queue, and a guess for the
others, drawn from the forecast that was made of the job when it arrived and longer than what it has run. It continues
where it was, not from an empty machine: the price of an order is mostly paid in the backlog that it leaves behind.
Every replay keeps the same promises. Forecasts are those of the real queue, so nothing is learned from a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.forecasts.kernels.online import QUANTILES, ForecastState
from stretto.queues.forecasts.state import nothing_foreseen
from stretto.queues.mars.candidates import Candidate
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.kernels.play import play
from stretto.queues.mars.kernels.score import ScoreState, put_all_through
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.promises.kernels.state import PromiseState
from stretto.queues.promises.queue import PromiseQueue

Bools = NDArray[np.bool_]
_LEVELS = np.array([0.0, *QUANTILES, 1.0])
#: A job that has outlived its guess is taken to run for so much longer than it has.
_LONGER = 1.2


class CounterfactualReplays:
    """The machines of all candidates.

    Parameters
    ----------
    real
        The real queue; run times of its jobs are looked at only once they have ended.
    scores
        Features of the jobs, as the real queue forecasts them.
    slack_s
        Of all promises; see :class:`PromiseQueue`.
    cost
        What a job costs.
    seed
        For guesses of run times.
    """

    def __init__(
        self,
        real: PromiseQueue,
        scores: ScoreState,
        candidates: Sequence[Candidate],
        slack_s: Floats,
        cost: JobCost = USUAL,
        seed: int = 0,
    ) -> None:
        jobs, n = real.jobs, len(real.jobs.submit)
        self._real, self._candidates = real, list(candidates)
        self._rng = np.random.default_rng(seed)
        self._is_known = np.zeros(n, np.bool_)
        self._first_open = 0  # all jobs before this one are known
        self._open = np.zeros(0, np.int64)  # jobs that have arrived and are not known
        self._num_arrived = 0
        self._num_playable = 0
        self._nothing = nothing_foreseen()
        self.jobs = jobs._replace(run=np.maximum(1.0, 0.5 * jobs.estimate))
        self._states: list[PromiseState | None] = []
        self._scores: list[ScoreState] = []
        for _ in candidates:
            queue = PromiseQueue.of(self.jobs, real.num_procs, slack_s)
            self._states.append(queue.state._replace(length=real.state.length))
            told = scores.mean, scores.sharp, np.full(n, -1.0), scores.reference, scores.width
            self._scores.append(ScoreState(scores.static, np.zeros(n), *told))
        self._costs = CostTable(len(candidates) + 1, n, cost)  # the last row is that of the real queue
        self._shares = cost.shares

    def learn(self, forecasts: ForecastState, num_arrived: int, now: float) -> None:
        """Note the run times of the jobs that have ended by now, and guess those of the others anew."""
        real, start = self._real.jobs, self._real.state.start
        first = self._first_open
        job = np.concatenate([self._open, np.arange(self._num_arrived, num_arrived)])
        begin, run = start[job], real.run[job]
        ended = (begin >= 0) & (begin + run <= now)
        self.jobs.run[job[ended]] = run[ended]
        self._is_known[job[ended]] = True
        self._open, self._num_arrived = job[~ended], num_arrived
        elapsed = np.where(begin >= 0, now - begin, 0.0)[~ended]
        self.jobs.run[self._open] = self._guess(forecasts, elapsed)
        self._first_open = int(self._open[0]) if len(self._open) else num_arrived
        reached = known_until(self._is_known, first, num_arrived, self._num_playable)
        self._num_playable = max(self._num_playable, self._first_open, reached)

    def _guess(self, forecasts: ForecastState, elapsed: Floats) -> Floats:
        """Draw a run time per open job from the forecast at its arrival, longer than what it has run."""
        job = self._open
        said = np.concatenate([forecasts.said[job, :1], forecasts.said[job], np.zeros((len(job), 1))], axis=1)
        drawn = self._rng.random(len(job))
        at = np.clip(np.searchsorted(_LEVELS, drawn, side="right") - 1, 0, len(_LEVELS) - 2)
        rows = np.arange(len(job))
        share = (drawn - _LEVELS[at]) / (_LEVELS[at + 1] - _LEVELS[at])
        log_ratio = said[rows, at] + share * (said[rows, at + 1] - said[rows, at])
        run = np.exp(forecasts.log_limit[job] + log_ratio)
        estimate = self._real.jobs.estimate[job]
        guess: Floats = np.maximum(np.maximum(1.0, _LONGER * elapsed), np.minimum(estimate, run))
        return guess

    @property
    def num_playable(self) -> int:
        """Return up to which job most have ended."""
        return self._num_playable

    @property
    def replayed(self) -> list[int]:
        """Return the candidates that are still replayed."""
        return [k for k, state in enumerate(self._states) if state is not None]

    def drop(self, k: int) -> None:
        """Replay a candidate no longer; from now on it costs infinitely much."""
        self._states[k] = None
        self._costs.drop(k)

    def replace(self, k: int, candidate: Candidate) -> None:
        """Put other weights in the place of a candidate; its replay continues with them."""
        self._candidates[k] = candidate
        state = self._states[k]
        if state is not None:
            put_all_through(state, candidate.net, self._scores[k])

    def play(self, num_jobs: int, executor: Executor | None = None) -> None:
        """Let every candidate continue until so many jobs have arrived, and take what jobs cost there."""
        reached = float(self.jobs.submit[num_jobs - 1])

        def one(k: int) -> None:
            self._costs.update(k, self._continue(k, num_jobs), self.jobs, self._is_known, num_jobs, reached)

        list((executor.map if executor else map)(one, self.replayed))
        self._costs.update(-1, self._real.state.start, self.jobs, self._is_known, num_jobs, reached)

    def _continue(self, k: int, num_jobs: int) -> Floats:
        """Let one candidate continue until so many jobs have arrived; return when jobs started there."""
        state, candidate = self._states[k], self._candidates[k]
        assert state is not None
        order = candidate.order(learns=False)
        num_procs, scores = self._real.num_procs, self._scores[k]
        play(self.jobs, num_procs, state, order, self._nothing, candidate.net, scores, 0.0, num_jobs)
        return state.start

    def epochs(self, num_jobs: int, length: int) -> Floats:
        """Return mean costs in epochs of so many jobs, which end with the last that was replayed; [K + 1, E].

        The last row is that of the real queue.
        """
        count = max(1, num_jobs // length)
        first = max(0, num_jobs - count * length)
        cost = self._costs.cost[:, first:num_jobs]
        share = self._shares(self.jobs.user[first:num_jobs])
        if share is not None:
            cost = cost * share
        means: Floats = np.stack([part.mean(axis=1) for part in np.array_split(cost, count, axis=1)], axis=1)
        return means


def known_until(is_known: Bools, first: int, last: int, least: int) -> int:
    """Return up to which job three in four of those before it are known; zero where that is not beyond the least.

    Jobs before the first do not count.
    """
    begin, stretch = max(first, least - P.known_stretch), P.known_stretch
    part = is_known[begin:last]
    count = np.cumsum(part, dtype=np.int64)
    count[stretch:] -= count[:-stretch].copy()
    enough = np.flatnonzero(count >= P.known_part * stretch)
    return begin + int(enough[-1]) + 1 if len(enough) else 0


class CostTable:
    """What all jobs cost, one row per candidate, of which only what can still change is computed again.

    An entry is settled once the job's run time is known and the job has started: it stays as it is. The others depend
    on what is guessed, and on how long a job has waited by now.

    Attributes
    ----------
    cost
        As last computed; [rows, jobs].
    """

    def __init__(self, num_rows: int, num_jobs: int, cost: JobCost = USUAL) -> None:
        self._of = cost.of
        self.cost: Floats = np.zeros((num_rows, num_jobs))
        self._open = [np.zeros(0, np.int64) for _ in range(num_rows)]
        self._num_seen = np.zeros(num_rows, np.int64)

    def update(self, row: int, begin: Floats, jobs: QueueArrays, is_known: Bools, num_jobs: int, now: float) -> None:
        """Compute what is open of the first jobs; ``begin`` is negative for one that waits, and it waits until now."""
        fresh = np.arange(self._num_seen[row], num_jobs)
        job = np.concatenate([self._open[row], fresh])
        since, run = begin[job], jobs.run[job]
        wait = np.where(since >= 0, np.minimum(since, now), now) - jobs.submit[job]
        self.cost[row, job] = self._of(np.maximum(wait, 0.0), run, jobs.procs[job])
        is_settled = is_known[job] & (since >= 0) & (since <= now)
        self._open[row] = job[~is_settled]
        self._num_seen[row] = max(num_jobs, self._num_seen[row])

    def drop(self, row: int) -> None:
        """Let a row cost infinitely much from now on."""
        self.cost[row] = np.inf
