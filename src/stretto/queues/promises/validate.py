"""Check a replay with promises without knowing how it was made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidPlan
from stretto.queues.promises.slack import parts_of_slack
from stretto.queues.result import QueueResult

Jobs = NDArray[np.int64]


@dataclass(frozen=True)
class PromiseCheck:
    """What is wrong with a replay; all lists are empty where nothing is.

    Attributes
    ----------
    late
        Jobs that started after the promised time.
    unpromised
        Jobs with a finite slack that were promised nothing, or less than their slack after submission.
    early
        Jobs that started before their submission, or not at all.
    crowded
        Jobs that started when fewer processors were free than they need.
    """

    late: Jobs
    unpromised: Jobs
    early: Jobs
    crowded: Jobs

    @property
    def is_valid(self) -> bool:
        return not any(len(jobs) for jobs in (self.late, self.unpromised, self.early, self.crowded))


def check_promises(jobs: QueueArrays, num_procs: int, slack_s: Floats, start_s: Floats, due_s: Floats) -> PromiseCheck:
    """Check every promise, every start, and the machine at every start."""
    slack_s = parts_of_slack(slack_s, len(jobs.submit))[0]
    promised = np.isfinite(slack_s)
    unpromised = (promised & ~(due_s >= jobs.submit + slack_s)) | (~promised & np.isfinite(due_s))
    return PromiseCheck(
        late=_where(start_s > due_s),
        unpromised=_where(unpromised),
        early=_where(~(start_s >= jobs.submit)),
        crowded=_crowded(jobs, num_procs, start_s),
    )


def check_given(result: QueueResult, slack_s: Floats) -> None:
    """Raise where a replay promised a job nothing, or too little, or started it after the promised time.

    Promises count from the time at which a job became eligible. What runs where is for ``check_replay`` to check.
    """
    if result.due_s is None:
        raise InvalidPlan("the replay promised nothing")
    slack_s = parts_of_slack(slack_s, len(result.ready_s))[0]
    promised = np.isfinite(slack_s)
    given = np.isfinite(result.due_s)
    little = (promised & ~(given & (result.due_s >= result.ready_s + slack_s))) | (~promised & given)
    late = given & (result.start_s > result.due_s)
    for what, jobs in (("was not promised its slack", little), ("starts after its promise", late)):
        if np.any(jobs):
            job = int(np.argmax(jobs))
            times = f"eligible at {result.ready_s[job]}, due at {result.due_s[job]}, started at {result.start_s[job]}"
            raise InvalidPlan(f"job {job} {what} ({times}); {np.count_nonzero(jobs)} such promises")


def _where(chosen: NDArray[np.bool_]) -> Jobs:
    return np.flatnonzero(chosen).astype(np.int64)


def _crowded(jobs: QueueArrays, num_procs: int, start_s: Floats) -> Jobs:
    """Return the jobs at whose start more is used than there is; ends come before starts of the same time."""
    n = len(start_s)
    time = np.concatenate([start_s + jobs.run, start_s])
    change = np.concatenate([-jobs.procs.astype(np.int64), jobs.procs.astype(np.int64)])
    is_start = np.concatenate([np.zeros(n, np.bool_), np.ones(n, np.bool_)])
    order = np.lexsort((is_start, time))
    used = np.cumsum(change[order])
    at_fault = order[(used > num_procs) & is_start[order]]
    return np.asarray(at_fault - n, np.int64)
