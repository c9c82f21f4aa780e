"""The jobs of a run as arrays, so that a decision among very many ready jobs takes milliseconds.

Snakemake hands over all ready jobs at every decision. Only those that were not ready the last time are looked at; the
others are compared as arrays. What a job needs is asked for when it is its turn, since that is slow in Snakemake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats

#: Jobs whose needs are asked for in one decision once something was chosen.
MAX_ASKED = 20_000
#: Every job needs at least one of these.
_UNITS = ("_cores", "_nodes", "_job_count")
_FIRST_ROUND = 256


class ReadyTable:
    """Jobs by row with priority, rank and needs, and which of them are ready.

    Parameters
    ----------
    resources
        The names that Snakemake counts.
    index
        The row of each job; shared, it may grow (:meth:`add`).
    """

    def __init__(
        self, resources: Sequence[str], jobs: Sequence[Any], index: dict[Any, int], priority: Sequence[float]
    ) -> None:
        self.resources = tuple(resources)
        self.jobs, self.index = list(jobs), index
        self.priority: Floats = np.array(priority, dtype=np.float64)
        self.needs: Floats = np.full((len(self.jobs), len(self.resources)), np.nan)  # NaN: not asked for yet
        self.is_ready: NDArray[np.bool_] = np.zeros(len(self.jobs), dtype=bool)
        self._ready: set[Any] = set()
        self._units = [place for place, name in enumerate(self.resources) if name in _UNITS]

    def add(self, job: Any, priority: float) -> None:
        """Add a row for a job that is none of the graph's, such as a group."""
        self.index[job] = len(self.jobs)
        self.jobs.append(job)
        self.priority = np.append(self.priority, priority)
        self.needs = np.vstack((self.needs, np.full((1, len(self.resources)), np.nan)))
        self.is_ready = np.append(self.is_ready, False)

    def fresh(self, ready: Collection[Any]) -> list[Any]:
        """Note which jobs have left, and return those that have become ready, for :meth:`enter`."""
        now = ready if isinstance(ready, (set, frozenset)) else set(ready)
        gone = self._ready.difference(now)
        if gone:
            self.is_ready[[self.index[job] for job in gone]] = False
            self._ready -= gone
        return list(now.difference(self._ready))

    def enter(self, jobs: Sequence[Any]) -> list[int]:
        """Note that jobs have become ready, and return their rows; their needs are asked for anew."""
        rows = [self.index[job] for job in jobs]
        self.needs[rows] = np.nan
        self.is_ready[rows] = True
        self._ready.update(jobs)
        return rows

    def select(self, rank: Floats, available: Mapping[str, float]) -> list[int]:
        """Return rows of jobs that fit together: the first in order, then what fits beside it, and so on."""
        free = np.array([float(available[name]) for name in self.resources])
        is_open, chosen = self.is_ready.copy(), list[int]()
        num_asked, size = 0, _FIRST_ROUND
        while num_asked <= MAX_ASKED or not chosen:
            rows = self._first(is_open & self._may_fit(free), rank, size)
            if len(rows) == 0:
                break
            for row in rows.tolist():
                is_open[row] = False
                num_asked += bool(np.isnan(self.needs[row, 0]))
                if bool(np.all(self.ask(row) <= free)):
                    free = free - self.needs[row]
                    chosen.append(row)
                    break  # what may fit is another set now
            else:
                size *= 4
        return chosen

    def _may_fit(self, free: Floats) -> NDArray[np.bool_]:
        """Return which rows fit, or may fit since their needs are not known."""
        fits: NDArray[np.bool_] = ~np.any(self.needs > free, axis=1)
        if any(free[place] < 1 for place in self._units):
            fits &= ~np.isnan(self.needs[:, 0])
        return fits

    def _first(self, is_open: NDArray[np.bool_], rank: Floats, size: int) -> NDArray[np.int64]:
        """Return the first open rows: by priority, then by rank, then by row."""
        rows = np.flatnonzero(is_open)
        if len(rows) == 0:
            return rows
        priority = self.priority[rows]
        rows = rows[priority == priority.max()]
        if len(rows) > size:
            rows = rows[np.argpartition(-rank[rows], size)[:size]]
        first: NDArray[np.int64] = rows[np.lexsort((rows, -rank[rows]))]
        return first

    def ask(self, row: int) -> Floats:
        """Ask a job for its needs, once."""
        if np.isnan(self.needs[row, 0]):
            wanted = self.jobs[row].scheduler_resources
            self.needs[row] = [float(wanted.get(name, 0)) for name in self.resources]
        needs: Floats = self.needs[row]
        return needs
