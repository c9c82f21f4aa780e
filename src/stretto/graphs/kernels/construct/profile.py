"""What nodes have left over time: steps in order of time, each with the free amount of every resource.

The last step of a node has all that the node has, so a task that fits an empty node fits somewhere. The steps of a
node stand in a run of a pool that all nodes share; a run that is full moves to fresh room of twice the size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Floats, Longs

_FIRST_ROOM = 8


class Profile(NamedTuple):
    """The free amounts of m nodes; the steps of node d are ``first[d]`` to ``first[d] + length[d]``."""

    time: Floats  # pool of steps
    free: Floats  # [pool, R]
    first: Longs  # [m]
    length: Longs  # [m]
    room: Longs  # [m]
    used: Longs  # [1] pool entries taken so far
    last_start: Floats  # [m] when the latest task starts


@njit(cache=True, nogil=True)
def open_profile(capacity: Floats, num_tasks: int) -> Profile:
    """Return nodes that are empty from time zero, with room for so many tasks."""
    m, num_resources = capacity.shape
    # A task adds two steps; runs double, so all that were ever taken are less than four times the steps in the end.
    pool = 2 * _FIRST_ROOM * m + 8 * (num_tasks + 1)
    profile = Profile(
        np.empty(pool),
        np.empty((pool, num_resources)),
        np.arange(m) * _FIRST_ROOM,
        np.ones(m, dtype=np.int64),
        np.full(m, _FIRST_ROOM, dtype=np.int64),
        np.full(1, m * _FIRST_ROOM, dtype=np.int64),
        np.zeros(m),
    )
    for d in range(m):
        profile.time[profile.first[d]] = 0.0
        for r in range(num_resources):
            profile.free[profile.first[d], r] = capacity[d, r]
    return profile


@njit(cache=True, nogil=True, _nrt=False)
def find_fit(profile: Profile, d: int, ready: float, span: float, need: Floats, latest: float) -> float:
    """Return the earliest start on node d, not before ``ready``, at which the needs are free for the whole span.

    The search ends with any later time as soon as the start must be after ``latest``: the caller has a better node.
    """
    time, free = profile.time, profile.free
    k = _step_at(profile, d, ready)
    end = profile.first[d] + profile.length[d]
    num_resources = need.shape[0]
    at = ready
    while True:
        # Steps that hold too little push the start behind them.
        fits = True
        for r in range(num_resources):
            if free[k, r] < need[r]:
                fits = False
                break
        k += 1
        if not fits:
            at = time[k]  # the last step always fits
            if at > latest:
                return at
        elif k == end or time[k] >= at + span:
            return at


@njit(cache=True, nogil=True, _nrt=False)
def _step_at(profile: Profile, d: int, moment: float) -> int:
    """Return the step of node d in which a moment lies."""
    low = profile.first[d]
    high = low + profile.length[d]
    while high - low > 1:
        middle = (low + high) >> 1
        if profile.time[middle] <= moment:
            low = middle
        else:
            high = middle
    return int(low)


@njit(cache=True, nogil=True, _nrt=False)
def take(profile: Profile, d: int, start: float, finish: float, need: Floats) -> None:
    """Take the needs on node d from start to finish.

    A task of no length leaves a step of no length: later ones may begin or end at its moment, but not last over it
    where both do not fit.
    """
    profile.last_start[d] = max(profile.last_start[d], start)
    begin = _split(profile, d, start)
    end = _split(profile, d, finish) if finish > start else _insert_after(profile, d, begin, start)
    begin += profile.first[d]
    end += profile.first[d]
    for k in range(begin, end):
        for r in range(need.shape[0]):
            profile.free[k, r] -= need[r]


@njit(cache=True, nogil=True, _nrt=False)
def _split(profile: Profile, d: int, moment: float) -> int:
    """Make a step begin at a moment; return its place in the run of node d."""
    k = _step_at(profile, d, moment)
    if profile.time[k] == moment:
        return int(k - profile.first[d])
    return _insert_after(profile, d, k - profile.first[d], moment)


@njit(cache=True, nogil=True, _nrt=False)
def _insert_after(profile: Profile, d: int, place: int, moment: float) -> int:
    """Add a step behind a place in the run of node d, with the same free amounts; return its own place."""
    length = profile.length[d]
    if length == profile.room[d]:
        _move_run(profile, d)
    k = profile.first[d] + place
    num_resources = profile.free.shape[1]
    for j in range(profile.first[d] + length, k + 1, -1):
        profile.time[j] = profile.time[j - 1]
        for r in range(num_resources):
            profile.free[j, r] = profile.free[j - 1, r]
    profile.time[k + 1] = moment
    for r in range(num_resources):
        profile.free[k + 1, r] = profile.free[k, r]
    profile.length[d] = length + 1
    return int(place + 1)


@njit(cache=True, nogil=True, _nrt=False)
def _move_run(profile: Profile, d: int) -> None:
    """Give node d fresh room of twice the size."""
    old, new, length = profile.first[d], profile.used[0], profile.length[d]
    for j in range(length):
        profile.time[new + j] = profile.time[old + j]
        for r in range(profile.free.shape[1]):
            profile.free[new + j, r] = profile.free[old + j, r]
    profile.first[d] = new
    profile.room[d] = 2 * length
    profile.used[0] += 2 * length
