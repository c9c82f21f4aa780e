"""Binary heaps inside slices of arrays, so that thousands of them share one allocation."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def push_int(heap: Ints, base: int, count: int, value: int) -> None:
    """Add a value to the min-heap ``heap[base : base + count]``."""
    hole = count
    while hole > 0:
        parent = (hole - 1) >> 1
        above = heap[base + parent]
        if above <= value:
            break
        heap[base + hole] = above
        hole = parent
    heap[base + hole] = value


@njit(cache=True, nogil=True)
def pop_int(heap: Ints, base: int, count: int) -> np.integer:
    """Remove and return the least value of the min-heap ``heap[base : base + count]``."""
    least: np.integer = heap[base]
    last = count - 1
    value = heap[base + last]
    hole = 0
    child = 1
    while child < last:
        if child + 1 < last and heap[base + child + 1] < heap[base + child]:
            child += 1
        below = heap[base + child]
        if value <= below:
            break
        heap[base + hole] = below
        hole = child
        child = 2 * hole + 1
    heap[base + hole] = value
    return least


@njit(cache=True, nogil=True)
def push_timed(times: Floats, keys: Ints, base: int, count: int, time: float, key: int) -> None:
    """Add ``(time, key)`` to the min-heap of ``count`` pairs that begins at ``base``."""
    hole = count
    while hole > 0:
        parent = (hole - 1) >> 1
        above = times[base + parent]
        if above < time or (above == time and keys[base + parent] <= key):
            break
        times[base + hole] = above
        keys[base + hole] = keys[base + parent]
        hole = parent
    times[base + hole] = time
    keys[base + hole] = key


@njit(cache=True, nogil=True)
def drop_timed(times: Floats, keys: Ints, base: int, count: int) -> None:
    """Remove the least pair, which stands at ``base``, from a heap of ``count`` pairs."""
    last = count - 1
    time = times[base + last]
    key = keys[base + last]
    hole = 0
    child = 1
    while child < last:
        if child + 1 < last:
            left, right = times[base + child], times[base + child + 1]
            if right < left or (right == left and keys[base + child + 1] < keys[base + child]):
                child += 1
        below = times[base + child]
        if time < below or (time == below and key <= keys[base + child]):
            break
        times[base + hole] = below
        keys[base + hole] = keys[base + child]
        hole = child
        child = 2 * hole + 1
    times[base + hole] = time
    keys[base + hole] = key
