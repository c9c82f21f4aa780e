"""Memory of devices while tasks are placed: residents that stay, the largest task, and objects that are alive.

Tasks are counted in the order in which they are placed, not by the times that they get: residents and the largest task
of a device are necessary conditions of any schedule, the objects alive are what a run in the order of placing would
hold. Devices that satisfy both are preferred to those that satisfy only the first; no others are taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Flags, Floats, Ints

#: What a device offers a task: no room, room beside residents and each other task, room beside what is alive, too.
NO_ROOM = 0
SOME_ROOM = 1
ENOUGH_ROOM = 2


class Room(NamedTuple):
    """Limits, needs and holdings in bytes; without limits (``limit`` empty) nothing is counted."""

    limit: Floats  # [m]
    resident: Floats  # [n]
    own: Floats  # [n] bytes of the task while it runs
    running: Floats  # [n] own bytes, outputs and inputs
    size: Floats  # [O] bytes of objects
    kept: Floats  # [m] residents so far
    most: Floats  # [m] the largest running task so far
    alive: Floats  # [m] objects that still have readers to place
    holds: Flags  # [O, m] 1 = the device holds a copy
    pending: Ints  # [O] readers that are not placed yet


@njit(cache=True, nogil=True, _nrt=False)
def rate_devices(p: Arrays, room: Room, v: int, rated: Flags) -> int:
    """Rate the devices that can run task v; return the best rating."""
    m = room.limit.shape[0]
    best = NO_ROOM
    for d in range(m):
        rated[d] = NO_ROOM
        if p.duration[v, p.device_class[d]] == np.inf:
            continue
        kept = room.kept[d] + room.resident[v]
        if kept + max(room.most[d], room.running[v]) > room.limit[d]:
            continue
        rated[d] = SOME_ROOM
        fresh = room.own[v]
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            fresh += room.size[o]
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            if room.holds[p.in_object[e], d] == 0:
                fresh += room.size[p.in_object[e]]
        if kept + room.alive[d] + fresh <= room.limit[d]:
            rated[d] = ENOUGH_ROOM
        best = max(best, rated[d])
    return best


@njit(cache=True, nogil=True, _nrt=False)
def mask_full(p: Arrays, room: Room, v: int, row: Floats, rated: Flags) -> bool:
    """Set the ready times of devices without room for task v to infinity; return whether any is left."""
    best = rate_devices(p, room, v, rated)
    for d in range(row.shape[0]):
        if rated[d] < best or best == NO_ROOM:
            row[d] = np.inf
    return bool(best > NO_ROOM)


@njit(cache=True, nogil=True, _nrt=False)
def hold(p: Arrays, room: Room, v: int, d: int) -> None:
    """Count task v on device d; objects whose last reader it is are let go everywhere."""
    room.kept[d] += room.resident[v]
    room.most[d] = max(room.most[d], room.running[v])
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        item = p.in_object[e]
        if room.holds[item, d] == 0:
            room.holds[item, d] = 1
            room.alive[d] += room.size[item]
        room.pending[item] -= 1
        if room.pending[item] == 0:
            for other in range(room.limit.shape[0]):
                if room.holds[item, other] == 1:
                    room.holds[item, other] = 0
                    room.alive[other] -= room.size[item]
    for item in range(p.out_ptr[v], p.out_ptr[v + 1]):
        if room.pending[item] > 0:
            room.holds[item, d] = 1
            room.alive[d] += room.size[item]


@njit(cache=True, nogil=True)
def in_turn_within(p: Arrays, room: Room, order: Ints) -> Ints:
    """Assign tasks, in order, to the next device in turn that can run them and has room; -1 where none has."""
    m = p.device_class.shape[0]
    assign = np.full(order.shape[0], -1, dtype=np.int32)
    rated = np.zeros(m, dtype=np.uint8)
    d = 0
    for v in order:
        best = rate_devices(p, room, v, rated)
        if best == NO_ROOM:
            return assign
        while rated[d] < best:
            d = (d + 1) % m
        assign[v] = d
        hold(p, room, v, d)
        d = (d + 1) % m
    return assign


@njit(cache=True, nogil=True)
def fill_in_turn(p: Arrays, room: Room, order: Ints, devices: Ints) -> Ints:
    """Assign tasks, in order, to the first of the devices that has room; -1 where none has."""
    assign = np.full(order.shape[0], -1, dtype=np.int32)
    rated = np.zeros(p.device_class.shape[0], dtype=np.uint8)
    for v in order:
        best = rate_devices(p, room, v, rated)
        if best == NO_ROOM:
            return assign
        for d in devices:
            if rated[d] == best:
                assign[v] = d
                break
        hold(p, room, v, assign[v])
    return assign


@njit(cache=True, nogil=True)
def tally(room: Room, assign: Ints, kept: Floats, most: Floats) -> bool:
    """Fill what each device keeps and its largest running task; return whether all are within their limits."""
    kept[:] = 0.0
    most[:] = 0.0
    for v in range(assign.shape[0]):
        kept[assign[v]] += room.resident[v]
        most[assign[v]] = max(most[assign[v]], room.running[v])
    for d in range(kept.shape[0]):
        if kept[d] + most[d] > room.limit[d]:
            return False
    return True
