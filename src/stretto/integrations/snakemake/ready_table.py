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

    def select(
        self,
        rank: Floats,
        available: Mapping[str, float],
        duration_s: Floats | None = None,
        running: Sequence[tuple[float, Floats]] = (),
    ) -> list[int]:
        """Return rows of jobs that fit together.

        Jobs are started in order until one does not fit. It gets a reservation for the moment at which it is expected
        to fit; others start only if they are expected to have ended by then, or if they fit beside it.

        Parameters
        ----------
        duration_s
            Expected seconds by row.
        running
            Expected seconds until each running job ends, and what it holds. Without them there is no reservation.
        """
        free = np.array([float(available[name]) for name in self.resources])
        is_open, chosen = self.is_ready.copy(), list[int]()
        held = None
        while held is None:
            rows = self._first(is_open & self._may_fit_units(free), rank, _FIRST_ROUND)
            for row in rows.tolist():
                if bool(np.any(self.ask(row) > free)):
                    held = row
                    break
                is_open[row] = False
                free = free - self.needs[row]
                chosen.append(row)
            if len(rows) == 0:
                return chosen
        is_open[held] = False
        if running and duration_s is not None:
            ends = [*running, *((float(duration_s[row]), self.needs[row]) for row in chosen)]
            window_s, room = reservation(self.needs[held], free, ends)
            return chosen + self._beside(rank, free, is_open, duration_s <= window_s, room)
        return chosen + self._beside(rank, free, is_open, np.ones(len(is_open), dtype=bool), free)

    def _beside(
        self, rank: Floats, free: Floats, is_open: NDArray[np.bool_], is_short: NDArray[np.bool_], room: Floats
    ) -> list[int]:
        """Return the rows that start in front of a job that does not fit: short ones, and what leaves it room."""
        chosen: list[int] = []
        num_asked, size = 0, _FIRST_ROUND
        while num_asked <= MAX_ASKED or not chosen:
            leaves_room = ~np.any(self.needs > room, axis=1)
            rows = self._first(is_open & self._may_fit(free) & (is_short | leaves_room), rank, size)
            if len(rows) == 0:
                break
            for row in rows.tolist():
                is_open[row] = False
                num_asked += bool(np.isnan(self.needs[row, 0]))
                needs = self.ask(row)
                if bool(np.all(needs <= free)) and (is_short[row] or bool(np.all(needs <= room))):
                    free = free - needs
                    room = room if is_short[row] else room - needs
                    chosen.append(row)
                    break  # what may fit is another set now
            else:
                size *= 4
        return chosen

    def _may_fit_units(self, free: Floats) -> NDArray[np.bool_]:
        """Return all rows, or none where there is no core, node or job left."""
        return np.full(len(self.jobs), all(free[place] >= 1 for place in self._units))

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


def reservation(needs: Floats, free: Floats, ends: Sequence[tuple[float, Floats]]) -> tuple[float, Floats]:
    """Return in how many seconds something is expected to fit, and what is free beside it then.

    Parameters
    ----------
    ends
        Seconds until each running job ends, and what it holds.
    """
    wait_s = 0.0
    for end_s, held in sorted(ends, key=lambda item: item[0]):
        if bool(np.all(needs <= free)):
            break
        free, wait_s = free + held, max(end_s, 0.0)
    return wait_s, np.maximum(free - needs, 0.0)
