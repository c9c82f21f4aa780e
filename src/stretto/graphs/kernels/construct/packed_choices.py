"""Choices on nodes that pack which weigh more than one time: two candidates, readers on trial, imaginary makespans.

As in ``packed``, tasks go only where ``room`` has room for them; a task that finds none ends the placing.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints
from stretto.graphs.kernels.construct.arrival import first_ready, ready_everywhere
from stretto.graphs.kernels.construct.enabling import last_message
from stretto.graphs.kernels.construct.imaginary import largest, smallest
from stretto.graphs.kernels.construct.lookahead import top_readers
from stretto.graphs.kernels.construct.packed_nodes import open_nodes, put, ready_with_room
from stretto.graphs.kernels.construct.profile import Profile, find_fit
from stretto.graphs.kernels.construct.room import Room, mask_full
from stretto.graphs.kernels.construct.rounds import release_readers


@njit(cache=True, nogil=True)
def pack_on_two(
    p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints, latency: float, inv_bandwidth: float
) -> tuple[Ints, Floats, Floats]:
    """Start each task on the node that has room for it first, or on the one that its last data comes from."""
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        opens = np.inf
        device = -1
        for d in range(row.shape[0]):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] == np.inf:
                continue
            at = find_fit(profile, d, profile.last_start[d], span, need[v], opens)
            if device < 0 or at < opens:
                opens, device = at, d
        begin = _behind_all(p, profile, need, row, v, device)
        near, _ = last_message(p, nodes.assign, nodes.finish, v, latency, inv_bandwidth)
        if near >= 0 and near != device and p.duration[v, p.device_class[near]] < np.inf and row[near] < np.inf:
            at = _behind_all(p, profile, need, row, v, near)
            if at < begin or (at == begin and near < device):
                begin, device = at, near
        put(p, nodes, v, device, begin)
    return nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True, _nrt=False)
def _behind_all(p: Arrays, profile: Profile, need: Floats, row: Floats, v: int, d: int) -> float:
    """Return when task v can start on node d, not before the tasks that the node has."""
    span = p.duration[v, p.device_class[d]]
    return float(find_fit(profile, d, max(row[d], profile.last_start[d]), span, need[v], np.inf))


@njit(cache=True, nogil=True)
def pack_with_lookahead(
    p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints, rank: Floats, max_readers: int
) -> tuple[Ints, Floats, Floats]:
    """Give each task the node after which the latest of its readers would finish first.

    Readers are tried one by one, each alone: on nodes they mostly fit side by side.
    """
    m = p.device_class.shape[0]
    nodes = open_nodes(p, need, capacity, room)
    profile, row, assign, finish = nodes.profile, nodes.row, nodes.assign, nodes.finish
    readers = np.empty(max_readers, dtype=np.int32)
    before = np.empty((max_readers, m))  # data of each reader from tasks that are placed
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        count = top_readers(p, v, rank, readers)
        for k in range(count):
            ready_everywhere(p, assign, finish, readers[k], before[k])
        best = np.inf
        begin = 0.0
        end = np.inf
        device = -1
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] == np.inf:
                continue
            at = find_fit(profile, d, row[d], span, need[v], np.inf)
            latest = at + span
            for k in range(count):
                latest = max(latest, _reader_ends(p, profile, need, v, d, at + span, readers[k], before[k]))
            if latest < best or (latest == best and at + span < end):
                best, begin, end, device = latest, at, at + span, d
        put(p, nodes, v, device, begin)
    return assign, nodes.start, finish


@njit(cache=True, nogil=True, _nrt=False)
def _reader_ends(
    p: Arrays, profile: Profile, need: Floats, v: int, source: int, done: float, w: int, before: Floats
) -> float:
    """Return the earliest finish of reader w when task v ends on a node at a time."""
    size = 0.0
    for e in range(p.in_ptr[w], p.in_ptr[w + 1]):
        if p.in_task[e] == v:
            size = max(size, p.in_size[e])
    best = np.inf
    for d in range(before.shape[0]):
        span = p.duration[w, p.device_class[d]]
        there = done
        if size > 0.0:
            there += p.latency[source, d] + size * p.inv_bandwidth[source, d]
        ready = max(before[d], there)
        if ready + span < best:
            best = min(best, find_fit(profile, d, ready, span, need[w], best - span) + span)
    return float(best)


@njit(cache=True, nogil=True)
def pack_by_imaginary_level(
    p: Arrays, need: Floats, capacity: Floats, room: Room, behind: Floats, num_slots: float
) -> tuple[Ints, Ints, Floats, Floats]:
    """Schedule all tasks by best imaginary level (``imaginary``); ``num_slots`` tasks can run at once."""
    n = p.release.shape[0]
    m = p.device_class.shape[0]
    limited = room.limit.shape[0] > 0
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    task = np.empty(n, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    makespan = np.empty(m)
    missing, fresh, num_fresh = first_ready(p)
    count = 0
    for i in range(n):
        for f in range(num_fresh):
            task[count] = fresh[f]
            count += 1
        crowd = max(count / num_slots - 1.0, 0.0)
        chosen = -1
        device = -1
        most = -np.inf
        for k in range(count):
            v = task[k]
            ready_everywhere(p, nodes.assign, nodes.finish, v, row)
            if limited and not mask_full(p, room, v, row, nodes.rated):
                return order, nodes.assign, nodes.start, nodes.finish
            num_able = 0
            for d in range(m):
                span = p.duration[v, p.device_class[d]]
                makespan[d] = np.inf
                if span < np.inf and row[d] < np.inf:
                    at = find_fit(profile, d, max(row[d], profile.last_start[d]), span, need[v], np.inf)
                    makespan[d] = at + (span + behind[v, d]) + span * crowd
                    num_able += 1
            value = largest(makespan) if count >= num_able else smallest(makespan, count)
            if value > most or (value == most and v < task[chosen]):
                chosen, most = k, value
                device = int(np.argmin(makespan))
        v = task[chosen]
        ready_everywhere(p, nodes.assign, nodes.finish, v, row)
        order[i] = v
        put(p, nodes, v, device, _behind_all(p, profile, need, row, v, device))
        count -= 1
        task[chosen] = task[count]
        num_fresh = release_readers(p, v, missing, fresh)
    return order, nodes.assign, nodes.start, nodes.finish
