"""A queue with promises that a caller leads from event to event: for selectors, networks and environments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput
from stretto.queues.forecasts.kernels.online import ForecastState
from stretto.queues.forecasts.state import nothing_foreseen
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.promises.kernels.loop import advance, can_start, happen, next_event
from stretto.queues.promises.kernels.mask import fill_allowed
from stretto.queues.promises.kernels.starts import (
    BY_ESTIMATE,
    BY_LENGTH,
    GIVEN,
    NO_RESERVATION,
    WEIGHTED,
    Preference,
    propose,
    settle,
    try_start,
)
from stretto.queues.promises.kernels.state import PromiseState, copied, new_promise_state
from stretto.queues.promises.slack import parts_of_slack

__all__ = [
    "BY_ESTIMATE",
    "BY_LENGTH",
    "GIVEN",
    "MAX_TESTS",
    "NO_RESERVATION",
    "WEIGHTED",
    "Preference",
    "PromiseQueue",
    "preference",
]

#: Plans that are tested per pass; with a thousand waiting jobs a test takes about a millisecond.
MAX_TESTS = 16
_NO_RULES = RuleCodes(0, 0, 0, 0, False, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0)


def preference(
    code: int = GIVEN,
    *,
    by_length: bool = False,
    reservation: int = BY_ESTIMATE,
    max_tests: int = MAX_TESTS,
    quantile: int = -1,
    procs_power: float = 0.0,
    wait_power: float = 0.0,
    rules: RuleCodes = _NO_RULES,
) -> Preference:
    """Return an order of proposals; see :class:`Preference`."""
    return Preference(code, by_length, reservation, max_tests, quantile, float(procs_power), float(wait_power), rules)


@dataclass(frozen=True, eq=False)
class PromiseQueue:
    """A queue that has come to a moment.

    Attributes
    ----------
    jobs
        All jobs; run times of jobs that have not ended may be changed in place, for counterfactual replays.
    state
        Everything that changes, in arrays.
    forecasts
        Where lengths come from, if an order asks for them.
    """

    jobs: QueueArrays
    num_procs: int
    state: PromiseState
    forecasts: ForecastState

    @staticmethod
    def of(
        jobs: QueueArrays, num_procs: int, slack_s: Floats | float, forecasts: ForecastState | None = None
    ) -> PromiseQueue:
        """Return a queue before its first event; ``slack_s`` is one for all, or one per job as in ``slack.py``."""
        slack, wait_share = parts_of_slack(slack_s, len(jobs.submit))
        if bool(np.any(jobs.procs > num_procs)):
            job = int(np.argmax(jobs.procs > num_procs))
            raise InvalidInput(f"job {job} needs {jobs.procs[job]} of {num_procs} processors", field="machine")
        state = new_promise_state(jobs, num_procs, slack, wait_share)
        return PromiseQueue(jobs, num_procs, state, nothing_foreseen() if forecasts is None else forecasts)

    def copy(self) -> PromiseQueue:
        """Return a queue that goes its own way from here on; the jobs are shared."""
        forecasts = ForecastState(*(array.copy() for array in self.forecasts))
        return PromiseQueue(self.jobs, self.num_procs, copied(self.state), forecasts)

    def advance(self, order: Preference, until_s: float = np.inf) -> int:
        """Replay up to and including a time in some order; return the number of events."""
        count: int = advance(self.jobs, self.num_procs, self.state, order, self.forecasts, float(until_s))
        return count

    # One event at a time.

    @property
    def now_s(self) -> float:
        return float(self.state.moment["now"][0])

    @property
    def start_s(self) -> Floats:
        """Start of each job, -1 = it has not started; [n]."""
        return self.state.start

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Jobs that wait, by submission; a view."""
        return self.state.waiting[: int(self.state.moment["num_waiting"][0])]

    def next_event_s(self) -> float:
        """Return when something happens next, inf = never."""
        return float(next_event(self.jobs, self.state))

    def happen(self, order: Preference) -> bool:
        """Go to the next event, without starting anything; return whether any waiting job fits then."""
        happen(self.jobs, self.state, order, self.forecasts, self.next_event_s())
        return bool(can_start(self.jobs, self.state))

    def propose(self, order: Preference) -> None:
        """Start jobs in the order of their keys; with ``GIVEN`` those of ``state.key``."""
        propose(self.jobs, self.num_procs, self.state, order)

    def start(self, job: int) -> bool:
        """Start one job now if it fits and every promise can be met; return whether it did."""
        if self.state.start[job] >= 0 or self.jobs.procs[job] > self.state.moment["free"][0]:
            return False
        return bool(try_start(self.jobs, self.state, job, True)[0])

    def settle(self) -> None:
        """End the decisions of this event: jobs that can be put off are, the others start."""
        settle(self.jobs, self.state)

    def allowed(self, max_tests: int = 1 << 30) -> NDArray[np.bool_]:
        """Return which of the waiting jobs may start now, an action mask; [waiting].

        Parameters
        ----------
        max_tests
            Plans that are tested; jobs beyond them that need a test are not allowed.
        """
        mask = np.zeros(len(self.waiting), np.bool_)
        fill_allowed(self.jobs, self.state, max_tests, mask)
        return mask
