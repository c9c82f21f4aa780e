"""Idle gaps of devices, kept so that an insertion finds one without walking the whole past.

Of a device that has run for long, only two things matter to a task that comes late: when it
is free for good (``tail``), and the gaps before that. The gaps stand in blocks of bounded
size, in order of time, and each block knows its longest gap: a search passes over a block
that has no gap long enough in one step, and finds the block to begin with by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Floats, Ints

BLOCK = 64
_HALF = BLOCK // 2
_FIRST_CAPACITY = 4
#: Lengths are rounded up by more than the error of the sum that decides whether a task fits.
_SLACK = 5e-16


class Slots(NamedTuple):
    """The idle time of m devices; gaps are half-open intervals of positive length."""

    tail: Floats  # [m] from here on the device is free
    start: Floats  # [B, BLOCK] gaps of each block, in order of time
    end: Floats  # [B, BLOCK]
    num_gaps: Ints  # [B] gaps in the block
    longest: Floats  # [B] no gap of the block is longer; -1 when it has none
    upper: Floats  # [B] no gap of the block ends later
    directory: Ints  # pool of block lists, one run per device, in order of time
    first: Ints  # [m] where the device's run begins in the directory
    length: Ints  # [m] blocks of the device
    capacity: Ints  # [m] room of its run
    used: Ints  # [2] blocks and directory entries taken so far


@njit(cache=True, nogil=True)
def open_slots(num_devices: int, num_tasks: int) -> Slots:
    """Return devices that are idle from time zero, with room for so many tasks."""
    # A placement adds at most one gap. A block fills up from half at least, then makes at most
    # two new ones: one behind it, and one more when it is halved later.
    blocks = 2 * (num_tasks // _HALF) + min(num_devices, num_tasks) + 2
    entries = _FIRST_CAPACITY * num_devices + 4 * blocks
    first = np.empty(num_devices, dtype=np.int32)
    for d in range(num_devices):
        first[d] = d * _FIRST_CAPACITY
    used = np.zeros(2, dtype=np.int32)
    used[1] = _FIRST_CAPACITY * num_devices
    return Slots(
        np.zeros(num_devices),
        np.empty((blocks, BLOCK)),
        np.empty((blocks, BLOCK)),
        np.zeros(blocks, dtype=np.int32),
        np.full(blocks, -1.0),
        np.zeros(blocks),
        np.empty(entries, dtype=np.int32),
        first,
        np.zeros(num_devices, dtype=np.int32),
        np.full(num_devices, _FIRST_CAPACITY, dtype=np.int32),
        used,
    )


@njit(cache=True, nogil=True)
def find_start(slots: Slots, d: int, ready: float, span: float, latest: float) -> float:
    """Return the earliest start on device d that is not before ``ready``.

    Gaps that begin after ``latest`` are not looked at: a caller that has a better device
    already passes the start that this one would have to beat, and gets a start past it.
    """
    tail = float(slots.tail[d])
    if ready >= tail:
        return ready
    for k in range(_first_block(slots, d, ready), slots.first[d] + slots.length[d]):
        b = slots.directory[k]
        if slots.longest[b] < span:
            continue
        for i in range(slots.num_gaps[b]):
            begin = float(slots.start[b, i])
            if begin > latest:
                return tail
            begin = max(begin, ready)
            if begin + span <= slots.end[b, i]:
                return begin
    return tail


@njit(cache=True, nogil=True)
def _first_block(slots: Slots, d: int, time: float) -> int:
    """Return the directory entry of the first block with a gap that may end at ``time`` or later."""
    low = slots.first[d]
    high = low + slots.length[d]
    while low < high:
        middle = (low + high) >> 1
        if slots.upper[slots.directory[middle]] < time:
            low = middle + 1
        else:
            high = middle
    return int(low)


@njit(cache=True, nogil=True)
def occupy(slots: Slots, d: int, start: float, finish: float) -> None:
    """Take the time from start to finish, which must be idle, on device d."""
    tail = slots.tail[d]
    if start >= tail:
        if start > tail:
            _append(slots, d, tail, start)
        slots.tail[d] = finish
        return
    for k in range(_first_block(slots, d, start), slots.first[d] + slots.length[d]):
        b = slots.directory[k]
        for i in range(slots.num_gaps[b]):
            if slots.start[b, i] <= start and finish <= slots.end[b, i]:
                _cut(slots, d, k, i, start, finish)
                return


@njit(cache=True, nogil=True)
def _cut(slots: Slots, d: int, k: int, i: int, start: float, finish: float) -> None:
    """Replace gap i of directory entry k by what is left of it before and after."""
    b = slots.directory[k]
    end = slots.end[b, i]
    if start > slots.start[b, i]:
        slots.end[b, i] = start
        if end > finish:
            _insert(slots, d, k, i + 1, finish, end)
    elif end > finish:
        slots.start[b, i] = finish
    else:
        for j in range(i, slots.num_gaps[b] - 1):
            slots.start[b, j] = slots.start[b, j + 1]
            slots.end[b, j] = slots.end[b, j + 1]
        slots.num_gaps[b] -= 1
    _measure(slots, b)


@njit(cache=True, nogil=True)
def _append(slots: Slots, d: int, start: float, end: float) -> None:
    """Add a gap behind all others; full blocks stay full, since most gaps come in this way."""
    k = slots.first[d] + slots.length[d] - 1
    if slots.length[d] == 0 or slots.num_gaps[slots.directory[k]] == BLOCK:
        k = _new_block(slots, d, k + 1)
    b = slots.directory[k]
    i = slots.num_gaps[b]
    slots.start[b, i] = start
    slots.end[b, i] = end
    slots.num_gaps[b] = i + 1
    slots.upper[b] = end
    slots.longest[b] = max(slots.longest[b], (end - start) + _SLACK * end)


@njit(cache=True, nogil=True)
def _insert(slots: Slots, d: int, k: int, i: int, start: float, end: float) -> None:
    """Add a gap at place i of directory entry k, halving the block when it is full."""
    b = slots.directory[k]
    if slots.num_gaps[b] == BLOCK:
        other = slots.directory[_new_block(slots, d, k + 1)]
        slots.start[other, :_HALF] = slots.start[b, _HALF:]
        slots.end[other, :_HALF] = slots.end[b, _HALF:]
        slots.num_gaps[other] = BLOCK - _HALF
        slots.num_gaps[b] = _HALF
        slots.upper[other] = slots.upper[b]
        slots.upper[b] = slots.end[b, _HALF - 1]
        if i > _HALF:
            _measure(slots, b)
            b = other
            i -= _HALF
        else:
            _measure(slots, other)
            slots.upper[b] = max(slots.upper[b], end)
    for j in range(slots.num_gaps[b], i, -1):
        slots.start[b, j] = slots.start[b, j - 1]
        slots.end[b, j] = slots.end[b, j - 1]
    slots.start[b, i] = start
    slots.end[b, i] = end
    slots.num_gaps[b] += 1
    _measure(slots, b)


@njit(cache=True, nogil=True)
def _measure(slots: Slots, b: int) -> None:
    """Find the block's longest gap anew."""
    longest = -1.0
    for i in range(slots.num_gaps[b]):
        end = slots.end[b, i]
        longest = max(longest, (end - slots.start[b, i]) + _SLACK * end)
    slots.longest[b] = longest


@njit(cache=True, nogil=True)
def _new_block(slots: Slots, d: int, k: int) -> int:
    """Put an empty block into the device's run at directory entry k; return where it stands."""
    length = slots.length[d]
    if length == slots.capacity[d]:
        # The run moves to fresh room of twice the size; what it leaves is not used again.
        first = slots.used[1]
        slots.used[1] += 2 * length
        for j in range(length):
            slots.directory[first + j] = slots.directory[slots.first[d] + j]
        k += first - slots.first[d]
        slots.first[d] = first
        slots.capacity[d] = 2 * length
    for j in range(slots.first[d] + length, k, -1):
        slots.directory[j] = slots.directory[j - 1]
    slots.directory[k] = slots.used[0]
    slots.used[0] += 1
    slots.length[d] = length + 1
    return int(k)
