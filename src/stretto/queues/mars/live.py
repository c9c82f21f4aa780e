"""MARS on a live queue: the candidate that has done best with this queue's own past scores what waits.

The choice is made as in a replay (``replay.py``): every candidate replays the known arrivals on a machine of its own,
and the selector compares; where little has been seen, the default is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.errors import InvalidInput
from stretto.queues.kernels.forecast import new_past, remember
from stretto.queues.mars.candidates import candidates_of
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import means_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.forecast import new_records, note_end
from stretto.queues.mars.kernels.policy import fill_scores, join, new_seen
from stretto.queues.mars.kernels.run import look
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.selector import Choice, EpochComparison, Selector
from stretto.queues.portfolio import kinds_of
from stretto.queues.view import QueueDecision, QueueView


@dataclass(eq=False)
class MarsOrder:
    """Scores the waiting jobs with the candidate that is followed.

    Attributes
    ----------
    candidates
        The first is the default; by default classic orders and untrained networks.
    cost
        What is compared.
    most_jobs
        The last arrivals by which candidates are compared: more of them would take longer than a decision may.
    selection
        By default the selector changes sooner than in a replay: so few jobs give no more certainty.
    """

    candidates: Sequence[MarsNet] | None = None
    cost: JobCost = USUAL
    most_jobs: int = 1000
    selection: Selection = field(default_factory=lambda: Selection(least_gain=0.03, certainty=0.0))
    last_choice: Choice | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._nets = list(self.candidates) if self.candidates is not None else candidates_of(starts_jobs=False)
        if not self._nets:
            raise InvalidInput("MARS needs a candidate", field="candidates")
        self._selector = Selector(names=[net.name for net in self._nets], rules=self.selection)
        self._last_job_id = -1

    def decide(self, view: QueueView) -> QueueDecision:
        """Choose a candidate, when enough jobs have arrived since the last choice, and order by its scores."""
        self._reconsider(view)
        net = self._nets[self._selector.chosen]
        costs = dict(self.last_choice.cost) if self.last_choice is not None else {}
        return QueueDecision(score_order(view, net), net.name, costs)

    def state(self) -> dict[str, Any]:
        """Return which candidate is followed and why, as JSON."""
        return {"names": self._selector.names, "measure": self.cost.measure, "selector": self._selector.state()}

    def restore(self, state: dict[str, Any]) -> bool:
        """Continue from what :meth:`state` returned, if it was of the same candidates by the same measure."""
        if (state.get("names"), state.get("measure")) != (self._selector.names, self.cost.measure):
            return False
        self._selector.restore(state["selector"])
        return True

    def _reconsider(self, view: QueueView) -> None:
        rules = self.selection
        view = view.latest(self.most_jobs)
        num_new = int(np.sum(view.job_id > self._last_job_id))
        played = view.num_jobs - rules.lag_jobs
        if num_new < rules.epoch_jobs or played < max(1, rules.least_jobs):
            return
        self._last_job_id = int(np.max(view.job_id))
        jobs = view.arrays()
        jobs = jobs._replace(procs=np.minimum(jobs.procs, view.num_procs))
        replays = CounterfactualReplays(jobs, kinds_of(jobs), view.num_procs, self._nets, shipped(), self.cost)
        # Only what has ended is known: a job that has not is taken to end later than now.
        known = ~np.isnan(view.end_s)
        start = np.where(known, view.end_s - jobs.run, np.where(np.isnan(view.start_s), -1.0, view.now_s))
        replays.learn(start, view.num_jobs, view.now_s)
        played = min(played, replays.num_playable)
        if played < max(1, rules.least_jobs):
            return
        replays.play(played)
        reached = float(jobs.submit[played - 1])
        costs = replays.costs(0, played, reached)
        weights = np.exp(-np.arange(played - 1, -1, -1) / rules.memory_jobs)
        cost = costs @ weights / weights.sum()
        self._selector.since = 0
        epochs = means_of(costs, rules.epoch_jobs)
        self.last_choice = self._selector.choose(EpochComparison(cost, epochs, played, view.num_jobs, view.now_s))


def score_order(view: QueueView, net: MarsNet) -> tuple[int, ...]:
    """Return the waiting jobs by the scores of a network, the highest first; equal ones by submission."""
    waiting = view.waiting
    if not len(waiting):
        return ()
    jobs = view.arrays()
    kinds = kinds_of(jobs)
    forecaster = shipped()
    past = new_past(int(kinds.max()) + 1)
    records = new_records(jobs, int(kinds.max()) + 1, len(forecaster.bias))
    jobs = jobs._replace(run=np.minimum(jobs.run, jobs.estimate))
    for job in view.ended.tolist():
        remember(past, kinds[job], jobs.run[job], jobs.estimate[job])
        note_end(jobs, records, kinds[job], job, float(view.end_s[job]))
    start = np.where(np.isnan(view.start_s), -1.0, view.start_s)
    seen = new_seen(len(waiting), net.num_hidden)
    for job in waiting.tolist():
        k = join(seen, jobs, job, 0)
        look(jobs, kinds, view.num_procs, net.net, forecaster, seen, past, records, k, len(kinds), view.now_s, start)
    free = max(0, view.num_procs - int(np.sum(view.procs[view.running])))
    fill_scores(seen, net.net, view.now_s, free, view.num_procs)
    order = np.lexsort((seen.job[: len(waiting)], -seen.score[: len(waiting)]))
    return tuple(int(job) for job in seen.job[order])
