"""What all jobs cost under every candidate, of which only what can still change is computed again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.cost import USUAL, Cost


class Ledger:
    """One row per candidate.

    An entry is settled once the job's run time is known and the job has started: it stays as it is. The others depend
    on what is guessed, and on how long a job has waited by now.
    """

    def __init__(self, num_rows: int, num_jobs: int, cost: Cost = USUAL) -> None:
        self._of = cost.of
        self._cost = np.zeros((num_rows, num_jobs))
        self._open = [np.zeros(0, np.int64) for _ in range(num_rows)]
        self._num_seen = np.zeros(num_rows, np.int64)

    def update(
        self, row: int, begin: Floats, jobs: QueueArrays, is_known: NDArray[np.bool_], num_jobs: int, now: float
    ) -> None:
        """Compute what is open of the first jobs; ``begin`` is negative for one that waits, and it waits until now."""
        fresh = np.arange(self._num_seen[row], num_jobs)
        job = np.concatenate([self._open[row], fresh])
        since, run = begin[job], jobs.run[job]
        wait = np.where(since >= 0, np.minimum(since, now), now) - jobs.submit[job]
        self._cost[row, job] = self._of(np.maximum(wait, 0.0), run, jobs.procs[job])
        is_settled = is_known[job] & (since >= 0) & (since <= now)
        self._open[row] = job[~is_settled]
        self._num_seen[row] = max(num_jobs, self._num_seen[row])

    def give_up(self, row: int) -> None:
        """Let a row cost infinitely much from now on."""
        self._cost[row] = np.inf

    def forget(self, row: int) -> None:
        """Begin a row anew."""
        self._open[row], self._num_seen[row] = np.zeros(0, np.int64), 0

    def row(self, row: int) -> Floats:
        """Return what all jobs cost in one row."""
        part: Floats = self._cost[row]
        return part

    def rows(self, first: int, last: int) -> Floats:
        """Return what some jobs cost, of which all have been computed; [rows, jobs]."""
        part: Floats = self._cost[:, first:last]
        return part
