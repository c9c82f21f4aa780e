"""What MARS did, in the run log: choices, rewards of ended jobs, and what a restart needs."""

from __future__ import annotations

import json
import math

import numpy as np

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.selector import Choice, Selector
from stretto.runlog import Run, RunLog

_STATE = "mars-selector.json"


def reason_of(choice: Choice) -> str:
    """Say why a choice was made."""
    return choice.reason


def rival_fields(choice: Choice) -> dict[str, object] | None:
    """Return the rival of a choice as JSON values; what is not known is null."""
    if choice.rival is None:
        return None
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in vars(choice.rival).items()
    }


class ChoiceRecorder:
    """Writes one run; an epoch is written whole or not at all.

    Parameters
    ----------
    followed
        The first candidate that is followed.
    cost
        What a job costs; its reward is minus that.
    """

    def __init__(self, run: Run, followed: str, cost: JobCost = USUAL) -> None:
        self._run, self._followed, self._cost = run, followed, cost
        self._open = np.zeros(0, np.int64)  # jobs that have arrived and have no reward yet
        self._num_arrived = 0

    def epoch(self, choice: Choice, selector: Selector, jobs: QueueArrays, start: Floats, now: float) -> None:
        """Write a choice, the rewards of the jobs that have ended since the last one, and what a restart needs."""
        with self._run.batch():
            self._run.record(
                "choice",
                choice.chosen,
                at_s=choice.time_s,
                job=choice.job,
                reason=reason_of(choice),
                is_fallback=choice.is_fallback,
                saved=choice.saved,
                sure=choice.sure,
                regret=choice.regret,
                cost=dict(choice.cost),
                rival=rival_fields(choice),
            )
            self._rewards(jobs, start, choice.job, now)
            self._run.attach(_STATE, json.dumps(selector.state()).encode())
        self._followed = choice.chosen

    def rest(self, jobs: QueueArrays, start: Floats) -> None:
        """Write the rewards of all jobs that have none yet, when the last one has ended."""
        self._rewards(jobs, start, len(start), np.inf)

    def _rewards(self, jobs: QueueArrays, start: Floats, num_arrived: int, now: float) -> None:
        """Write what has ended since the last time, under the name of the candidate that was followed until now."""
        job = np.concatenate([self._open, np.arange(self._num_arrived, num_arrived)])
        has_ended = (start[job] >= 0) & (start[job] + jobs.run[job] <= now)
        ended, self._open, self._num_arrived = job[has_ended], job[~has_ended], num_arrived
        reward = -self._cost.of(start[ended] - jobs.submit[ended], jobs.run[ended], jobs.procs[ended])
        shares = self._cost.shares(jobs.user[:num_arrived])
        if shares is not None:
            reward *= shares[ended]
        self._run.record("reward", self._followed, job=ended.tolist(), reward=reward.round(6).tolist())


def resume(log: RunLog, run_id: str, selector: Selector) -> None:
    """Give a selector the state in which a run left its own."""
    state = log.artifact(run_id, _STATE)
    if state is not None:
        selector.restore(json.loads(state))
