"""Promises on a live queue, where somebody else starts the jobs: an order that keeps latest starts as far as it can.

Whoever manages the queue reserves room for jobs in order of their priority. So an order is worth what a plan in that
order gives: each job as early as those before it allow, by estimates. As long as that plan meets every promise, the
preferred order stands. Where it does not, the jobs that would be late come first, by their latest start. A promise is
kept by order alone, so nothing is certain: what breaks one is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.queues.kernels.profile import ProcsProfile, new_profile
from stretto.queues.promises.kernels.reserve_all import reserve_all
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack, parts_of_slack
from stretto.queues.view import KeptOrder, QueueDecision, QueueOrder, QueueView

#: How often further late jobs are raised before all jobs go by their latest start.
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class PromiseCounts:
    """What became of the promises of a live queue so far.

    Attributes
    ----------
    given
        Jobs that were told a latest start.
    kept, broken
        Of those that have started: in time, or late.
    at_risk
        Jobs that now come first because they would be late otherwise.
    """

    given: int = 0
    kept: int = 0
    broken: int = 0
    at_risk: int = 0


@dataclass(eq=False)
class PromisedOrder:
    """An order of a live queue inside promises.

    Attributes
    ----------
    inner
        The preferred order.
    slack
        How much later than planned at submission a job may start.
    margin_s
        A plan must meet promises by this much: for the time until the manager of the queue acts on an order.
    """

    inner: QueueOrder
    slack: Slack = field(default_factory=lambda: Slack.parse(DEFAULT_SLACK))
    margin_s: float = 0.0

    def __post_init__(self) -> None:
        #: How long after its submission each waiting job must have started; views count from changing origins.
        self._allowed: dict[int, float] = {}
        self.counts = PromiseCounts()

    def decide(self, view: QueueView) -> QueueDecision:
        """Return the preferred order, or one in which jobs come first that would miss their promise in it."""
        self._settle(view)
        preferred = self.inner.decide(view)
        able = [job for job in preferred.order if view.procs[job] <= view.num_procs]
        self._promise(view, able)
        due = {job: float(view.submit_s[job]) + self._allowed[int(view.job_id[job])] for job in able}
        order, raised = self._safe(view, able, due)
        self.counts = replace(self.counts, at_risk=len(raised))
        wide = [job for job in preferred.order if view.procs[job] > view.num_procs]
        return replace(preferred, order=(*order, *wide), due_s=due, at_risk=tuple(raised))

    def _settle(self, view: QueueView) -> None:
        """Count the promises of jobs that have started; forget those of jobs that have gone."""
        started = ~np.isnan(view.start_s)
        for job in np.flatnonzero(started).tolist():
            allowed = self._allowed.pop(int(view.job_id[job]), None)
            if allowed is None:
                continue
            is_late = float(view.start_s[job] - view.submit_s[job]) > allowed + 1.0  # Slurm tells whole seconds
            change = {"broken": self.counts.broken + 1} if is_late else {"kept": self.counts.kept + 1}
            self.counts = replace(self.counts, **change)
        there = {int(number) for number in view.job_id[~started]}
        self._allowed = {job: allowed for job, allowed in self._allowed.items() if job in there}

    def _promise(self, view: QueueView, able: Sequence[int]) -> None:
        """Promise new jobs a latest start: the earliest one behind all promises, and the slack."""
        new = sorted(job for job in able if int(view.job_id[job]) not in self._allowed)
        if not new:
            return
        old = [job for job in able if int(view.job_id[job]) in self._allowed]
        old.sort(key=lambda job: (float(view.submit_s[job]) + self._allowed[int(view.job_id[job])], job))
        planned = planned_starts(view, [*old, *new])
        slack, wait_share = parts_of_slack(self.slack.of(view.estimate_s), len(view.estimate_s))
        for job in new:
            wait = planned[job] - float(view.submit_s[job])
            self._allowed[int(view.job_id[job])] = wait + float(slack[job] + wait_share[job] * wait)
        self.counts = replace(self.counts, given=self.counts.given + len(new))

    def _safe(self, view: QueueView, order: Sequence[int], due: dict[int, float]) -> tuple[list[int], list[int]]:
        """Return an order whose plan meets the promises where one is found, and the jobs that were raised in it."""
        raised: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            first = sorted(raised, key=lambda job: (due[job], job))
            tried = [*first, *(job for job in order if job not in raised)]
            planned = planned_starts(view, tried)
            late = {job for job in tried if planned[job] + self.margin_s > max(due[job], view.now_s + self.margin_s)}
            if late <= raised:
                return tried, first
            raised |= late
        first = sorted(order, key=lambda job: (due[job], job))
        return first, first

    # Put away and taken up after a restart.

    def state(self) -> dict[str, Any]:
        """Return promises and counts, and the state of the preferred order."""
        inner = self.inner.state() if isinstance(self.inner, KeptOrder) else None
        allowed = {str(job): value for job, value in self._allowed.items()}
        return {"promises": allowed, "slack": str(self.slack), "counts": vars(self.counts), "inner": inner}

    def restore(self, state: dict[str, Any]) -> bool:
        """Resume promises that were given under the same slack."""
        if not isinstance(state.get("promises"), dict) or state.get("slack") != str(self.slack):
            return False
        self._allowed = {int(job): float(value) for job, value in state["promises"].items()}
        self.counts = PromiseCounts(**state["counts"])
        if isinstance(self.inner, KeptOrder) and isinstance(state.get("inner"), dict):
            self.inner.restore(state["inner"])
        return True


def planned_starts(view: QueueView, order: Sequence[int]) -> dict[int, float]:
    """Return when jobs start that get room one after the other, each as early as possible, by estimates.

    Running jobs end at their estimates; one that has outlived its estimate ends now.
    """
    jobs = np.asarray(order, np.int64)
    spans = np.maximum(1.0, view.estimate_s[jobs])
    start = reserve_all(_running(view, len(jobs)), view.procs[jobs].astype(np.int64), spans.astype(float))
    return dict(zip(jobs.tolist(), start.tolist(), strict=True))


def _running(view: QueueView, num_waiting: int) -> ProcsProfile:
    """Return what is free over time beside running jobs; what runs beyond the machine is taken to fit."""
    running = view.running
    ends = view.start_s[running] + view.estimate_s[running]
    later = ends > view.now_s
    times, index = np.unique(ends[later], return_inverse=True)
    freed = np.bincount(index, weights=view.procs[running][later], minlength=len(times)).astype(np.int64)
    profile: ProcsProfile = new_profile(num_waiting + len(times) + 1, view.num_procs)
    free = view.num_procs - int(freed.sum()) + np.concatenate(([0], np.cumsum(freed)))
    profile.begin[: len(times) + 1] = np.concatenate(([view.now_s], times))
    profile.free[: len(times) + 1] = np.maximum(free, 0)
    profile.size[0] = len(times) + 1
    return profile
