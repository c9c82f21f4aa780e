"""When the first job that has to wait can start by estimates, on which nodes, and what it leaves there."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import (
    AVAIL_JOB,
    CPUS,
    EPOCH,
    NUM_FRESH,
    NUM_HELD,
    NUM_PLACES,
    NUM_SORTED,
    RESERVATION,
    RESERVED_EPOCH,
    RESERVED_JOB,
    RESERVED_NUMBER,
)
from stretto.queues.nodes.kernels.choose import holds, measure, tasks_on
from stretto.queues.nodes.kernels.place import apply, change, place


@njit(cache=True, nogil=True)
def reserve(site, shapes, q, s, store, out, job, island):
    """Reserve nodes for a job: the earliest time by estimates, and what is left on its nodes from then on."""
    first = site.island_ptr[island]
    for i in range(first, first + s.island[NUM_HELD, island]):
        s.is_reserved[s.held[i]] = False
    s.island[NUM_HELD, island] = 0
    shape = q.only_shape[q.kind[job]]
    if shape >= 0 and shapes.each[shape] > 0 and site.closed_from.shape[0] == 0:
        time = reserve_equal(site, shapes, s, store, job, shape, island)
    else:
        time = reserve_by_walk(site, shapes, q, s, store, out, job, island)
    s.reserved[island] = time
    s.counts[RESERVATION] += 1
    s.island[RESERVED_JOB, island] = job
    s.island[RESERVED_EPOCH, island] = s.island[EPOCH, island]
    s.island[RESERVED_NUMBER, island] = s.counts[RESERVATION]


@njit(cache=True, nogil=True)
def hold(site, s, island, node):
    """Mark a node as reserved."""
    if not s.is_reserved[node]:
        s.is_reserved[node] = True
        s.held[site.island_ptr[island] + s.island[NUM_HELD, island]] = node
        s.island[NUM_HELD, island] += 1


@njit(cache=True, nogil=True)
def node_time(site, shapes, shape, s, store, node):
    """Return when a node holds its tasks of a shape by estimates: -inf = now."""
    need, exclusive = shapes.need[shape], shapes.exclusive[shape]
    if holds(s.free, site.capacity, need, exclusive, node):
        return -np.inf
    row, num = s.row, s.free.shape[0]
    for r in range(num):
        row[r] = s.free[r, node]
    entry = s.first[node]
    while entry >= 0:
        other = store.shape[entry]
        is_enough = True
        for r in range(num):
            if shapes.exclusive[other]:
                row[r] += site.capacity[r, node]
            else:
                row[r] += shapes.base[other, r] + store.tasks[entry] * shapes.unit[other, r]
            if row[r] < need[r] or (exclusive and row[r] < site.capacity[r, node]):
                is_enough = False
        if is_enough:
            return store.until[entry]
        entry = store.next[entry]
    return np.inf


@njit(cache=True, nogil=True)
def room_at(site, shapes, s, store, node, time, room):
    """Write to ``room`` what is free on a node when the jobs that end until a time by estimates have ended."""
    for r in range(room.shape[0]):
        room[r, node] = s.free[r, node]
    entry = s.first[node]
    while entry >= 0 and store.until[entry] <= time:
        change(site.capacity, shapes, store.shape[entry], room, node, store.tasks[entry], 1)
        entry = store.next[entry]


@njit(cache=True, nogil=True)
def reserve_equal(site, shapes, s, store, job, shape, island):
    """Reserve nodes that take equal numbers of tasks: each is there at a time of its own, and the last decides.

    These times are kept while a job is the head, and computed anew for nodes on which something has changed.
    """
    first, last = site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]
    in_set, avail = site.in_set[shapes.node_set[shape]], s.avail
    is_new = s.island[AVAIL_JOB, island] != job
    s.island[AVAIL_JOB, island] = job
    for node in range(first, last):
        if in_set[node] and (is_new or np.isnan(avail[node])):
            avail[node] = node_time(site, shapes, shape, s, store, node)
    wanted = shapes.tasks[shape] // shapes.each[shape]
    time = nth_time(first, last, in_set, avail, wanted, s.times)
    if wanted == 1:
        best = -1
        for node in range(first, last):
            if in_set[node] and avail[node] <= time:
                room_at(site, shapes, s, store, node, time, s.beside)
                if best < 0 or (site.weight[node] == site.weight[best] and s.beside[CPUS, node] < s.beside[CPUS, best]):
                    best = node
        change(site.capacity, shapes, shape, s.beside, best, shapes.each[shape], -1)
        hold(site, s, island, best)
        return time
    count = 0
    for phase in range(2):
        for node in range(first, last):
            if count == wanted:
                return time
            if in_set[node] and avail[node] <= time and (avail[node] == -np.inf) == (phase == 1):
                room_at(site, shapes, s, store, node, time, s.beside)
                change(site.capacity, shapes, shape, s.beside, node, shapes.each[shape], -1)
                hold(site, s, island, node)
                count += 1
    return time


@njit(cache=True, nogil=True)
def nth_time(first, last, in_set, avail, wanted, times):
    """Return when so many nodes are there."""
    if wanted == 1:
        least = np.inf
        for node in range(first, last):
            if in_set[node] and avail[node] < least:
                least = avail[node]
        return least
    count = 0
    for node in range(first, last):
        if in_set[node]:
            times[count] = avail[node]
            count += 1
    return np.partition(times[:count], wanted - 1)[wanted - 1]


@njit(cache=True, nogil=True)
def sort_running(q, s, out):
    """Bring the list of running jobs by estimated end up to date."""
    num_fresh, num_sorted = s.counts[NUM_FRESH], s.counts[NUM_SORTED]
    kept = 0
    for i in range(num_sorted):
        if not s.is_over[s.running[i]]:
            s.running[kept] = s.running[i]
            s.expected[kept] = s.expected[i]
            kept += 1
    new = 0
    for i in range(num_fresh):
        if not s.is_over[s.fresh[i]]:
            s.fresh[new] = s.fresh[i]
            new += 1
    ends = np.empty(new)
    for i in range(new):
        ends[i] = out.start[s.fresh[i]] + q.estimate[s.fresh[i]]
    order = np.argsort(ends)
    total = kept + new
    at, i, k = total - 1, kept - 1, new - 1
    while k >= 0:  # merged from behind, in place
        if i >= 0 and s.expected[i] > ends[order[k]]:
            s.expected[at] = s.expected[i]
            s.running[at] = s.running[i]
            i -= 1
        else:
            s.expected[at] = ends[order[k]]
            s.running[at] = s.fresh[order[k]]
            k -= 1
        at -= 1
    s.counts[NUM_SORTED] = total
    s.counts[NUM_FRESH] = 0


@njit(cache=True, nogil=True)
def reserve_by_walk(site, shapes, q, s, store, out, job, island):
    """Walk through the estimated ends of the running jobs until the job fits.

    Where the job is one shape and no node is ever closed, what fits is counted while nodes are given back, and nodes
    are chosen only when enough may be free.
    """
    sort_running(q, s, out)
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        s.later[:, site.island_node[k]] = s.free[:, site.island_node[k]]
    kind = q.kind[job]
    shape = q.only_shape[kind] if site.closed_from.shape[0] == 0 else -1
    ask = (False, 0.0, 0.0, True)
    count, total = 0, 0
    if shape >= 0:
        count, total = measure(site, shapes, shape, s.later, s.beside, s.is_reserved, ask, s.fit)
    num_running = s.counts[NUM_SORTED]
    reopening = np.searchsorted(site.reopening, s.clock[0], side="right")
    i = 0
    while True:
        time = s.expected[i] if i < num_running else np.inf
        if reopening < site.reopening.shape[0] and site.reopening[reopening] <= time:
            time = site.reopening[reopening]
            reopening += 1
        if time == np.inf:
            return np.inf
        while i < num_running and s.expected[i] == time:
            other = s.running[i]
            i += 1
            if q.island[q.kind[other]] == island:
                start, stop = out.first_place[other], out.first_place[other] + out.num_places[other]
                if shape < 0:
                    apply(site, shapes, store, start, stop, s.later, 1)
                else:
                    count, total = give_back(site, shapes, s, store, start, stop, shape, count, total)
        if shape >= 0 and (count < shapes.min_nodes[shape] or total < shapes.tasks[shape]):
            continue
        taken, _ = place(site, shapes, q, s, store, kind, s.later, (False, time, time + q.estimate[job], True))
        if taken > 0:
            for k in range(s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken):
                node = store.node[k]
                s.beside[:, node] = s.later[:, node]
                hold(site, s, island, node)
            return time


@njit(cache=True, nogil=True)
def give_back(site, shapes, s, store, first, last, shape, count, total):
    """Give a job's entries back to ``later``; return the nodes with room for a shape, and the tasks that fit."""
    in_set, exclusive = site.in_set[shapes.node_set[shape]], shapes.exclusive[shape]
    unit, base, most = shapes.unit[shape], shapes.base[shape], shapes.per_node[shape]
    for i in range(first, last):
        node = store.node[i]
        before = tasks_on(s.later, site.capacity, unit, base, exclusive, node, most)
        change(site.capacity, shapes, store.shape[i], s.later, node, store.tasks[i], 1)
        if in_set[node]:
            after = tasks_on(s.later, site.capacity, unit, base, exclusive, node, most)
            count += before == 0 and after > 0
            total += after - before
    return count, total
