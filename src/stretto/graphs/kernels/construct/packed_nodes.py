"""Nodes that pack while tasks are placed on them one by one: what they have left, in time and in memory.

Functions of the inner loops are compiled without reference counting (``_nrt=False``): with so many arrays in tuples,
counting takes as long as the rest. They may therefore not allocate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Flags, Floats, Ints
from stretto.graphs.kernels.construct.arrival import open_devices, ready_everywhere
from stretto.graphs.kernels.construct.profile import Profile, open_profile, take
from stretto.graphs.kernels.construct.room import Room, hold, mask_full


class PackedNodes(NamedTuple):
    """Tasks placed so far and what they leave; ``row`` and ``rated`` are of the task that is placed now."""

    need: Floats  # [n, R]
    room: Room
    profile: Profile
    assign: Ints  # [n] -1 for tasks not placed
    start: Floats  # [n]
    finish: Floats  # [n]
    row: Floats  # [m] when the task could start, were the node idle; inf without room
    rated: Flags  # [m] what memory offers the task


@njit(cache=True, nogil=True)
def open_nodes(p: Arrays, need: Floats, capacity: Floats, room: Room) -> PackedNodes:
    """Return empty nodes, and no task with one."""
    assign, start, finish, _, row = open_devices(p)
    assign[:] = -1
    rated = np.zeros(row.shape[0], dtype=np.uint8)
    return PackedNodes(need, room, open_profile(capacity, assign.shape[0]), assign, start, finish, row, rated)


@njit(cache=True, nogil=True, _nrt=False)
def ready_with_room(p: Arrays, nodes: PackedNodes, v: int) -> bool:
    """Fill ``row`` for task v; return whether the memory of any node has room for it."""
    ready_everywhere(p, nodes.assign, nodes.finish, v, nodes.row)
    return bool(nodes.room.limit.shape[0] == 0 or mask_full(p, nodes.room, v, nodes.row, nodes.rated))


@njit(cache=True, nogil=True, _nrt=False)
def put(p: Arrays, nodes: PackedNodes, v: int, d: int, begin: float) -> None:
    """Place task v on node d from a time on, and in its memory."""
    nodes.assign[v] = d
    nodes.start[v] = begin
    nodes.finish[v] = begin + p.duration[v, p.device_class[d]]
    take(nodes.profile, d, begin, nodes.finish[v], nodes.need[v])
    if nodes.room.limit.shape[0] > 0:
        hold(p, nodes.room, v, d)
