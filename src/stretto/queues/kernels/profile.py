"""Free processors over time, by what is running and what is reserved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.expected import SIZE, procs_at


class ProcsProfile(NamedTuple):
    """``free[k]`` processors from ``begin[k]`` to ``begin[k+1]``, the last for ever."""

    begin: np.ndarray
    free: np.ndarray
    size: np.ndarray  # [1]


@njit(cache=True, nogil=True)
def new_profile(n, num_procs):
    """Return a profile of an empty machine, with room for the steps of n jobs."""
    profile = ProcsProfile(np.empty(2 * n + 2), np.empty(2 * n + 2, np.int64), np.ones(1, np.int64))
    profile.begin[0] = 0.0
    profile.free[0] = num_procs
    return profile


@njit(cache=True, nogil=True)
def drop_past(profile, now):
    """Forget what lies before now."""
    k = 0
    while k + 1 < profile.size[0] and profile.begin[k + 1] <= now:
        k += 1
    if k > 0:
        for i in range(k, profile.size[0]):
            profile.begin[i - k] = profile.begin[i]
            profile.free[i - k] = profile.free[i]
        profile.size[0] -= k
    profile.begin[0] = now


@njit(cache=True, nogil=True)
def reset(profile, x, now, free):
    """Make the profile of running jobs alone, of which none is expected before now; their list must be in order."""
    profile.begin[0] = now
    profile.free[0] = free
    last = 0
    for k in range(x.num[SIZE]):
        procs = procs_at(x, k)
        if procs > 0:
            free += procs
            last += x.entry[k].end > profile.begin[last]
            profile.begin[last] = x.entry[k].end
            profile.free[last] = free
    profile.size[0] = last + 1


@njit(cache=True, nogil=True)
def reserve(profile, procs, span):
    """Take processors for a span as early as possible; return when."""
    return reserve_from(profile, procs, span, 0)


@njit(cache=True, nogil=True)
def reserve_from(profile, procs, span, k):
    """Take processors for a span as early as possible from step k on; return when."""
    size = profile.size[0]
    while True:
        while profile.free[k] < procs:
            k += 1
        end = profile.begin[k] + span
        j = k + 1
        while j < size and profile.begin[j] < end and profile.free[j] >= procs:
            j += 1
        if j == size or profile.begin[j] >= end:
            break
        k = j
    if not (j < size and profile.begin[j] == end):
        insert_step(profile, end, j)
    for i in range(k, j):
        profile.free[i] -= procs
    return profile.begin[k]


@njit(cache=True, nogil=True)
def insert_step(profile, at, k):
    """Make step k, at a time inside the segment before it."""
    for i in range(profile.size[0], k, -1):
        profile.begin[i] = profile.begin[i - 1]
        profile.free[i] = profile.free[i - 1]
    profile.begin[k] = at
    profile.free[k] = profile.free[k - 1]
    profile.size[0] += 1
