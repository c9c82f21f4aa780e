"""List scheduling with insertion: tasks in a given order, each into the best idle time."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import open_devices, ready_everywhere
from stretto.graphs.kernels.construct.slots import find_start, occupy, open_slots


@njit(cache=True, nogil=True)
def place_by_finish(p: Arrays, order: Ints, pinned: Ints, bias: Floats) -> tuple[Ints, Floats, Floats]:
    """Give each task the device on which its finish, plus the bias, is least.

    Parameters
    ----------
    order
        A topological order of the tasks.
    pinned
        The device of each task that has no choice, -1 for the others. Empty = all choose.
    bias
        Seconds added to the finish per task and device, [n, m]. Empty = none.

    Returns
    -------
    tuple
        Assignment, start and finish of each task.
    """
    m = p.device_class.shape[0]
    assign, start, finish, _, row = open_devices(p)
    slots = open_slots(m, order.shape[0])
    extra = np.zeros(m)
    # One long function: a call per task that takes the problem along costs more than its work.
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        if bias.shape[0] > 0:
            extra = bias[v]
        best = np.inf
        device = -1
        begin = 0.0
        if pinned.shape[0] > 0 and pinned[v] >= 0:
            device = pinned[v]
            begin = find_start(slots, device, row[device], p.duration[v, p.device_class[device]], np.inf)
        else:
            # Appending everywhere is cheap, and leaves fewer devices whose gaps could win.
            for d in range(m):
                at = max(row[d], slots.tail[d])
                score = at + p.duration[v, p.device_class[d]] + extra[d]
                if score < best:
                    best, device, begin = score, d, at
            for d in range(m):
                span = p.duration[v, p.device_class[d]]
                score = row[d] + span + extra[d]
                if row[d] >= slots.tail[d] or score > best or (score == best and d > device):
                    continue
                # Rounding may only widen the range of starts that are looked at.
                latest = (best - extra[d] - span) + 1e-9 * best
                at = find_start(slots, d, row[d], span, latest)
                score = at + span + extra[d]
                if score < best or (score == best and (d < device or (d == device and at < begin))):
                    best, device, begin = score, d, at
        assign[v] = device
        start[v] = begin
        finish[v] = begin + p.duration[v, p.device_class[device]]
        occupy(slots, device, begin, finish[v])
    return assign, start, finish


@njit(cache=True, nogil=True)
def place_by_start(p: Arrays, order: Ints) -> tuple[Ints, Floats, Floats]:
    """Give each task the device on which it starts first; of these, where it ends first."""
    m = p.device_class.shape[0]
    assign, start, finish, _, row = open_devices(p)
    slots = open_slots(m, order.shape[0])
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        begin = np.inf
        end = np.inf
        device = -1
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] > begin:
                continue
            at = find_start(slots, d, row[d], span, begin)
            if at < begin or (at == begin and at + span < end):
                begin, end, device = at, at + span, d
        assign[v] = device
        start[v] = begin
        finish[v] = end
        occupy(slots, device, begin, end)
    return assign, start, finish
