"""What each candidate would have made of the jobs so far, on a machine of its own that goes on from epoch to epoch.

A shadow knows what a scheduler could know: the run time of a job that has ended in the real queue, and a guess for the
others. It starts where it was, not from an empty machine: the price of an order is mostly paid in the backlog that it
leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from stretto.domain.csr import Floats
from stretto.domain.trace import QueueArrays
from stretto.kernels.mars_run import advance, new_state
from stretto.learned.mars.network import MarsNet

_BOUND_S = 10.0
#: Before anything has ended, jobs are taken to run for this share of their estimates.
_FIRST_SHARE = 0.5


class Shadows:
    """The machines of all candidates.

    Parameters
    ----------
    jobs
        All jobs; run times are looked at only once they have ended.
    """

    def __init__(self, jobs: QueueArrays, kinds: NDArray[np.int64], num_procs: int, nets: Sequence[MarsNet]) -> None:
        n = len(jobs.submit)
        self._real = jobs
        self._kinds, self._num_procs, self._nets = kinds, num_procs, list(nets)
        self._is_known = np.zeros(n, np.bool_)
        self._first_open = 0  # all jobs before this one are known
        self._share = _FIRST_SHARE
        self.jobs = jobs._replace(run=np.maximum(1.0, _FIRST_SHARE * jobs.estimate))
        self.start = np.full((len(nets), n), -1.0)
        self._states = [new_state(jobs, kinds, num_procs, net.num_hidden) for net in nets]

    def learn(self, real_start: Floats, num_arrived: int, now: float) -> None:
        """Note the run times of the jobs that have ended by now, and guess those of the others anew."""
        part = slice(self._first_open, num_arrived)
        begin, run = real_start[part], self._real.run[part]
        ended = (begin >= 0) & (begin + run <= now)
        estimate = self._real.estimate[part]
        if np.any(ended):
            self._share = float(np.mean(run[ended] / np.maximum(estimate[ended], 1.0)))
        elapsed = np.where(begin >= 0, now - begin, 0.0)
        guess = np.maximum(np.maximum(self._share * estimate, elapsed), 1.0)
        self.jobs.run[part] = np.where(ended, run, guess)
        self._is_known[part] = ended
        while self._first_open < num_arrived and self._is_known[self._first_open]:
            self._first_open += 1

    def replace(self, k: int, net: MarsNet) -> None:
        """Put another network in the place of a candidate; it has yet to play."""
        self._nets[k] = net
        self.start[k] = -1.0
        self._states[k] = new_state(self.jobs, self._kinds, self._num_procs, net.num_hidden)

    def play(self, num_jobs: int, executor: Executor | None = None) -> None:
        """Let every candidate go on until so many jobs have arrived."""

        def one(k: int) -> None:
            advance(
                self.jobs, self._kinds, self._num_procs, self._nets[k].net, self._states[k], num_jobs, self.start[k]
            )

        list((executor.map if executor else map)(one, range(len(self._nets))))

    def costs(self, first: int, last: int, now: float, weights: Floats) -> Floats:
        """Return the weighted mean bounded slowdown of some jobs per candidate; one that waits has waited until now."""
        return self._costs(self.start[:, first:last], first, now, weights)

    def real_cost(self, real_start: Floats, first: int, last: int, now: float, weights: Floats) -> float:
        """Return the same of what really happened until then."""
        return float(self._costs(real_start[None, first:last], first, now, weights)[0])

    def _costs(self, begin: Floats, first: int, now: float, weights: Floats) -> Floats:
        part = slice(first, first + begin.shape[1])
        submit, run = self.jobs.submit[part], self.jobs.run[part]
        wait = np.where(begin >= 0, np.minimum(begin, now), now) - submit
        slowdown = np.maximum(1.0, (np.maximum(wait, 0.0) + run) / np.maximum(run, _BOUND_S))
        costs: Floats = slowdown @ weights / weights.sum()
        return costs
