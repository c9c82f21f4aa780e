"""MARS on a live queue: the candidate that has surely been cheapest with this queue's own past orders what waits.

The choice is made as in a replay (``replay.py``): every candidate replays the known arrivals on a machine of its own,
and the selector compares; where little has been seen, the prior decides. The manager of the queue starts the jobs, so
networks are asked for their order only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import Candidate, candidates_of
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.kernels.moment import foresee_all, order_now
from stretto.queues.mars.kernels.score import ScoreState, new_scores
from stretto.queues.mars.parameters import MARS_PARAMETERS, MarsParameters
from stretto.queues.mars.selector import Choice, EpochCosts, Selector
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.view import QueueDecision, QueueView


@dataclass(eq=False)
class MarsOrder:
    """Orders the waiting jobs by the candidate that is followed.

    Attributes
    ----------
    candidates
        The first is the operator's policy; by default classic orders and the networks that come with Stretto.
    cost
        What is compared.
    most_jobs
        The last arrivals by which candidates are compared: more of them would take longer than a decision may.
    """

    candidates: Sequence[Candidate] | None = None
    cost: JobCost = USUAL
    most_jobs: int = 2000
    rules: MarsParameters = MARS_PARAMETERS
    last_choice: Choice | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        given = self.candidates
        self._candidates = list(given) if given is not None else candidates_of(starts_jobs=False)
        if not self._candidates:
            raise InvalidInput("MARS needs a candidate", field="candidates")
        names, trained = zip(*((one.name, one.is_trained) for one in self._candidates), strict=True)
        self._selector = Selector(names, trained, self.rules)
        self._last_job_id = -1

    def decide(self, view: QueueView) -> QueueDecision:
        """Choose a candidate, when enough jobs have arrived since the last choice, and order by its scores."""
        if not len(view.waiting):
            return QueueDecision((), self._candidates[self._selector.chosen].name)
        self._reconsider(view)
        one = self._candidates[self._selector.chosen]
        costs = dict(self.last_choice.cost) if self.last_choice is not None else {}
        return QueueDecision(candidate_order(view, one), one.name, costs)

    def state(self) -> dict[str, Any]:
        """Return which candidate is followed and why, as JSON."""
        return {"names": list(self._selector.names), "measure": self.cost.measure, "selector": self._selector.state()}

    def restore(self, state: dict[str, Any]) -> bool:
        """Continue from what :meth:`state` returned, if it was of the same candidates by the same measure."""
        if (state.get("names"), state.get("measure")) != (list(self._selector.names), self.cost.measure):
            return False
        self._selector.restore(state["selector"])
        return True

    def _reconsider(self, view: QueueView) -> None:
        rules = self.rules
        view = view.latest(self.most_jobs)
        num_new = int(np.sum(view.job_id > self._last_job_id))
        if num_new < rules.epoch_jobs or view.num_jobs < rules.epoch_jobs + rules.lag_jobs:
            return
        self._last_job_id = int(np.max(view.job_id))
        queue, scores = _foreseen(view, self._candidates[0])
        replays = CounterfactualReplays(queue, scores, self._candidates, np.array(np.inf), cost=self.cost)
        replays.learn(queue.forecasts, view.num_jobs, view.now_s)
        played = min(view.num_jobs - rules.lag_jobs, replays.num_playable)
        if played < rules.epoch_jobs:
            return
        replays.play(played)
        epochs = replays.epochs(played, rules.epoch_jobs)
        self.last_choice = self._selector.choose(EpochCosts(epochs[:-1], epochs[-1], view.num_jobs, view.now_s))


def candidate_order(view: QueueView, one: Candidate) -> tuple[int, ...]:
    """Return the waiting jobs by one candidate, those that do not fit the machine behind the others."""
    queue, scores = _foreseen(view, one)
    fits = view.procs[view.waiting] <= view.num_procs
    waiting = view.waiting[fits]
    queue.state.waiting[: len(waiting)] = waiting
    queue.state.moment["num_waiting"] = len(waiting)
    free = max(0, view.num_procs - int(np.sum(view.procs[view.running])))
    order = one.order(learns=True)
    found = order_now(
        *(queue.jobs, view.num_procs, queue.state, order, queue.forecasts, one.net, scores, view.now_s, free)
    )
    return (*found.tolist(), *view.waiting[~fits].tolist())


def _foreseen(view: QueueView, one: Candidate) -> tuple[PromiseQueue, ScoreState]:
    """Return the queue as it was, and its jobs as they were forecast when they arrived."""
    jobs = _jobs(view)
    queue = PromiseQueue.of(jobs, view.num_procs, np.inf, new_forecasts(jobs))
    # Only what has ended is known: a job that has not is taken to end later than now.
    known = ~np.isnan(view.end_s) & ~np.isnan(view.start_s)
    queue.state.start[:] = np.where(np.isnan(view.start_s), -1.0, np.where(known, view.end_s - jobs.run, view.now_s))
    scores = new_scores(len(jobs.submit))
    ended = view.ended
    foresee_all(
        *(jobs, view.num_procs, queue.state, queue.forecasts, one.net, scores, ended, np.nan_to_num(view.end_s))
    )
    return queue, scores


def _jobs(view: QueueView) -> QueueArrays:
    """Return the jobs as kernels know them; what does not fit does not wait, but the past may be told once more."""
    jobs = view.arrays()
    run = np.minimum(jobs.run, jobs.estimate)
    return jobs._replace(
        submit=jobs.submit.astype(np.float64),
        run=run,
        procs=np.minimum(jobs.procs, view.num_procs).astype(np.int32),
        user=jobs.user.astype(np.int32),
    )
