"""Counterfactual replays in pools: what each pair of an order and a pool rule would have made of the past, and paid.

As on a plain machine, a replay knows the run times of the jobs that have ended in the real queue. For the others it
draws one: the job's estimate times what jobs of its user have used of theirs, longer than it has run. Interruptions of
spot pools are drawn anew, the same for all candidates: nobody knows which would have hit a job in another pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.mars.cost import MEASURES, JobCost
from stretto.queues.mars.counterfactual import known_until
from stretto.queues.mars.pool_candidates import PoolCandidate
from stretto.queues.pools.queue import PoolQueue
from stretto.queues.setup import ReplaySetup

#: A job that has outlived its guess is taken to run for so much longer than it has.
_LONGER = 1.2
#: Ended jobs of a user from which a share of the estimate is drawn, and of all users for one who has none.
_NUM_REMEMBERED, _NUM_OF_ALL = 32, 512


class PoolReplays:
    """The pools of all candidates.

    Parameters
    ----------
    real
        The real queue; run times of its jobs are looked at only once they have ended.
    setup
        Of the real queue.
    """

    def __init__(
        self,
        real: PoolQueue,
        setup: ReplaySetup,
        candidates: Sequence[PoolCandidate],
        slack_s: Floats | float,
        cost: JobCost,
        seed: int,
    ) -> None:
        n = len(real.jobs.submit)
        self._real, self._candidates, self._cost = real, list(candidates), cost
        self._rng = np.random.default_rng([seed, 11])
        self.jobs = real.jobs._replace(run=np.maximum(1.0, 0.5 * real.jobs.estimate))
        draws = np.random.default_rng([seed, 12]).standard_exponential(setup.draws.shape)
        self._queues: list[PoolQueue | None] = [
            PoolQueue.of(replace(setup, draws=draws), slack_s, self.jobs) for _ in candidates
        ]
        self._is_known = np.zeros(n, np.bool_)
        self._ended_ratio: dict[int, list[float]] = {}
        self._all_ratios: list[float] = []
        self.num_playable = 0
        self._first_open = 0
        self._time_cost: Floats = np.zeros((len(candidates) + 1, n))
        self._usd: Floats = np.zeros((len(candidates) + 1, n))
        self._settled = np.zeros(len(candidates) + 1, np.int64)

    def learn(self, num_arrived: int, now: float) -> None:
        """Note the run times of the jobs that have ended by now, and guess those of the others anew."""
        first, real = self._first_open, self._real
        fresh = np.arange(first, num_arrived)
        fresh = fresh[~self._is_known[first:num_arrived]]
        ended = fresh[real.out.end[fresh] >= 0]
        self.jobs.run[ended] = real.jobs.run[ended]
        self._is_known[ended] = True
        self._remember(ended)
        still = fresh[real.out.end[fresh] < 0]
        began = real.start_s[still]
        elapsed = np.where(began >= 0, now - began, 0.0)
        self.jobs.run[still] = np.maximum(self._guess(still), _LONGER * elapsed)
        self._first_open = int(still[0]) if len(still) else num_arrived
        reached = known_until(self._is_known, first, num_arrived, self.num_playable)
        self.num_playable = max(self.num_playable, self._first_open, reached)

    def _remember(self, ended: np.ndarray) -> None:
        jobs = self._real.jobs
        share = jobs.run[ended] / np.maximum(1.0, jobs.estimate[ended])
        for user, value in zip(jobs.user[ended].tolist(), share.tolist(), strict=True):
            own = self._ended_ratio.setdefault(user, [])
            own.append(value)
            del own[:-_NUM_REMEMBERED]
        self._all_ratios = [*self._all_ratios, *share.tolist()][-_NUM_OF_ALL:]

    def _guess(self, jobs: np.ndarray) -> Floats:
        user, estimate = self._real.jobs.user[jobs], self._real.jobs.estimate[jobs]
        drawn = self._rng.random(len(jobs))
        share = np.full(len(jobs), 0.5)
        for i, one in enumerate(user.tolist()):
            past = self._ended_ratio.get(one) or self._all_ratios
            if past:
                share[i] = past[int(drawn[i] * len(past))]
        guess: Floats = np.maximum(1.0, share * estimate)
        return guess

    @property
    def replayed(self) -> list[int]:
        """Return the candidates that are still replayed."""
        return [k for k, queue in enumerate(self._queues) if queue is not None]

    def drop(self, k: int) -> None:
        """Replay a candidate no longer; from now on it costs infinitely much."""
        self._queues[k] = None
        self._time_cost[k] = np.inf

    def play(self, num_jobs: int, executor: Executor | None = None) -> None:
        """Let every candidate continue until so many jobs have arrived, and take what jobs cost there."""
        reached = float(self.jobs.submit[num_jobs - 1])

        def one(k: int) -> None:
            queue = self._queues[k]
            assert queue is not None
            queue.correct_ends()
            queue.advance(self._candidates[k].rules, num_jobs)
            self._take(k, queue, num_jobs, reached)

        list((executor.map if executor else map)(one, self.replayed))
        self._take(-1, self._real, num_jobs, reached)

    def _take(self, row: int, queue: PoolQueue, num_jobs: int, reached: float) -> None:
        """Compute what jobs cost that have not ended in a replay, or whose run times were guessed."""
        first = int(self._settled[row])
        part = slice(first, num_jobs)
        start, run = queue.start_s[part], self.jobs.run[part]
        wait = np.where((start >= 0) & (start <= reached), start, reached) - self.jobs.submit[part]
        self._time_cost[row, part] = self._cost.time * MEASURES[self._cost.measure].of(np.maximum(wait, 0.0), run)
        ended = (queue.out.end[part] >= 0) & self._is_known[part]
        self._settled[row] = first + (int(np.argmin(ended)) if not np.all(ended) else len(ended))
        at = queue.plan.usd_at[:num_jobs]
        last = queue.plan.usd_at[num_jobs] if queue.num_arrived > num_jobs else queue.usd
        self._usd[row, :num_jobs] = np.diff(at, append=last)

    def epochs(self, num_jobs: int, length: int) -> Floats:
        """Return mean costs in epochs of so many jobs, which end with the last that was replayed; [K + 1, E].

        The last row is that of the real queue. Money counts when it is paid.
        """
        count = max(1, num_jobs // length)
        first = max(0, num_jobs - count * length)
        cost = self._time_cost[:, first:num_jobs]
        share = self._cost.shares(self.jobs.user[first:num_jobs])
        if share is not None:
            cost = cost * share
        cost = cost + self._cost.money * self._usd[:, first:num_jobs]
        means: Floats = np.stack([part.mean(axis=1) for part in np.array_split(cost, count, axis=1)], axis=1)
        return means
