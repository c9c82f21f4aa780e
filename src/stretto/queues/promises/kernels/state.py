"""The state of a queue with promises, in arrays: a replay can stop at any event and go on, also in another order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.records import record
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.state import USER, WINDOW
from stretto.queues.promises.kernels.steps import Steps, new_steps

#: Now. ``room_begin`` and ``room_end`` bound the time in which processors have become free that the plan does not use.
PROMISE_MOMENT = record(
    [
        ("now", np.float64),
        ("room_begin", np.float64),
        ("room_end", np.float64),
        ("free", np.int64),
        ("num_arrived", np.int64),
        ("num_running", np.int64),
        ("num_waiting", np.int64),
        ("num_planned", np.int64),
        ("num_ended", np.int64),
        ("num_tests", np.int64),
        ("num_refused", np.int64),
        ("num_forced", np.int64),
        ("num_raised", np.int64),
    ]
)


class PromiseState(NamedTuple):
    """n jobs, U users."""

    moment: np.ndarray  # [1] PROMISE_MOMENT
    slack: np.ndarray  # [n] seconds; inf = no promise
    wait_share: np.ndarray  # [n] of the wait that is planned at submission, added to the slack
    start: np.ndarray  # [n] -1 = not yet
    expected: np.ndarray  # [n] when a job that runs is expected to end
    due: np.ndarray  # [n] the promised latest start, inf = none
    latest: np.ndarray  # [n] what plans must meet: the promise, or where that is out of reach, the plan of that moment
    planned: np.ndarray  # [n] planned start of a waiting job, inf = not in the plan
    first_planned: np.ndarray  # [n] planned start at submission
    key: np.ndarray  # [n] of a waiting job: the lowest comes first
    length: np.ndarray  # [n] how long a job is believed to run, where an order or a reservation asks for it
    refused_at: np.ndarray  # [n] jobs that had ended when a start was last refused, -1 = never
    running: np.ndarray  # [n] by expected end
    waiting: np.ndarray  # [n] by submission
    plan: np.ndarray  # [n] waiting jobs with a promise, by planned start
    trial: np.ndarray  # [n] scratch: an order in which to plan
    trial_start: np.ndarray  # [n] scratch: planned starts
    steps: Steps  # of what runs and what is planned
    trial_steps: Steps  # scratch
    user: np.ndarray  # [U+1] USER, the last for all
    past_run: np.ndarray  # [U, WINDOW] the users' last ended jobs, a ring
    past_ratio: np.ndarray  # [U, WINDOW]
    num_past: np.ndarray  # [U]


def new_promise_state(jobs: QueueArrays, num_procs: int, slack_s: np.ndarray, wait_share: np.ndarray) -> PromiseState:
    """Return the state before the first event."""
    n = len(jobs.submit)
    moment = np.zeros(1, PROMISE_MOMENT)
    moment["free"] = num_procs
    moment["room_begin"] = np.inf
    moment["room_end"] = -np.inf
    most = 2 * n + 4
    num_users = int(jobs.user.max()) + 1
    return PromiseState(
        moment=moment,
        slack=slack_s,
        wait_share=wait_share,
        start=np.full(n, -1.0),
        expected=np.full(n, np.inf),
        due=np.full(n, np.inf),
        latest=np.full(n, np.inf),
        planned=np.full(n, np.inf),
        first_planned=np.full(n, np.inf),
        key=np.zeros(n),
        length=jobs.estimate.astype(np.float64),
        refused_at=np.full(n, -1, np.int64),
        running=np.zeros(n, np.int64),
        waiting=np.zeros(n, np.int64),
        plan=np.zeros(n, np.int64),
        trial=np.zeros(n, np.int64),
        trial_start=np.zeros(n),
        steps=new_steps(most, num_procs),
        trial_steps=new_steps(most, num_procs),
        user=np.zeros(num_users + 1, USER),
        past_run=np.zeros((num_users, WINDOW)),
        past_ratio=np.zeros((num_users, WINDOW)),
        num_past=np.zeros(num_users, np.int64),
    )


def copied(state: PromiseState) -> PromiseState:
    """Return a state that goes its own way from here on."""
    steps, trial_steps = (Steps(*(array.copy() for array in part)) for part in (state.steps, state.trial_steps))
    own = {name: array.copy() for name, array in state._asdict().items() if not isinstance(array, Steps)}
    return PromiseState(**own, steps=steps, trial_steps=trial_steps)
