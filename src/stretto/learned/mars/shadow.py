"""What each candidate would have made of the jobs so far, on a machine of its own that goes on from epoch to epoch.

A shadow knows what a scheduler could know: the run time of a job that has ended in the real queue, and a guess for the
others. It starts where it was, not from an empty machine: the price of an order is mostly paid in the backlog that it
leaves behind.

Guesses must not flatter. Of the latest jobs the short ones end first, so what has ended among them says too little of
the others: guesses are draws from the time before, when all have ended, of the same user where there are any, and a
job that runs is drawn until it outlives the time that it has run. Where few have ended yet, shadows wait. And nothing
is learned from a guess: a shadow is told of a run time when its job has ended there and in the real queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from stretto.domain.csr import Floats
from stretto.domain.trace import QueueArrays
from stretto.kernels.mars_forecast import Forecaster
from stretto.kernels.mars_run import advance, new_state
from stretto.learned.mars.cost import USUAL, Cost
from stretto.learned.mars.ledger import Ledger
from stretto.learned.mars.network import MarsNet

#: Before anything has ended, jobs are taken to run for this share of their estimates.
_FIRST_SHARE = 0.5
#: Ended jobs that guesses are drawn from: of all users, and of one.
_MOST_DRAWN, _MOST_OF_USER = 2000, 16
#: Tries to draw a run time that a running job has not outlived.
_TRIES = 4
#: An estimate is exact if it is off by no more than this part.
_OFF = 0.05
#: Shadows play as far as this part of the jobs has ended, of so many.
_KNOWN, _STRETCH = 0.75, 200


class Shadows:
    """The machines of all candidates.

    Parameters
    ----------
    jobs
        All jobs; run times are looked at only once they have ended.
    cost
        What a job costs.
    """

    def __init__(
        self,
        jobs: QueueArrays,
        kinds: NDArray[np.int64],
        num_procs: int,
        nets: Sequence[MarsNet],
        forecaster: Forecaster,
        cost: Cost = USUAL,
    ) -> None:
        n = len(jobs.submit)
        self._real = jobs
        self._kinds, self._num_procs, self._nets = kinds, num_procs, list(nets)
        self._forecaster = forecaster
        self._is_known = np.zeros(n, np.bool_)
        self._first_open = 0  # all jobs before this one are known
        self._rng = np.random.default_rng(0)
        self._of_user: dict[int, deque[float]] = {}
        self._of_all: deque[float] = deque([_FIRST_SHARE], maxlen=_MOST_DRAWN)
        self._num_playable = 0
        self.jobs = jobs._replace(run=np.maximum(1.0, _FIRST_SHARE * jobs.estimate))
        self.start = np.full((len(nets), n), -1.0)
        self._states = [new_state(jobs, kinds, num_procs, net.num_hidden, forecaster, self._is_known) for net in nets]
        self._is_given_up = np.zeros(len(nets), np.bool_)
        self._cost = cost
        self._ledger = Ledger(len(nets), n, cost)
        self._real_ledger, self._least_ledger = Ledger(1, n, cost), Ledger(1, n, cost)

    def learn(self, real_start: Floats, num_arrived: int, now: float) -> None:
        """Note the run times of the jobs that have ended by now, and guess those of the others anew."""
        part = slice(self._first_open, num_arrived)
        begin, run = real_start[part], self._real.run[part]
        ended = (begin >= 0) & (begin + run <= now)
        elapsed = np.where(begin >= 0, now - begin, 0.0)
        self.jobs.run[part] = run
        still_open = np.flatnonzero(~ended)
        self.jobs.run[part.start + still_open] = self._guesses(part.start + still_open, elapsed[still_open])
        self._is_known[part] = ended
        while self._first_open < num_arrived and self._is_known[self._first_open]:
            self._remember(self._first_open)
            self._first_open += 1
        share = np.convolve(self._is_known[part], np.ones(_STRETCH) / _STRETCH)[: part.stop - part.start]
        enough = np.flatnonzero(share >= _KNOWN)
        reached = part.start + int(enough[-1]) + 1 if len(enough) else self._first_open
        self._num_playable = max(self._num_playable, self._first_open, reached)

    @property
    def num_playable(self) -> int:
        """Return up to which job most have ended."""
        return self._num_playable

    @property
    def exactness(self) -> float:
        """Return the share of jobs that have ended lately which ran as long as was estimated."""
        return float(np.mean(np.abs(np.array(self._of_all) - 1.0) <= _OFF))

    def _remember(self, job: int) -> None:
        ratio = float(self._real.run[job] / max(self._real.estimate[job], 1.0))
        self._of_all.append(ratio)
        self._of_user.setdefault(int(self._real.user[job]), deque(maxlen=_MOST_OF_USER)).append(ratio)

    def _guesses(self, jobs: NDArray[np.int64], elapsed: Floats) -> Floats:
        """Draw run times of jobs that have run so long, each as one of those before."""
        estimate = np.maximum(self._real.estimate[jobs], 1.0)
        everybody = np.array(self._of_all)
        guess = np.empty(len(estimate))
        for k, user in enumerate(self._real.user[jobs].tolist()):
            own = self._of_user.get(user)
            pool = everybody if own is None else np.array(own)
            drawn = self._rng.choice(pool, _TRIES) * estimate[k]
            fit = drawn[drawn > elapsed[k]]
            guess[k] = fit[0] if len(fit) else max(elapsed[k], 0.5 * (elapsed[k] + estimate[k]))
        return np.maximum(guess, 1.0)

    def replace(self, k: int, net: MarsNet) -> None:
        """Put another network in the place of a candidate; it has yet to play."""
        self._nets[k] = net
        self.start[k] = -1.0
        self._states[k] = new_state(
            self.jobs, self._kinds, self._num_procs, net.num_hidden, self._forecaster, self._is_known
        )
        self._ledger.forget(k)
        self._is_given_up[k] = False

    def give_up(self, k: int) -> None:
        """Let a candidate play no more; from now on it costs infinitely much."""
        self._is_given_up[k] = True
        self._ledger.give_up(k)

    @property
    def _playing(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(~self._is_given_up)]

    def play(self, num_jobs: int, executor: Executor | None = None) -> None:
        """Let every candidate go on until so many jobs have arrived."""

        def one(k: int) -> None:
            advance(
                self.jobs, self._kinds, self._num_procs, self._nets[k].net, self._states[k], num_jobs, self.start[k]
            )

        list((executor.map if executor else map)(one, self._playing))

    def costs(self, first: int, last: int, now: float) -> Floats:
        """Return what some jobs cost per candidate; one that waits has waited until now; [K, jobs].

        Neither ``last`` nor ``now`` may be less than before. The result may be a view, and is good until the next call.
        """
        for k in self._playing:
            self._ledger.update(k, self.start[k], self.jobs, self._is_known, last, now)
        return self._weighed(self._ledger.rows(first, last), first, last)

    def real_costs(self, real_start: Floats, first: int, last: int, now: float) -> Floats:
        """Return the same of what really happened until then; [jobs]."""
        return self._row(self._real_ledger, real_start, first, last, now)

    def least_costs(self, first: int, last: int, now: float) -> Floats:
        """Return the same of a machine on which nobody waits; [jobs]."""
        return self._row(self._least_ledger, self._real.submit, first, last, now)

    def waits(self, first: int, last: int, now: float) -> Floats:
        """Return how long some jobs wait under the default, until now at the most; [jobs]."""
        begin, submit = self.start[0, first:last], self._real.submit[first:last]
        wait: Floats = np.maximum(np.where(begin >= 0, np.minimum(begin, now), now) - submit, 0.0)
        return wait

    def _row(self, ledger: Ledger, begin: Floats, first: int, last: int, now: float) -> Floats:
        ledger.update(0, begin, self.jobs, self._is_known, last, now)
        row: Floats = self._weighed(ledger.rows(first, last), first, last)[0]
        return row

    def _weighed(self, rows: Floats, first: int, last: int) -> Floats:
        shares = self._cost.shares(self._real.user[first:last])
        return rows if shares is None else rows * shares
