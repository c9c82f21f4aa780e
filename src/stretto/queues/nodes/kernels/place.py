"""Place all components of a job, and reserve nodes for the first job that has to wait."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import EPOCH, NUM_PLACES, NUM_RUNNING, PASS
from stretto.queues.nodes.kernels.choose import choose_nodes, measure, room_for


@njit(cache=True, nogil=True)
def apply(site, shapes, store, first, last, room, sign):
    """Take the entries of a store out of a room (-1), or give them back (+1)."""
    capacity, unit, base, exclusive = site.capacity, shapes.unit, shapes.base, shapes.exclusive
    node_of, tasks_of, shape_of = store.node, store.tasks, store.shape
    for i in range(first, last):
        node, shape = node_of[i], shape_of[i]
        for r in range(room.shape[1]):
            if exclusive[shape]:
                room[node, r] += sign * capacity[node, r]
            else:
                room[node, r] += sign * (base[shape, r] + tasks_of[i] * unit[shape, r])


@njit(cache=True, nogil=True)
def place(site, shapes, q, s, store, job, room, beside, span, prefers_busy):
    """Take a job's nodes out of the rooms and write them behind the store's last entry; return how many, 0 = none.

    Parameters
    ----------
    room, beside
        What is free, and what must be left as well; ``beside`` is ``room`` where nothing else counts.
    span
        The start and the estimated end.
    prefers_busy
        Whether nodes that could take the job's tasks now come last: others may use them until the job starts.
    """
    first = s.counts[NUM_PLACES]
    kind = q.kind[job]
    at = first
    is_plain = not prefers_busy and site.closed_from.shape[0] == 0
    is_single = is_plain and q.component_ptr[kind + 1] - q.component_ptr[kind] == 1
    for component in range(q.component_ptr[kind], q.component_ptr[kind + 1]):
        taken = 0
        for i in range(q.alternative_ptr[component], q.alternative_ptr[component + 1]):
            shape = q.alternative[i]
            if is_plain and s.failed[shape] == s.counts[EPOCH]:
                continue
            if is_plain and beside is not room and s.failed_beside[shape] == s.counts[PASS]:
                continue
            _mark_avoided(site, shapes, s, shape, prefers_busy)
            scratch = (s.fit, s.avoid)
            taken = choose_nodes(site, shapes, shape, room, beside, span, scratch, (store.node, store.tasks), at)
            if taken > 0:
                store.shape[at : at + taken] = shape
                break
            if is_single:
                if beside is room:
                    s.failed[shape] = s.counts[EPOCH]
                else:
                    s.failed_beside[shape] = s.counts[PASS]
        if taken == 0:
            apply(site, shapes, store, first, at, room, 1)
            if beside is not room:
                apply(site, shapes, store, first, at, beside, 1)
            return 0
        apply(site, shapes, store, at, at + taken, room, -1)
        if beside is not room:
            apply(site, shapes, store, at, at + taken, beside, -1)
        at += taken
    return at - first


@njit(cache=True, nogil=True)
def _mark_avoided(site, shapes, s, shape, prefers_busy):
    """Mark the nodes of a shape's set on which a task would fit now."""
    first = site.set_ptr[shapes.node_set[shape]]
    if not prefers_busy:
        s.avoid[: site.set_ptr[shapes.node_set[shape] + 1] - first] = 0
        return
    free, avoid, nodes = s.free, s.avoid, site.set_node
    full = site.capacity if shapes.exclusive[shape] else free
    unit, base = shapes.unit[shape], shapes.base[shape]
    for k in range(first, site.set_ptr[shapes.node_set[shape] + 1]):
        avoid[k - first] = room_for(free, full, unit, base, nodes[k], 1) > 0


@njit(cache=True, nogil=True)
def next_reopening(site, island, after):
    """Return when a closed node of an island becomes available next."""
    time = np.inf
    if site.closed_from.shape[0] > 0:
        for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
            node = site.island_node[k]
            for i in range(site.closed_ptr[node], site.closed_ptr[node + 1]):
                if site.closed_until[i] > after:
                    time = min(time, site.closed_until[i])
    return time


@njit(cache=True, nogil=True)
def reserve(site, shapes, q, s, store, out, job):
    """Find when a waiting job can start by estimates, and leave in ``later`` what is free then beside it.

    Walks through the estimated ends of the running jobs. Where the job is one shape and no node is ever closed, what
    fits is counted while nodes are given back, and nodes are chosen only when enough may be free.
    """
    island = q.island[q.kind[job]]
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        s.later[site.island_node[k]] = s.free[site.island_node[k]]
    shape, count, total = _counted(site, shapes, q, s, job)
    islands, kinds, running, expected, num_running = q.island, q.kind, s.running, s.expected, s.counts[NUM_RUNNING]
    first_place, num_places = out.first_place, out.num_places
    reopening = next_reopening(site, island, s.clock[0])
    i = 0
    while True:
        time = expected[i] if i < num_running else np.inf
        if reopening < time:
            time = reopening
        if time == np.inf:
            return np.inf
        may_fit = shape < 0
        while i < num_running and expected[i] == time:
            other = running[i]
            i += 1
            if islands[kinds[other]] == island:
                first, last = first_place[other], first_place[other] + num_places[other]
                if shape < 0:
                    apply(site, shapes, store, first, last, s.later, 1)
                else:
                    count, total, single = give_back(site, shapes, s, store, first, last, shape, count, total)
                    may_fit = may_fit or single
        if shape >= 0 and shapes.max_nodes[shape] > 1:
            may_fit = count >= shapes.min_nodes[shape] and total >= shapes.tasks[shape]
        span = (time, time + q.estimate[job])
        if may_fit and place(site, shapes, q, s, store, job, s.later, s.later, span, True) > 0:
            return time
        reopening = next_reopening(site, island, time) if time == reopening else reopening


@njit(cache=True, nogil=True)
def _counted(site, shapes, q, s, job):
    """Return the only shape of a job, the nodes of its set with room, and the tasks that fit; -1 where it has more."""
    component = q.component_ptr[q.kind[job]]
    alternative = q.alternative_ptr[component]
    is_one = q.component_ptr[q.kind[job] + 1] == component + 1 and q.alternative_ptr[component + 1] == alternative + 1
    if not is_one or site.closed_from.shape[0] > 0:
        return -1, 0, 0
    shape = q.alternative[alternative]
    count, total = measure(site, shapes, shape, s.later, s.later, (0.0, 0.0), s.fit)
    return shape, count, total


@njit(cache=True, nogil=True)
def give_back(site, shapes, s, store, first, last, shape, count, total):
    """Give a job's entries back to ``later``; return how much of a waiting shape fits then.

    That is the nodes of its set with room, the tasks that fit in all, and whether all of them fit on one node.
    """
    later, in_set = s.later, site.in_set[shapes.node_set[shape]]
    full = site.capacity if shapes.exclusive[shape] else later
    unit, base, most = shapes.unit[shape], shapes.base[shape], shapes.per_node[shape]
    has_all = False
    for i in range(first, last):
        node = store.node[i]
        before = room_for(later, full, unit, base, node, most)
        apply(site, shapes, store, i, i + 1, later, 1)
        if in_set[node]:
            after = room_for(later, full, unit, base, node, most)
            count += before == 0 and after > 0
            total += after - before
            has_all = has_all or after >= shapes.tasks[shape]
    return count, total, has_all
