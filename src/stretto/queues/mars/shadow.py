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

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.cost import USUAL, Cost
from stretto.queues.mars.guesses import FIRST_SHARE, Guesses
from stretto.queues.mars.kernels.forecast import Chains, Forecaster, chains_of
from stretto.queues.mars.kernels.run import State, advance, state_along
from stretto.queues.mars.kernels.weigh import weigh
from stretto.queues.mars.ledger import Ledger
from stretto.queues.mars.network import MarsNet

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
    chains
        Of the jobs, where somebody has them already.
    """

    def __init__(
        self,
        jobs: QueueArrays,
        kinds: NDArray[np.int64],
        num_procs: int,
        nets: Sequence[MarsNet],
        forecaster: Forecaster,
        cost: Cost = USUAL,
        chains: Chains | None = None,
    ) -> None:
        n = len(jobs.submit)
        self._real = jobs
        self._kinds, self._num_procs, self._nets = kinds, num_procs, list(nets)
        self._forecaster = forecaster
        self._is_known = np.zeros(n, np.bool_)
        self._first_open = 0  # all jobs before this one are known
        self._open = np.zeros(0, np.int64)  # jobs that have arrived and are not known
        self._num_arrived = 0
        self._guesses = Guesses(int(jobs.user.max()) + 1)
        self._num_playable = 0
        self.jobs = jobs._replace(run=np.maximum(1.0, FIRST_SHARE * jobs.estimate))
        self.start = np.full((len(nets), n), -1.0)
        self._chains = chains_of(jobs) if chains is None else chains
        self._num_kinds = int(kinds.max()) + 1
        self._states: list[State | None] = [self._new_state(net) for net in nets]
        self._is_given_up = np.zeros(len(nets), np.bool_)
        self._cost = cost
        self._ledger = Ledger(len(nets), n, cost)
        self._real_ledger, self._least_ledger = Ledger(1, n, cost), Ledger(1, n, cost)

    def _new_state(self, net: MarsNet) -> State:
        shape = (self._num_kinds, self._num_procs, net.num_hidden)
        state: State = state_along(self._real, self._chains, *shape, self._forecaster, self._is_known)
        return state

    def learn(self, real_start: Floats, num_arrived: int, now: float) -> None:
        """Note the run times of the jobs that have ended by now, and guess those of the others anew."""
        first = self._first_open
        job = np.concatenate([self._open, np.arange(self._num_arrived, num_arrived)])
        begin, run = real_start[job], self._real.run[job]
        ended = (begin >= 0) & (begin + run <= now)
        self.jobs.run[job[ended]] = run[ended]
        self._is_known[job[ended]] = True
        self._open, self._num_arrived = job[~ended], num_arrived
        elapsed = np.where(begin >= 0, now - begin, 0.0)[~ended]
        user, estimate = self._real.user[self._open], self._real.estimate[self._open]
        self.jobs.run[self._open] = self._guesses.draw(user, estimate, elapsed)
        self._first_open = int(self._open[0]) if len(self._open) else num_arrived
        self._remember(slice(first, self._first_open))
        reached = known_until(self._is_known, first, num_arrived, self._num_playable)
        self._num_playable = max(self._num_playable, self._first_open, reached)

    @property
    def num_playable(self) -> int:
        """Return up to which job most have ended."""
        return self._num_playable

    @property
    def exactness(self) -> float:
        """Return the share of jobs that have ended lately which ran as long as was estimated."""
        return self._guesses.exactness

    def _remember(self, part: slice) -> None:
        jobs = self._real
        self._guesses.remember(jobs.user[part], jobs.run[part] / np.maximum(jobs.estimate[part], 1.0))

    def replace(self, k: int, net: MarsNet) -> None:
        """Put another network in the place of a candidate; it has yet to play."""
        self._nets[k] = net
        self.start[k] = -1.0
        self._states[k] = self._new_state(net)
        self._ledger.forget(k)
        self._is_given_up[k] = False

    def give_up(self, k: int) -> None:
        """Let a candidate play no more; from now on it costs infinitely much."""
        self._is_given_up[k] = True
        self._states[k] = None
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

    def compare(
        self, first: int, last: int, now: float, fade: Floats, length: int, executor: Executor | None = None
    ) -> tuple[Floats, Floats]:
        """Return the mean cost of some jobs per candidate, [K], and in stretches of so many that end last, [K, E].

        Parameters
        ----------
        fade
            What jobs count in the mean over all; that of the last job last.
        """
        share = self._shares(first, last)
        cost = np.full(len(self._nets), np.inf)
        means = np.full((len(self._nets), _num_stretches(last - first, length)), np.inf)

        def one(k: int) -> None:
            self._ledger.update(k, self.start[k], self.jobs, self._is_known, last, now)
            row = self._ledger.row(k)
            cost[k] = weigh(row, first, last, fade, share, min(length, last - first), means[k])

        list((executor.map if executor else map)(one, self._playing))
        return cost / fade[len(fade) - (last - first) :].sum(), means

    def real_cost(self, real_start: Floats, first: int, last: int, now: float, fade: Floats) -> float:
        """Return the mean cost of what really happened until then."""
        return self._mean(self._real_ledger, real_start, first, last, now, fade)

    def least_cost(self, first: int, last: int, now: float, fade: Floats) -> float:
        """Return the same of a machine on which nobody waits."""
        return self._mean(self._least_ledger, self._real.submit, first, last, now, fade)

    def real_costs(self, real_start: Floats, first: int, last: int, now: float) -> Floats:
        """Return what some jobs really cost until then; [jobs]."""
        return self._row(self._real_ledger, real_start, first, last, now)

    def least_costs(self, first: int, last: int, now: float) -> Floats:
        """Return the same of a machine on which nobody waits; [jobs]."""
        return self._row(self._least_ledger, self._real.submit, first, last, now)

    def _mean(self, ledger: Ledger, begin: Floats, first: int, last: int, now: float, fade: Floats) -> float:
        ledger.update(0, begin, self.jobs, self._is_known, last, now)
        share = self._shares(first, last)
        total = weigh(ledger.row(0), first, last, fade, share, 1, np.zeros(0))
        return float(total / fade[len(fade) - (last - first) :].sum())

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
        shares = self._shares(first, last)
        return rows * shares if len(shares) else rows

    def _shares(self, first: int, last: int) -> Floats:
        """Return what each job counts beside the others; empty where all count the same."""
        shares = self._cost.shares(self._real.user[first:last])
        return np.zeros(0) if shares is None else shares


def _num_stretches(num_jobs: int, length: int) -> int:
    return max(1, num_jobs // length)


def known_until(is_known: NDArray[np.bool_], first: int, last: int, least: int) -> int:
    """Return up to which job three in four of those before it are known; zero where that is not beyond the least.

    Jobs before the first do not count.
    """
    begin = max(first, least - _STRETCH)
    part = is_known[begin:last]
    count = np.cumsum(part, dtype=np.int64)
    count[_STRETCH:] -= count[:-_STRETCH].copy()
    enough = np.flatnonzero(count >= _KNOWN * _STRETCH)
    return begin + int(enough[-1]) + 1 if len(enough) else 0
