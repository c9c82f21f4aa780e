"""A live queue whose starts are predicted: what runs and waits now, and the jobs that have ended."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.promises.queue import GIVEN
from stretto.queues.view import QueueView
from stretto.queues.when.known import FutureRules, KnownQueue

#: The key of jobs whose priority is not known: behind all others, in order of submission.
_LAST = 1e18


def live_queue(view: QueueView, priority: Mapping[int, float]) -> tuple[KnownQueue, NDArray[np.int64]]:
    """Return a live queue, and the number of each of its jobs.

    Jobs that wait for something else than their turn, or do not fit the machine, are left out.

    Parameters
    ----------
    priority
        Of jobs that wait, by number; the highest comes first. Jobs that may come are put behind them.
    """
    is_open = np.isnan(view.end_s)
    waits = np.isnan(view.start_s)
    kept = (view.procs <= view.num_procs) & ~(waits & ~(is_open & view.is_ready))
    if not np.any(kept & waits):
        raise InvalidInput("no job waits for its turn", field="job")
    rows = np.flatnonzero(kept)
    submit = view.submit_s[rows]
    start = np.where(np.isnan(view.start_s[rows]), np.inf, np.maximum(view.start_s[rows], submit))
    end = np.where(np.isnan(view.end_s[rows]), np.inf, np.maximum(view.end_s[rows], start))
    estimate = np.maximum(1.0, view.estimate_s[rows])
    with np.errstate(invalid="ignore"):
        run = np.where(np.isfinite(end), np.maximum(1.0, end - start), estimate)
    trace = Trace.of(submit, run, view.procs[rows], np.maximum(estimate, run), user=view.user[rows], name="live queue")
    key = np.array([-priority.get(int(number), -_LAST) for number in view.job_id[rows]])
    jobs = trace.arrays()
    queue = KnownQueue(trace, jobs, view.num_procs, start, end, FutureRules(GIVEN), given=key)
    return queue, view.job_id[rows]
