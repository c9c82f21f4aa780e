"""A queue on nodes that follows a candidate of MARS, with keys from a network where that is one.

The kernels that score jobs read the state of a queue on a plain machine. Here such a state is a view: the waiting jobs,
the free processors and the promises of the queue on nodes are written into it before they are called.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.forecasts.kernels.online import ForecastState, remember
from stretto.queues.kernels.codes import MULTIFACTOR, PROMISE
from stretto.queues.kernels.keys import DEADLINE
from stretto.queues.mars.candidates import Candidate
from stretto.queues.mars.kernels.score import ScoreState, fill_scores, put_all_through, refresh
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.nodes.kernels.arrays import NEXT_ROOT, NUM_ENDS, Longs, NodeRules
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.promises.kernels.state import PromiseState

#: Keys of a network are computed anew when jobs arrive, and at the first event so many seconds after the last time.
UPDATE_S = 300.0


class SiteRules:
    """The rules of all candidates on a site, with one fair-share tree if any of them needs it."""

    def __init__(self, setup: NodeSetup, candidates: list[Candidate]) -> None:
        is_weighted = any(one.code == MULTIFACTOR for one in candidates)
        self._base = node_rules(setup, MULTIFACTOR if is_weighted else DEADLINE, PROMISE)

    def of(self, candidate: Candidate) -> NodeRules:
        """Return the rules of a candidate; a network gives keys, which take the place of deadlines."""
        return self._base._replace(strategy=DEADLINE if candidate.is_network else candidate.code)


@dataclass(eq=False)
class CandidateQueue:
    """A queue on nodes that is led from arrival to arrival.

    Attributes
    ----------
    jobs
        What the kernels read of them; run times are those that the queue on nodes has.
    view
        Of the queue, for the kernels; its starts and promises are the arrays of the queue itself.
    scores
        Features of the jobs, put through the network that is followed.
    forecasts
        Of the real queue, which learn from what ends; elsewhere they are not looked at.
    """

    queue: NodePromiseQueue
    jobs: QueueArrays
    view: PromiseState
    scores: ScoreState
    rules: SiteRules
    followed: Candidate
    forecasts: ForecastState
    is_real: bool

    def __post_init__(self) -> None:
        due = self.queue.due_s
        self.view = self.view._replace(start=self.queue.start_s, due=due, latest=due)
        self._codes = self.rules.of(self.followed)
        self._num_procs = self.queue.replay.setup.site.num_cpus
        self._num_arrived = 0
        self._open: Longs = np.zeros(0, np.int64)  # jobs that have arrived and of whose end nothing is learned yet
        self._keyed_at = -np.inf

    def follow(self, candidate: Candidate) -> None:
        """Continue in the order of another candidate, or of the same one with other weights."""
        if candidate is self.followed:
            return
        self.followed, self._codes = candidate, self.rules.of(candidate)
        if not candidate.is_network:
            self.queue.replay.change_order(self._codes)
            return
        self._look(self.queue.waiting, self.queue.now_s)
        put_all_through(self.view, candidate.net, self.scores)
        self._set_keys()

    def go(self, until_s: float) -> None:
        """Continue up to and including a time."""
        if not (self.is_real or self.followed.is_network):
            self.queue.advance(self._codes, until_s)
            return
        submit = self.jobs.submit
        while True:
            first = self._num_arrived
            arrival = float(submit[first]) if first < len(submit) else np.inf
            time = self._next_update(min(arrival, until_s))
            if time == np.inf:
                break
            self._num_arrived = int(np.searchsorted(submit, time, side="right"))
            self._update(np.arange(first, self._num_arrived), time)
            self.queue.advance(self._codes, time)
            if time >= until_s:
                return
        self.queue.advance(self._codes, until_s)

    def admit_no_more(self) -> None:
        """Let nobody arrive any more."""
        self.queue.replay.state.counts[NEXT_ROOT] = len(self.queue.replay.setup.arrays.roots)
        self.jobs = self.jobs._replace(submit=self.jobs.submit[: self._num_arrived])

    def _next_update(self, limit: float) -> float:
        """Let everything happen before the next update of keys, which is at a limit or before; return when that is."""
        before = float(np.nextafter(limit, -np.inf))  # of infinity, the largest number
        if not self.followed.is_network or len(self.queue.waiting) == 0:
            self.queue.advance(self._codes, before)
            return limit
        self.queue.advance(self._codes, min(before, self._keyed_at + UPDATE_S))
        return min(limit, self.queue.next_event_s())

    def _update(self, arriving: Longs, now: float) -> None:
        """Learn from what has ended, forecast what arrives, and give all of them keys."""
        if self.is_real:
            self._learn(arriving, now)
        self._look(np.concatenate([self.queue.waiting, arriving]), now)
        refresh(
            *(self.jobs, self._num_procs, self.view, self.forecasts, self.followed.net, self.scores),
            *(P.forecast_pause, self.is_real),
        )
        if self.followed.is_network:
            self._set_keys()

    def _learn(self, arriving: Longs, now: float) -> None:
        job = self._open
        end = self.queue.start_s[job] + self.jobs.run[job]
        has_ended = end <= now  # no start is no number
        for k in np.flatnonzero(has_ended)[np.argsort(end[has_ended], kind="stable")]:
            remember(self.forecasts, int(job[k]), float(self.jobs.run[job[k]]), float(end[k]))
        self._open = np.concatenate([job[~has_ended], arriving])

    def _look(self, waiting: Longs, now: float) -> None:
        """Write into the view what the kernels read of this moment."""
        moment = self.view.moment
        moment["now"] = now
        moment["free"] = self.queue.replay.state.free[0].sum()
        moment["num_waiting"] = len(waiting)
        self.view.waiting[: len(waiting)] = waiting

    def _set_keys(self) -> None:
        fill_scores(self.jobs, self.view, self.followed.net, self.scores)
        self.queue.set_keys(self.view.key, self._codes)
        self._keyed_at = float(self.view.moment["now"][0])


def correct_ends(queue: NodePromiseQueue) -> None:
    """Let jobs that run end as their run times now say, which may have changed since they started; none in the past."""
    state, out, run = queue.replay.state, queue.replay.out, queue.replay.setup.arrays.run
    count = int(state.counts[NUM_ENDS])
    jobs = state.end_job[:count].copy()
    ends: Floats = np.maximum(out.start[jobs] + run[jobs], queue.now_s)
    order = np.lexsort((jobs, ends))  # a sorted list is a heap
    state.end_time[:count], state.end_job[:count] = ends[order], jobs[order]
    out.end[jobs] = ends
