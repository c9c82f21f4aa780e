"""``stretto.when_slurm``: when the waiting jobs of a live Slurm queue will start."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from stretto.api.inputs import TraceLike, trace_of
from stretto.api.options.slurm import SlurmPlace
from stretto.api.when import ExpectedStart, WhenAnswer
from stretto.engines.slurm.client.client import QueueClient, SlurmClient
from stretto.engines.slurm.client.rest import RestClient
from stretto.engines.slurm.steer.queue_history import QueueHistory
from stretto.errors import InvalidInput
from stretto.queues.explain.names import Clock
from stretto.queues.when.change import RequestChange, changed_queue
from stretto.queues.when.live import live_queue
from stretto.queues.when.predict import LEARN_JOBS, LearnWatch, PredictedStart, StartPredictor

#: Ended jobs of a history that are looked at.
_MOST_ENDED = 20_000
_ASSUMED = (
    "futures follow the present priorities with EASY on the processors of all usable nodes, and jobs that come later "
    "are put behind those that wait"
)


def when_slurm(
    job: str | int | None = None,
    *,
    change: str | Mapping[str, object] | None = None,
    history: TraceLike | None = None,
    coverage: float = 0.9,
    learn: int = LEARN_JOBS,
    seed: int = 0,
    place: SlurmPlace | None = None,
    watch: LearnWatch | None = None,
) -> WhenAnswer:
    """Say when a job of the live queue starts, or every one that waits for its turn; times are Unix seconds.

    Parameters
    ----------
    job
        Its number; None = all that wait.
    history
        Past jobs, such as what ``sacct`` prints; without them, only the ended jobs that Slurm still remembers teach how
        long jobs run and how far predictions are off.
    change, coverage, learn, watch
        As for :func:`stretto.when`.
    place
        How Slurm is reached.

    Examples
    --------
    >>> import stretto
    >>> stretto.when_slurm(1204, change="color=red")
    Traceback (most recent call last):
    ...
    stretto.errors.InvalidInput: --if: 'color' cannot be changed; write limit=2h, procs=16, nodes=2 or partition=short
    """
    wanted = None if change is None else RequestChange.parse(change)
    if wanted is not None and job is None:
        raise InvalidInput("is for one job: name it", field="change")
    client = _client(place or SlurmPlace())
    memory = QueueHistory(_MOST_ENDED)
    if history is not None:
        memory.take_history(trace_of(history))
    memory.take_nodes(client.nodes())
    known = client.queue()
    memory.take_jobs(known)
    now_unix = time.time()
    view = memory.view(now_unix)
    queue, numbers = live_queue(view, {one.job_id: one.priority for one in known if one.is_pending})
    zero = now_unix - view.now_s
    now = max(view.now_s, float(queue.jobs.submit[-1]))
    waiting = queue.waiting_at(now)
    rows = waiting if job is None else _row_of(str(job), numbers, waiting)
    predictor = StartPredictor(queue, coverage=coverage, seed=seed)
    predictor.learn_past(now, at_submission=False, most=learn, watch=watch)
    users = {one.job_id: one.user for one in known}

    def told(said: PredictedStart) -> ExpectedStart:
        number = int(numbers[said.row])
        return _expected(said, number, users.get(number), int(queue.jobs.procs[said.row]), zero)

    starts = tuple(told(one) for one in predictor.ask(now, rows))
    instead = None
    if wanted is not None:
        instead = told(predictor.ask_instead(now, int(rows[0]), changed_queue(queue, int(rows[0]), wanted)))
    return WhenAnswer(starts, instead, None if wanted is None else str(wanted), (_ASSUMED,), ())


def _expected(said: PredictedStart, number: int, user: str | None, procs: int, zero_s: float) -> ExpectedStart:
    """Return a prediction in Unix time."""
    return ExpectedStart(
        job=number,
        row=said.row,
        user=user,
        procs=procs,
        submit_s=said.submit_s + zero_s,
        asked_s=said.moment_s + zero_s,
        promised_s=None,
        low_s=said.low_s + zero_s,
        likely_s=said.likely_s + zero_s,
        high_s=said.high_s + zero_s,
        coverage=said.coverage,
        method=said.method,
        num_learned=said.num_learned,
        num_futures=said.num_futures,
        replayed_s=None,
        clock=Clock(0.0),
    )


def _client(slurm: SlurmPlace) -> QueueClient:
    """Return the way to reach a live queue."""
    rest = slurm.rest_place()
    return RestClient(rest) if rest is not None else SlurmClient.of(slurm.conf_path())


def _row_of(job: str, numbers: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """Return the row of a waiting job."""
    found = [row for row in waiting.tolist() if str(numbers[row]) == job]
    if not found:
        some = ", ".join(str(numbers[row]) for row in waiting[:5].tolist())
        raise InvalidInput(f"job {job} does not wait for its turn; these do: {some or 'none'}", field="job")
    return np.array(found, np.int64)
