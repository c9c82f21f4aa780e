"""Expected ends of running jobs, put in order only when somebody asks.

Most jobs start and end while nobody waits; keeping them sorted all the time would cost more than the rest of a replay.
So a started job is noted, an ended one marked, and the sorted list is brought up to date when a
shadow time is computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.records import record

# Places of ``num``.
SIZE = 0  # of the sorted list
FRESH = 1  # jobs noted since
GONE = 2  # jobs marked since the list was last cleaned

#: A running job.
ENTRY = record([("end", np.float64), ("procs", np.int32), ("job", np.int32)])


class Expected(NamedTuple):
    """A list sorted by expected end, in which some jobs are gone, and the jobs that are not in it yet."""

    entry: np.ndarray  # [n] ENTRY, by end
    fresh: np.ndarray  # [n] ENTRY
    gone: np.ndarray  # [n] by job
    num: np.ndarray  # [3]


@njit(cache=True, nogil=True)
def new_expected(n):
    """Return room for n jobs, each of which starts once."""
    return Expected(np.empty(n, ENTRY), np.empty(n, ENTRY), np.zeros(n, np.bool_), np.zeros(3, np.int64))


@njit(cache=True, nogil=True)
def expect(x, job, end, procs):
    """Note a job that has started."""
    k = x.num[FRESH]
    x.fresh[k].end = end
    x.fresh[k].procs = procs
    x.fresh[k].job = job
    x.num[FRESH] = k + 1


@njit(cache=True, nogil=True)
def forget(x, job):
    """Mark a job that has ended."""
    x.gone[job] = True
    x.num[GONE] += 1


@njit(cache=True, nogil=True)
def put_in_order(x):
    """Bring the list up to date."""
    if x.num[GONE] > 4 + (x.num[SIZE] >> 2):
        clean(x)
    size = x.num[SIZE]
    for f in range(x.num[FRESH]):
        if not x.gone[x.fresh[f].job]:
            i = size
            while i > 0 and x.entry[i - 1].end > x.fresh[f].end:
                x.entry[i] = x.entry[i - 1]
                i -= 1
            x.entry[i] = x.fresh[f]
            size += 1
    x.num[SIZE] = size
    x.num[FRESH] = 0


@njit(cache=True, nogil=True)
def clean(x):
    """Drop the marked jobs from the list."""
    to = 0
    for k in range(x.num[SIZE]):
        if not x.gone[x.entry[k].job]:
            x.entry[to] = x.entry[k]
            to += 1
    x.num[SIZE] = to
    x.num[GONE] = 0


@njit(cache=True, nogil=True)
def procs_at(x, k):
    """Return the processors of place k; none where the job is gone."""
    return 0 if x.gone[x.entry[k].job] else x.entry[k].procs


@njit(cache=True, nogil=True)
def shadow_at(x, need, now, late):
    """Return when ``need`` more processors are expected to be free, and how many more than that then are.

    The list must be in order.

    Parameters
    ----------
    late
        When jobs are expected to end that should have ended by now.
    """
    size = x.num[SIZE]
    k = 0
    overdue = 0
    while k < size and x.entry[k].end <= now:
        overdue += procs_at(x, k)
        k += 1
    found = 0
    shadow = late
    while found < need:
        if overdue > 0 and (k == size or x.entry[k].end >= late):
            found += overdue
            overdue = 0
            shadow = late
        else:
            found += procs_at(x, k)
            shadow = x.entry[k].end
            k += 1
    while k < size and x.entry[k].end == shadow:
        found += procs_at(x, k)
        k += 1
    return shadow, found - need
