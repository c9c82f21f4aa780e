"""What ran and what waited at once, over time, from recorded submissions, waits and run times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.trace import Trace

#: Moments at which a stretch is looked at, and the share of them that its level may not be below.
_NUM_SAMPLES = 40
_NEARLY_ALL = 0.95


@dataclass(frozen=True, eq=False)
class LevelSeries:
    """A quantity that changes at times: ``value[i]`` holds from ``time_s[i]`` to ``time_s[i + 1]``; before, zero."""

    time_s: Floats  # [E] ascending
    value: Floats  # [E]

    @cached_property
    def _positive_s(self) -> Floats:
        """Seconds with a positive value up to each time."""
        lengths = np.where(self.value[:-1] > 0, np.diff(self.time_s), 0.0)
        return np.concatenate(([0.0], np.cumsum(lengths)))

    def at(self, time_s: Floats) -> Floats:
        """Return the value at given times."""
        place = np.searchsorted(self.time_s, time_s, side="right") - 1
        found: Floats = np.where(place >= 0, self.value[np.maximum(place, 0)], 0.0)
        return found

    def positive_s(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return for how long the value was positive between given times."""
        found: Floats = np.interp(end_s, self.time_s, self._positive_s) - np.interp(
            begin_s, self.time_s, self._positive_s
        )
        return found

    def mostly(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return the value that is exceeded for about a twentieth of each of several stretches."""
        inside = (np.arange(_NUM_SAMPLES) + 0.5) / _NUM_SAMPLES
        samples = self.at(begin_s[:, None] + inside * (end_s - begin_s)[:, None])
        found: Floats = np.quantile(samples, _NEARLY_ALL, axis=1, method="higher")
        return found


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Processors in use, and jobs that waited, as recorded."""

    procs: LevelSeries
    waiting: LevelSeries
    end_s: float


def known_waits(trace: Trace) -> NDArray[np.bool_]:
    """Say which jobs have a recorded wait; [n]."""
    if trace.wait_s is None:
        return np.zeros(trace.num_jobs, np.bool_)
    found: NDArray[np.bool_] = np.isfinite(trace.wait_s)
    return found


def recorded_occupancy(trace: Trace) -> Occupancy:
    """Return what ran and waited at once, of the jobs whose waits are known."""
    known = known_waits(trace)
    submit = trace.submit_s[known]
    wait = np.zeros(0) if trace.wait_s is None else trace.wait_s[known]
    start = submit + wait
    end = start + trace.run_s[known]
    waited = wait > 0
    return Occupancy(
        procs=_series(start, end, trace.num_procs[known].astype(np.float64)),
        waiting=_series(submit[waited], start[waited], np.ones(int(np.count_nonzero(waited)))),
        end_s=float(end.max()) if len(end) else 0.0,
    )


def _series(begin: Floats, end: Floats, amount: Floats) -> LevelSeries:
    """Return a sum over stretches; at one time, what ends goes before what begins comes."""
    time = np.concatenate((end, begin))
    if not len(time):
        return LevelSeries(np.zeros(1), np.zeros(1))
    order = np.argsort(time, kind="stable")
    return LevelSeries(time[order], np.cumsum(np.concatenate((-amount, amount))[order]))


def most_at_once(trace: Trace, group: Ints, num_groups: int, rows: NDArray[np.bool_]) -> Floats:
    """Return the most processors that the jobs of each group took at once; zero for groups without jobs.

    Parameters
    ----------
    group
        Of each job, from zero on; [n].
    rows
        Which jobs to look at; those with an unknown wait are passed over; [n].
    """
    rows = rows & known_waits(trace)
    most = np.zeros(num_groups)
    if trace.wait_s is None or not np.any(rows):
        return most
    start = trace.submit_s[rows] + trace.wait_s[rows]
    end = start + trace.run_s[rows]
    procs = trace.num_procs[rows].astype(np.float64)
    both = np.concatenate((group[rows], group[rows]))
    change = np.concatenate((-procs, procs))
    order = np.lexsort((change, np.concatenate((end, start)), both))
    load = np.cumsum(change[order])  # every group sums up to zero, so that the next one begins there
    ordered = both[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    most[ordered[first]] = np.maximum.reduceat(load, first)
    return most
