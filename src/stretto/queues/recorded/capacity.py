"""Usable processors over time, from what really ran at once while jobs waited; and stretches without any start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.trace import Trace
from stretto.queues.recorded.occupancy import Occupancy, known_waits

#: A window says something of the capacity only if jobs waited for at least this share of it.
_WAITED_SHARE = 0.5
#: Stretches without a start are outages from this length on.
OUTAGE_S = 3600.0


class Capacity(NamedTuple):
    """Steps of usable processors, and of what the whole machine has; S of them, the first at zero."""

    time_s: Floats  # [S]
    usable: Floats  # [S]
    full: Floats  # [S]


class Outage(NamedTuple):
    """A stretch in which nothing started though a job waited that the idle processors would have held."""

    begin_s: float
    end_s: float


def windowed_capacity(past: Occupancy, num_procs: int, window_s: float) -> Capacity:
    """Return what was usable in each window: the most that ran at once, where jobs waited; otherwise the machine.

    Peaks of less than a twentieth of the window are passed over: recorded starts and ends overlap a little. A window
    in which more ran than the machine is said to have counts with that. After the last recorded end, the whole machine
    is usable.
    """
    count = max(1, int(np.ceil(past.end_s / window_s)))
    begin: Floats = np.arange(count, dtype=np.float64) * window_s
    end: Floats = begin + window_s
    most = past.procs.mostly(begin, end)
    has_waiting = past.waiting.positive_s(begin, end) >= _WAITED_SHARE * window_s
    usable = np.where(has_waiting, np.maximum(most, 1.0), np.maximum(most, num_procs))
    whole = np.maximum(usable, num_procs)
    last = float(num_procs)
    return Capacity(np.append(begin, end[-1]), np.append(usable, last), np.append(whole, last))


def constant_capacity(num_procs: int) -> Capacity:
    """Return a machine that never changes."""
    procs = np.array([float(num_procs)])
    return Capacity(np.zeros(1), procs, procs)


def outages_of(trace: Trace, past: Occupancy, num_procs: int) -> list[Outage]:
    """Return the stretches of at least an hour in which nothing started though a job waited that would have fitted.

    A stretch ends with a start, and begins with the start before it, or with the first end after that from which on the
    idle processors would have held a job that waited to the end of the stretch.
    """
    known = known_waits(trace)
    if trace.wait_s is None or not np.any(known):
        return []
    submit = trace.submit_s[known]
    start = submit + trace.wait_s[known]
    starts = np.unique(start)
    begin = np.unique(np.concatenate((start, start + trace.run_s[known])))
    following = np.searchsorted(starts, begin, side="right")
    begin, following = begin[following < len(starts)], following[following < len(starts)]
    end = starts[following]
    is_long = end - begin >= OUTAGE_S
    begin, end = begin[is_long], end[is_long]
    idle = num_procs - past.procs.at(begin)
    could = _narrowest_throughout(begin, end, submit, start, trace.num_procs[known]) <= idle
    begin, end = begin[could], end[could]
    _, first = np.unique(end, return_index=True)  # of several begins the earliest
    return [Outage(*pair) for pair in zip(begin[first].tolist(), end[first].tolist(), strict=True)]


def _narrowest_throughout(begin: Floats, end: Floats, submit: Floats, start: Floats, procs: Ints) -> Floats:
    """Return the fewest processors of a job that waited throughout each stretch; infinite where none did."""
    first = np.searchsorted(begin, submit, side="left")
    beyond = np.searchsorted(end, start, side="right")
    waits = beyond > first
    first, beyond, procs = first[waits], beyond[waits], procs[waits]
    found = np.full(len(begin), np.inf)
    for width in np.unique(procs)[::-1].tolist():  # narrower jobs overwrite wider ones
        same = procs == width
        change = np.bincount(first[same], minlength=len(begin) + 1) - np.bincount(
            beyond[same], minlength=len(begin) + 1
        )
        found[np.cumsum(change)[:-1] > 0] = width
    return found


def with_outages(capacity: Capacity, outages: list[Outage]) -> Capacity:
    """Return a capacity of which nothing is usable during outages."""
    if not outages:
        return capacity
    begin = np.array([one.begin_s for one in outages])
    end = np.array([one.end_s for one in outages])
    time = np.unique(np.concatenate((capacity.time_s, begin, end)))
    place = np.searchsorted(capacity.time_s, time, side="right") - 1
    which = np.searchsorted(begin, time, side="right") - 1
    is_out = (which >= 0) & (time < end[np.maximum(which, 0)])
    return Capacity(time, np.where(is_out, 0.0, capacity.usable[place]), np.where(is_out, 0.0, capacity.full[place]))
