"""Free processors over time, as steps: what runs is taken until its expected end, what is planned for its estimate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit


class Steps(NamedTuple):
    """``free[k]`` processors from ``begin[k]`` to ``begin[k+1]``, the last for ever."""

    begin: np.ndarray  # [m]
    free: np.ndarray  # [m] int64
    size: np.ndarray  # [1] int64


@njit(cache=True, nogil=True)
def new_steps(most, num_procs):
    """Return an empty machine, with room for so many steps."""
    steps = Steps(np.zeros(most), np.zeros(most, np.int64), np.ones(1, np.int64))
    steps.free[0] = num_procs
    return steps


@njit(cache=True, nogil=True)
def step_at(steps, time):
    """Return the first step that begins at a time or later."""
    low = 0
    high = steps.size[0]
    while low < high:
        middle = (low + high) // 2
        if steps.begin[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def split(steps, time):
    """Return the step that begins at a time, which must not lie before the first; it is made where there is none."""
    k = step_at(steps, time)
    size = steps.size[0]
    if k < size and steps.begin[k] == time:
        return k
    for i in range(size, k, -1):
        steps.begin[i] = steps.begin[i - 1]
        steps.free[i] = steps.free[i - 1]
    steps.begin[k] = time
    steps.free[k] = steps.free[k - 1]
    steps.size[0] = size + 1
    return k


@njit(cache=True, nogil=True)
def merge(steps, k):
    """Drop a step that frees and takes nothing."""
    size = steps.size[0]
    if 0 < k < size and steps.free[k] == steps.free[k - 1]:
        for i in range(k + 1, size):
            steps.begin[i - 1] = steps.begin[i]
            steps.free[i - 1] = steps.free[i]
        steps.size[0] = size - 1


@njit(cache=True, nogil=True)
def add(steps, begin, end, procs):
    """Add free processors from one time to another; a negative number takes them."""
    if end <= begin:
        return
    first = split(steps, begin)
    last = split(steps, end)
    for k in range(first, last):
        steps.free[k] += procs
    merge(steps, last)
    merge(steps, first)


@njit(cache=True, nogil=True)
def drop_before(steps, now):
    """Forget what lies before now."""
    size = steps.size[0]
    k = 0
    while k + 1 < size and steps.begin[k + 1] <= now:
        k += 1
    if k > 0:
        for i in range(k, size):
            steps.begin[i - k] = steps.begin[i]
            steps.free[i - k] = steps.free[i]
        steps.size[0] = size - k
    steps.begin[0] = now


@njit(cache=True, nogil=True)
def copy_steps(source, target):
    """Make one profile equal to another."""
    size = source.size[0]
    for k in range(size):
        target.begin[k] = source.begin[k]
        target.free[k] = source.free[k]
    target.size[0] = size


@njit(cache=True, nogil=True)
def earliest(steps, first, procs, span):
    """Return the first step, from ``first`` on, at which processors are free for a span."""
    size = steps.size[0]
    k = first
    while True:
        while k < size - 1 and steps.free[k] < procs:
            k += 1
        end = steps.begin[k] + span
        at = k + 1
        while at < size and steps.begin[at] < end and steps.free[at] >= procs:
            at += 1
        if at >= size or steps.begin[at] >= end:
            return k
        k = at


@njit(cache=True, nogil=True)
def earlier(steps, first, procs, span, planned):
    """Return the earliest time before a planned one to which a job could move, the planned one where there is none.

    The job itself is in the profile. From its planned time on it has its room already, so only the steps before that
    time are looked at, from ``first`` on.
    """
    size = steps.size[0]
    k = first
    while k < size and steps.begin[k] < planned:
        if steps.free[k] < procs:
            k += 1
            continue
        end = min(planned, steps.begin[k] + span)
        at = k + 1
        while at < size and steps.begin[at] < end and steps.free[at] >= procs:
            at += 1
        if at >= size or steps.begin[at] >= end:
            return steps.begin[k]
        k = at
    return planned


#: Searches whose results are remembered; users submit the same job many times.
NUM_BOUNDS = 8


@njit(cache=True, nogil=True)
def no_bounds():
    """Return room for what searches found: processors, span, and the time before which there was no place."""
    bounds = np.empty((NUM_BOUNDS, 3))
    bounds[:] = np.inf
    return bounds


@njit(cache=True, nogil=True)
def bound_of(bounds, procs, span):
    """Return a time before which a job has no place: that of an earlier search for no more processors and time.

    It holds while processors are only taken from the profile.
    """
    bound = -np.inf
    for k in range(NUM_BOUNDS):
        if bounds[k, 0] <= procs and bounds[k, 1] <= span:
            bound = max(bound, bounds[k, 2])
    return bound


@njit(cache=True, nogil=True)
def note_bound(bounds, at, procs, span, time):
    """Remember the result of a search in some place."""
    k = at % NUM_BOUNDS
    bounds[k, 0] = procs
    bounds[k, 1] = span
    bounds[k, 2] = time


@njit(cache=True, nogil=True)
def most_free(steps, begin, end):
    """Return the most processors that are free at once between two times."""
    k = step_at(steps, begin)
    if k > 0 and (k == steps.size[0] or steps.begin[k] > begin):
        k -= 1
    most = 0
    while k < steps.size[0] and steps.begin[k] < end:
        most = max(most, steps.free[k])
        k += 1
    return most
