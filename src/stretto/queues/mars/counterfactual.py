"""Counterfactual replays: what each candidate would have made of the jobs so far, on a machine of its own.

A replay knows what a scheduler could know: the run time of a job that has ended in the real queue, and a guess for the
others. It continues where it was, not from an empty machine: the price of an order is mostly paid in the backlog that
it leaves behind.

Guesses must not be optimistic. Of the latest jobs the short ones end first, so what has ended among them says too
little of the others: guesses are draws from the time before, when all have ended, of the same user where there are any,
and a job that runs is drawn until its run time exceeds the time that it has run. Where few have ended yet, replays
wait. And nothing is learned from a guess: a replay is told of a run time when its job has ended there and in the real
queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.trace import QueueArrays
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.kernels.forecast import Chains, Forecaster, chains_of
from stretto.queues.mars.kernels.run import MachineState, advance, state_along, weigh
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import MARS_PARAMETERS as P

Bools = NDArray[np.bool_]


class CounterfactualReplays:
    """The machines of all candidates.

    Parameters
    ----------
    jobs
        All jobs; run times are looked at only once they have ended.
    cost
        What a job costs.
    chains
        Of the jobs, where the caller has them already.
    seed
        For guesses of run times.
    """

    def __init__(
        self,
        jobs: QueueArrays,
        kinds: NDArray[np.int64],
        num_procs: int,
        nets: Sequence[MarsNet],
        forecaster: Forecaster,
        cost: JobCost = USUAL,
        chains: Chains | None = None,
        seed: int = 0,
    ) -> None:
        n = len(jobs.submit)
        self._real = jobs
        self._kinds, self._num_procs, self._nets = kinds, num_procs, list(nets)
        self._forecaster = forecaster
        self._is_known = np.zeros(n, np.bool_)
        self._first_open = 0  # all jobs before this one are known
        self._open = np.zeros(0, np.int64)  # jobs that have arrived and are not known
        self._num_arrived = 0
        self.draws = RunTimeDraws(int(jobs.user.max()) + 1, seed)
        self._num_playable = 0
        self.jobs = jobs._replace(run=np.maximum(1.0, P.first_share * jobs.estimate))
        self.start = np.full((len(nets), n), -1.0)
        self._chains = chains_of(jobs) if chains is None else chains
        self._num_kinds = int(kinds.max()) + 1
        self._states: list[MachineState | None] = [self._new_state(net) for net in nets]
        self._is_dropped = np.zeros(len(nets), np.bool_)
        self._cost = cost
        self._costs = CostTable(len(nets), n, cost)
        self._real_costs, self._least_costs = CostTable(1, n, cost), CostTable(1, n, cost)

    def _new_state(self, net: MarsNet) -> MachineState:
        shape = (self._num_kinds, self._num_procs, net.num_hidden)
        state: MachineState = state_along(self._real, self._chains, *shape, self._forecaster, self._is_known)
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
        self.jobs.run[self._open] = self.draws.draw(user, estimate, elapsed)
        self._first_open = int(self._open[0]) if len(self._open) else num_arrived
        settled = slice(first, self._first_open)
        ratio = self._real.run[settled] / np.maximum(self._real.estimate[settled], 1.0)
        self.draws.remember(self._real.user[settled], ratio)
        reached = known_until(self._is_known, first, num_arrived, self._num_playable)
        self._num_playable = max(self._num_playable, self._first_open, reached)

    @property
    def num_playable(self) -> int:
        """Return up to which job most have ended."""
        return self._num_playable

    def replace(self, k: int, net: MarsNet) -> None:
        """Put another network in the place of a candidate; its replay begins anew."""
        self._nets[k] = net
        self.start[k] = -1.0
        self._states[k] = self._new_state(net)
        self._costs.clear(k)
        self._is_dropped[k] = False

    def drop(self, k: int) -> None:
        """Replay a candidate no longer; from now on it costs infinitely much."""
        self._is_dropped[k] = True
        self._states[k] = None
        self._costs.drop(k)

    @property
    def _replayed(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(~self._is_dropped)]

    def play(self, num_jobs: int, executor: Executor | None = None) -> None:
        """Let every candidate continue until so many jobs have arrived."""

        def one(k: int) -> None:
            advance(
                self.jobs, self._kinds, self._num_procs, self._nets[k].net, self._states[k], num_jobs, self.start[k]
            )

        list((executor.map if executor else map)(one, self._replayed))

    def costs(self, first: int, last: int, now: float) -> Floats:
        """Return what some jobs cost per candidate; one that waits has waited until now; [K, jobs].

        Neither ``last`` nor ``now`` may be less than before. The result may be a view, and is good until the next call.
        """
        for k in self._replayed:
            self._costs.update(k, self.start[k], self.jobs, self._is_known, last, now)
        return self._weighed(self._costs.cost[:, first:last], first, last)

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
        means = np.full((len(self._nets), max(1, (last - first) // length)), np.inf)

        def one(k: int) -> None:
            self._costs.update(k, self.start[k], self.jobs, self._is_known, last, now)
            cost[k] = weigh(self._costs.cost[k], first, last, fade, share, min(length, last - first), means[k])

        list((executor.map if executor else map)(one, self._replayed))
        return cost / fade[len(fade) - (last - first) :].sum(), means

    def real_cost(self, real_start: Floats, first: int, last: int, now: float, fade: Floats) -> float:
        """Return the mean cost of what really happened until then."""
        return self._mean(self._real_costs, real_start, first, last, now, fade)

    def least_cost(self, first: int, last: int, now: float, fade: Floats) -> float:
        """Return the same of a machine on which no job waits."""
        return self._mean(self._least_costs, self._real.submit, first, last, now, fade)

    def real_costs(self, real_start: Floats, first: int, last: int, now: float) -> Floats:
        """Return what some jobs really cost until then; [jobs]."""
        self._real_costs.update(0, real_start, self.jobs, self._is_known, last, now)
        row: Floats = self._weighed(self._real_costs.cost[:, first:last], first, last)[0]
        return row

    def _mean(self, table: CostTable, begin: Floats, first: int, last: int, now: float, fade: Floats) -> float:
        table.update(0, begin, self.jobs, self._is_known, last, now)
        share = self._shares(first, last)
        total = weigh(table.cost[0], first, last, fade, share, 1, np.zeros(0))
        return float(total / fade[len(fade) - (last - first) :].sum())

    def _weighed(self, rows: Floats, first: int, last: int) -> Floats:
        shares = self._shares(first, last)
        return rows * shares if len(shares) else rows

    def _shares(self, first: int, last: int) -> Floats:
        """Return what each job counts beside the others; empty where all count the same."""
        shares = self._cost.shares(self._real.user[first:last])
        return np.zeros(0) if shares is None else shares


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


class RunTimeDraws:
    """Run times of jobs that have not ended, drawn from the latest ratios of run time to estimate.

    Attributes
    ----------
    ratios
        The latest ratios of all users.
    """

    def __init__(self, num_users: int, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.ratios: deque[float] = deque([P.first_share], maxlen=P.drawn_jobs)
        self._of_user = np.zeros((num_users, P.drawn_user_jobs))  # a ring per user
        self._num_of_user = np.zeros(num_users, np.int64)

    def remember(self, user: Ints, ratio: Floats) -> None:
        """Take ratios of jobs into account, the latest last."""
        self.ratios.extend(ratio.tolist())
        for one, value in zip(user.tolist(), ratio.tolist(), strict=True):
            count = self._num_of_user[one]
            self._of_user[one, count % P.drawn_user_jobs] = value
            self._num_of_user[one] = count + 1

    def draw(self, user: Ints, estimate: Floats, elapsed: Floats) -> Floats:
        """Draw run times of jobs that have run so long, each from earlier ones, of the same user if possible."""
        most, tries = P.drawn_user_jobs, P.draw_tries
        estimate = np.maximum(estimate, 1.0)
        of_all = np.array(self.ratios)
        count = self._num_of_user[user]
        size = np.minimum(count, most)
        has_own = size > 0
        drawn = self._rng.integers(0, np.where(has_own, size, len(of_all))[:, None], size=(len(user), tries))
        oldest = np.where(count > most, count % most, 0)
        own = self._of_user[user[:, None], (oldest[:, None] + drawn) % most]
        run = np.where(has_own[:, None], own, of_all[np.where(has_own[:, None], 0, drawn)]) * estimate[:, None]
        is_longer = run > elapsed[:, None]
        first = run[np.arange(len(user)), np.argmax(is_longer, axis=1)]
        beyond = np.maximum(elapsed, 0.5 * (elapsed + estimate))
        guess: Floats = np.maximum(np.where(is_longer.any(axis=1), first, beyond), 1.0)
        return guess


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

    def clear(self, row: int) -> None:
        """Begin a row anew."""
        self._open[row], self._num_seen[row] = np.zeros(0, np.int64), 0
