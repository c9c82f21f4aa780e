"""Sort two arrays by the first, in place."""

from __future__ import annotations

from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def sift(times, values, hole, count):
    """Let the pair at ``hole`` sink in a heap with the greatest at the top."""
    time = times[hole]
    value = values[hole]
    child = 2 * hole + 1
    while child < count:
        if child + 1 < count and times[child + 1] > times[child]:
            child += 1
        if times[child] <= time:
            break
        times[hole] = times[child]
        values[hole] = values[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    values[hole] = value


@njit(cache=True, nogil=True)
def sort_pairs(times, values, count):
    """Sort the first ``count`` pairs by time; the order of equal times is not defined."""
    for hole in range(count // 2 - 1, -1, -1):
        sift(times, values, hole, count)
    for last in range(count - 1, 0, -1):
        times[0], times[last] = times[last], times[0]
        values[0], values[last] = values[last], values[0]
        sift(times, values, 0, last)
