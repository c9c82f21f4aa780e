"""Futures with promises, or with orders that change with time; without promises the engine equals EASY.

With many waiting jobs, checking promises takes too long: the futures of a fixed order are then those of EASY, and what
was promised only bounds the answer. Orders that change with time get fewer futures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.trace import QueueArrays
from stretto.queues.forecasts.state import nothing_foreseen
from stretto.queues.kernels import keys
from stretto.queues.promises.kernels.state import PromiseState, copied
from stretto.queues.promises.kernels.steps import Steps, new_steps
from stretto.queues.promises.queue import BY_ESTIMATE, NO_RESERVATION, Preference, PromiseQueue, preference
from stretto.queues.when.futures import PlainFutures, Rows, outlooks_of
from stretto.queues.when.kernels.moment import Moment, draw_arrivals, draw_runs
from stretto.queues.when.kernels.promised import play_promised
from stretto.queues.when.known import KnownQueue
from stretto.queues.when.learner import Outlook
from stretto.queues.when.parameters import WHEN_PARAMETERS as P

#: Arrivals of a future with promises, each of which must be planned.
_MOST_ARRIVALS = 400
#: Plans that a pass of a future tests; more hardly change its starts, and each takes up to a millisecond.
_MOST_TESTS = 4
#: Futures that are always played.
_LEAST_FUTURES = 3
#: Arrays of the state with an entry per job, and what it is of a job that has not come.
_PER_JOB = {
    "slack": np.inf,
    "wait_share": 0.0,
    "start": -1.0,
    "expected": np.inf,
    "due": np.inf,
    "latest": np.inf,
    "planned": np.inf,
    "first_planned": np.inf,
    "key": 0.0,
    "length": 0.0,
    "refused_at": -1,
}


class PromisedFutures:
    """Plays the queue itself up to each moment, and futures of what is there then."""

    def __init__(self, queue: KnownQueue, seed: int, num_futures: int) -> None:
        self.queue, self.num_futures = queue, num_futures
        self._plain = PlainFutures(queue, seed, num_futures)
        self._state = seeded(seed, 1)
        rules = queue.rules
        reservation = BY_ESTIMATE if rules.easy or rules.promises else NO_RESERVATION
        more = {} if rules.rules is None else {"rules": rules.rules}
        self.order: Preference = preference(rules.code, reservation=reservation, **more)  # type: ignore[arg-type]
        self.in_futures = self.order._replace(max_tests=_MOST_TESTS)
        slack = np.inf if queue.slack_s is None else queue.slack_s
        self.promises = PromiseQueue.of(queue.jobs, queue.num_procs, slack)

    def outlooks(self, now_s: float, rows: Rows) -> list[Outlook]:
        """Return what is known of waiting jobs at a moment, no earlier than the last one."""
        self._plain.look(now_s, int(rows[0]) if len(rows) == 1 else -1)
        num_waiting = int(self._plain.moment.num[1])
        if num_waiting > P.promised_waiting and self.order.code < keys.FIRST_DYNAMIC:
            return self._plain.outlooks(now_s, rows)
        num_futures = self._num_futures(num_waiting)
        self.promises.advance(self.order, now_s)
        there = _Present(self.promises)
        wanted = np.searchsorted(there.rows, rows)
        m, known, forecasts = self._plain.moment, self._plain.known, self._plain.forecasts
        wait = np.zeros((1 + num_futures, len(rows)))
        for i in range(1 + num_futures):
            jobs, state = there.new_future()
            if i == 0:
                jobs.run[: there.num] = there.by_estimates()
            else:
                draw_runs(known, forecasts, m, now_s, self._state)
                arrived = self._plain.num_arrived
                draw_arrivals(known, forecasts, self.order.code, m, arrived, now_s, self._state)
                there.fill(jobs, state, m, now_s)
            play_promised(jobs, self.queue.num_procs, state, self.in_futures, nothing_foreseen(), wanted)
            start = state.start[wanted]
            wait[i] = np.maximum(0.0, np.where(start >= 0, start, state.moment["now"][0]) - now_s)
        share = float(self.queue.jobs.procs[there.rows[there.is_waiting]].sum()) / self.queue.num_procs
        return outlooks_of(self.queue, now_s, rows, wait, share)

    def due_s(self, row: int) -> float | None:
        """Return the latest start that a job was promised by the last moment; None where nothing is."""
        known = self._plain.due_s(row)
        if known is None and self.queue.due_s is not None:  # of a changed job: the queue itself must be played
            self.promises.advance(self.order, float(self.queue.jobs.submit[row]))
            known = float(self.promises.state.due[row])
        return known if known is not None and np.isfinite(known) else None

    def _num_futures(self, num_waiting: int) -> int:
        """Return how many futures are played: a long queue takes its square."""
        fewer = int(self.num_futures * (P.promised_waiting / max(1, num_waiting)) ** 2)
        return min(self.num_futures, max(_LEAST_FUTURES, fewer))


class _Present:
    """The jobs that run or wait in a queue with promises, as a queue of their own with room for arrivals."""

    def __init__(self, queue: PromiseQueue) -> None:
        state, moment = queue.state, queue.state.moment[0]
        running = state.running[: moment["num_running"]]
        waiting = state.waiting[: moment["num_waiting"]]
        self.rows: NDArray[np.int64] = np.sort(np.concatenate([running, waiting]))
        self.num = len(self.rows)
        self.is_waiting = state.start[self.rows] < 0
        self._queue = queue
        self._state = self._compact()

    def _compact(self) -> PromiseState:
        """Return the state with the present jobs only, and room for arrivals."""
        state, rows = self._queue.state, self.rows
        most = self.num + _MOST_ARRIVALS
        arrays = {}
        for name, value in _PER_JOB.items():
            old = getattr(state, name)
            arrays[name] = np.full(most, value, old.dtype)
            arrays[name][: self.num] = old[rows]
        for name, count in (("running", "num_running"), ("waiting", "num_waiting"), ("plan", "num_planned")):
            arrays[name] = np.zeros(most, np.int64)
            size = int(state.moment[count][0])
            arrays[name][:size] = np.searchsorted(rows, getattr(state, name)[:size])
        moment = state.moment.copy()
        moment["num_arrived"] = self.num
        size = int(state.steps.size[0])
        steps = new_steps(max(size, 2 * most) + 8, self._queue.num_procs)
        steps.begin[:size], steps.free[:size], steps.size[0] = state.steps.begin[:size], state.steps.free[:size], size
        scratch = Steps(*(array.copy() for array in steps))
        return state._replace(
            **arrays,
            moment=moment,
            trial=np.zeros(most, np.int64),
            trial_start=np.zeros(most),
            steps=steps,
            trial_steps=scratch,
        )

    def new_future(self) -> tuple[QueueArrays, PromiseState]:
        """Return jobs and a state that a future may change; nobody comes yet."""
        jobs = self._queue.jobs
        most = self.num + _MOST_ARRIVALS
        arrays = {}
        for name in ("submit", "run", "estimate", "procs", "user", "deadline"):
            old = getattr(jobs, name)
            arrays[name] = np.zeros(most, old.dtype)
            arrays[name][: self.num] = old[self.rows]
        arrays["submit"][self.num :] = np.inf
        return jobs._replace(**arrays), copied(self._state)

    def by_estimates(self) -> Floats:
        """Return the run times of the present jobs, if all run as long as is expected."""
        state, rows = self._queue.state, self.rows
        expected: Floats = np.where(
            self.is_waiting, self._queue.jobs.estimate[rows], state.expected[rows] - state.start[rows]
        )
        return expected

    def fill(self, jobs: QueueArrays, state: PromiseState, m: Moment, now_s: float) -> None:
        """Give the jobs of a future what was drawn for them."""
        there = int(m.num[0] + m.num[1])
        place = np.searchsorted(self.rows, m.job[:there])
        run = m.run[:there].copy()
        # A job that is asked for at its submission may already have started in the queue itself.
        has_started = state.start[place] >= 0
        run[has_started] += now_s - state.start[place][has_started]
        jobs.run[place] = run
        count = min(_MOST_ARRIVALS, int(m.num[2]))
        source, begin = slice(there, there + count), slice(self.num, self.num + count)
        past = m.job[source]
        whole = self._queue.jobs
        jobs.submit[begin] = now_s + m.submit[source]
        jobs.run[begin] = m.run[source]
        jobs.estimate[begin], jobs.procs[begin] = whole.estimate[past], whole.procs[past]
        jobs.user[begin] = whole.user[past]
        jobs.deadline[begin] = whole.deadline[past] + jobs.submit[begin] - whole.submit[past]
        state.slack[begin] = self._queue.state.slack[past]
        state.wait_share[begin] = self._queue.state.wait_share[past]
        state.length[begin] = whole.estimate[past]
