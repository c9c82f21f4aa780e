"""What the neighbours of a waiting job say about its run time.

Users submit in series: a hundred jobs that look alike, the first fifty of which run for days and the others crash at
once. The mean of what has ended says the same of all of them. Their place in the series says more: a job is mostly like
the one that was submitted just before or after it. So the nearest job on either side that has ended, or has run for
longer than expected, is asked, the less the farther it is. In a series whose beginning has been running for long, what
is far from the beginning is then tried first, which is how one finds out about the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.queue_forecast import BOUND

#: Jobs in a series after which a neighbour counts a third.
FAR = 2.0
#: Beyond so many nobody is asked.
REACH = 8
#: A job that has outlived what was expected is taken to run for so many times what it has run so far.
GROWTH = 2.0
#: Its neighbours are looked at anew when it has run so many times as long.
AGAIN = 1.5


class Series(NamedTuple):
    """Jobs of the same user, width and about the same estimate, as they were submitted; n jobs, U users."""

    before: np.ndarray  # [n] the one before in its series; -1 = none
    after: np.ndarray  # [n]
    due: np.ndarray  # [U] when jobs that run may say something new of those that wait


@njit(cache=True, nogil=True)
def new_series(q):
    """Link the jobs of each series."""
    n = q.submit.shape[0]
    before = np.full(n, -1, np.int32)
    after = np.full(n, -1, np.int32)
    octave = np.floor(np.log2(np.maximum(1.0, q.estimate))).astype(np.int64)
    series = (q.user.astype(np.int64) * 64 + octave) * (np.int64(q.procs.max()) + 1) + q.procs
    order = np.argsort(series, kind="mergesort")
    for i in range(1, n):
        if series[order[i]] == series[order[i - 1]]:
            before[order[i]] = order[i - 1]
            after[order[i - 1]] = order[i]
    return Series(before, after, np.full(q.user.max() + 1, np.inf))


@njit(cache=True, nogil=True)
def ask(q, link, due, job, num_arrived, now, start, believed):
    """Return what the nearest in one direction says, as run time over estimate, and how far it is; -1 = nothing."""
    at = link[job]
    for distance in range(REACH):
        if at < 0 or at >= num_arrived:
            break
        if start[at] >= 0.0:
            estimate = max(1.0, q.estimate[at])
            if start[at] + q.run[at] <= now:
                return q.run[at] / estimate, distance
            elapsed = now - start[at]
            if elapsed >= believed:
                due[q.user[job]] = min(due[q.user[job]], start[at] + AGAIN * elapsed)
                return min(1.0, GROWTH * elapsed / estimate), distance
            due[q.user[job]] = min(due[q.user[job]], start[at] + believed)
        at = link[at]
    return -1.0, REACH


@njit(cache=True, nogil=True)
def as_neighbours(q, series, near, job, num_arrived, now, start, believed, sharp):
    """Return two beliefs about a run time, drawn towards what the neighbours did; ``near`` is what the next counts."""
    estimate = max(1.0, q.estimate[job])
    total = 1.0
    log_believed = np.log(believed)
    log_sharp = np.log(sharp)
    for link in (series.before, series.after):
        ratio, distance = ask(q, link, series.due, job, num_arrived, now, start, believed)
        if ratio >= 0.0:
            weight = near * np.exp(-distance / FAR)
            total += weight
            log_believed += weight * np.log(max(1.0, ratio * estimate))
            log_sharp += weight * np.log(max(BOUND, ratio * estimate))
    return np.exp(log_believed / total), np.exp(log_sharp / total)
