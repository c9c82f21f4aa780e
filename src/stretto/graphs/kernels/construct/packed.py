"""List scheduling on nodes that pack: tasks in a given order, each where and when enough is free for it.

Devices that run one task at a time take part as nodes with one slot; ``core/nodes/packing.py`` has the units. Where
memory is limited, tasks go only where ``room`` has room for them; a task that finds none ends the placing: it and all
tasks behind it have -1 for their device.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.core.kernels.shapes import Arrays, Flags, Floats, Ints, Words
from stretto.graphs.kernels.construct.appending import BY_DURATION, BY_IDLE, BY_START
from stretto.graphs.kernels.construct.arrival import first_ready, open_devices, ready_everywhere
from stretto.graphs.kernels.construct.packed_nodes import open_nodes, put, ready_with_room
from stretto.graphs.kernels.construct.profile import find_fit, open_profile, take
from stretto.graphs.kernels.construct.room import NO_ROOM, Room, rate_devices
from stretto.graphs.kernels.construct.rounds import ETF, SUFFERAGE, pick, release_readers


@njit(cache=True, nogil=True)
def pack_by_finish(
    p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints, pinned: Ints, bias: Floats
) -> tuple[Ints, Floats, Floats]:
    """Give each task the node on which its finish, plus the bias, is least; with insertion.

    The parameters are those of ``insertion.place_by_finish``; ties go to the lower index.
    """
    m = p.device_class.shape[0]
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    extra = np.zeros(m)
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        if bias.shape[0] > 0:
            extra = bias[v]
        best = np.inf
        device = -1
        begin = 0.0
        if pinned.shape[0] > 0 and pinned[v] >= 0 and row[pinned[v]] < np.inf:
            device = pinned[v]
            span = p.duration[v, p.device_class[device]]
            begin = find_fit(profile, device, row[device], span, need[v], np.inf)
        else:
            for d in range(m):
                span = p.duration[v, p.device_class[d]]
                if not row[d] + span + extra[d] < best:
                    continue
                # Rounding may only widen the range of starts that are looked at.
                latest = (best - extra[d] - span) + 1e-9 * best
                at = find_fit(profile, d, row[d], span, need[v], latest)
                score = at + span + extra[d]
                if score < best:
                    best, device, begin = score, d, at
        put(p, nodes, v, device, begin)
    return nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True)
def pack_by_start(p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints) -> tuple[Ints, Floats, Floats]:
    """Give each task the node on which it starts first; of these, where it ends first; with insertion."""
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        begin = np.inf
        end = np.inf
        device = -1
        for d in range(row.shape[0]):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] > begin:
                continue
            at = find_fit(profile, d, row[d], span, need[v], begin)
            if at < begin or (at == begin and at + span < end):
                begin, end, device = at, at + span, d
        put(p, nodes, v, device, begin)
    return nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True)
def pack_by_rule(
    p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints, rule: int
) -> tuple[Ints, Floats, Floats]:
    """Give each task the node that a rule of ``appending`` prefers, not before the tasks that the node has."""
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        best = np.inf
        begin = 0.0
        end = np.inf
        device = -1
        for d in range(row.shape[0]):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] == np.inf:
                continue
            opens = find_fit(profile, d, profile.last_start[d], span, need[v], np.inf)
            at = opens if row[d] <= opens else find_fit(profile, d, row[d], span, need[v], np.inf)
            score = at + span
            if rule == BY_START:
                score = at
            elif rule == BY_DURATION:
                score = span
            elif rule == BY_IDLE:
                score = opens
            if score < best or (score == best and at + span < end):
                best, begin, end, device = score, at, at + span, d
        put(p, nodes, v, device, begin)
    return nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True)
def pack_by_start_at_random(
    p: Arrays, need: Floats, capacity: Floats, room: Room, order: Ints, state: Words
) -> tuple[Ints, Floats, Floats]:
    """Give each task, in order, a node on which it starts first; equal ones are drawn at random."""
    nodes = open_nodes(p, need, capacity, room)
    profile, row = nodes.profile, nodes.row
    for v in order:
        if not ready_with_room(p, nodes, v):
            break
        best = np.inf
        device = -1
        ties = 0
        for d in range(row.shape[0]):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf or row[d] == np.inf or row[d] > best:
                continue
            at = find_fit(profile, d, max(row[d], profile.last_start[d]), span, need[v], best)
            if at < best:
                best, device, ties = at, d, 1
            elif at == best:
                ties += 1
                if below(state, ties) == 0:
                    device = d
        put(p, nodes, v, device, best)
    return nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True)
def pack_assigned(p: Arrays, need: Floats, capacity: Floats, order: Ints, assign: Ints) -> tuple[Floats, Floats]:
    """Return start and finish of each task when nodes are given and tasks start in order on each of them."""
    _, start, finish, _, row = open_devices(p)
    profile = open_profile(capacity, order.shape[0])
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        d = assign[v]
        span = p.duration[v, p.device_class[d]]
        start[v] = find_fit(profile, d, max(row[d], profile.last_start[d]), span, need[v], np.inf)
        finish[v] = start[v] + span
        take(profile, d, start[v], finish[v], need[v])
    return start, finish


@njit(cache=True, nogil=True)
def pack_in_rounds(
    p: Arrays, need: Floats, capacity: Floats, room: Room, rule: int, level: Floats
) -> tuple[Ints, Ints, Floats, Floats]:
    """Commit the best pair of ready task and node again and again, by a rule of ``rounds``."""
    n = p.release.shape[0]
    m = p.device_class.shape[0]
    nodes = open_nodes(p, need, capacity, room)
    profile, row, rated = nodes.profile, nodes.row, nodes.rated
    task = np.empty(n, dtype=np.int32)  # the ready tasks, and when they could start where
    begin = np.empty((min(n, 64), m))
    ready = np.empty((min(n, 64), m))
    score = np.empty((n, 3))
    where = np.empty(n, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    limited = room.limit.shape[0] > 0
    count = 0
    missing, fresh, num_fresh = first_ready(p)
    for i in range(n):
        if count + num_fresh > begin.shape[0]:
            begin = _grown(begin, 2 * (count + num_fresh))
            ready = _grown(ready, 2 * (count + num_fresh))
        for f in range(num_fresh):
            v = fresh[f]
            task[count] = v
            ready_everywhere(p, nodes.assign, nodes.finish, v, row)
            for d in range(m):
                ready[count, d] = row[d]
                span = p.duration[v, p.device_class[d]]
                begin[count, d] = np.inf
                if span < np.inf:
                    begin[count, d] = find_fit(profile, d, max(row[d], profile.last_start[d]), span, need[v], np.inf)
            if limited:
                rate_devices(p, room, v, rated)
            where[count] = _best_node(p, rule, v, begin[count], limited, rated, score[count])
            if where[count] < 0:
                return order, nodes.assign, nodes.start, nodes.finish
            count += 1
        k = pick(rule, count, task, score, level)
        v = task[k]
        d = where[k]
        order[i] = v
        put(p, nodes, v, d, begin[k, d])
        count -= 1
        if k != count:
            task[k], where[k] = task[count], where[count]
            begin[k], ready[k], score[k] = begin[count], ready[count], score[count]
        for j in range(count):
            u = task[j]
            span = p.duration[u, p.device_class[d]]
            if span == np.inf:
                continue
            begin[j, d] = find_fit(profile, d, max(ready[j, d], profile.last_start[d]), span, need[u], np.inf)
            if where[j] == d or rule == SUFFERAGE:
                if limited:
                    rate_devices(p, room, u, rated)
                where[j] = _best_node(p, rule, u, begin[j], limited, rated, score[j])
                if where[j] < 0:
                    return order, nodes.assign, nodes.start, nodes.finish
        num_fresh = release_readers(p, v, missing, fresh)
    return order, nodes.assign, nodes.start, nodes.finish


@njit(cache=True, nogil=True)
def _grown(table: Floats, room: int) -> Floats:
    """Copy a table into one with more rows."""
    larger = np.empty((room, table.shape[1]))
    larger[: table.shape[0]] = table
    return larger


@njit(cache=True, nogil=True)
def _best_node(p: Arrays, rule: int, v: int, begin: Floats, limited: bool, rated: Flags, score: Floats) -> int:
    """Fill best score, second best and finish on the best node; equal ones by finish, then index."""
    best = np.inf
    second = np.inf
    end = np.inf
    node = -1
    best_rating = rated.max() if limited else NO_ROOM
    if limited and best_rating == NO_ROOM:
        return node
    for d in range(begin.shape[0]):
        if begin[d] == np.inf or (limited and rated[d] < best_rating):
            continue
        finish = begin[d] + p.duration[v, p.device_class[d]]
        value = begin[d] if rule == ETF else finish
        if value < best or (value == best and finish < end):
            second = best
            best, end, node = value, finish, d
        elif value < second:
            second = value
    score[0] = best
    score[1] = second
    score[2] = end
    return node
