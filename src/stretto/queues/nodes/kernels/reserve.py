"""When the first job that has to wait can start by estimates, on which nodes, and what it leaves there."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.queues.nodes.kernels.arrays import (
    AVAIL_SHAPE,
    CPUS,
    EPOCH,
    INNER,
    NUM_HELD,
    NUM_PLACES,
    NUM_RUNNING,
    RESERVATION,
    RESERVED_EPOCH,
    RESERVED_JOB,
    RESERVED_NUMBER,
)
from stretto.queues.nodes.kernels.choose import holds, measure, tasks_on
from stretto.queues.nodes.kernels.place import apply, change, place


@njit(**INNER)
def reserve(site, shapes, q, s, store, out, job, island):
    """Reserve nodes for a job: the earliest time by estimates, and what is left on its nodes from then on."""
    first = site.island_ptr[island]
    for i in range(first, first + s.island[NUM_HELD, island]):
        s.is_reserved[s.held[i]] = False
    s.island[NUM_HELD, island] = 0
    kind = q.kind[job]
    if site.closed_from.shape[0] == 0 and takes_equal_numbers(shapes, q, kind):
        time = reserve_equal(site, shapes, q, s, store, job, island)
    else:
        time = reserve_by_walk(site, shapes, q, s, store, out, job, island)
    s.reserved[island] = time
    s.counts[RESERVATION] += 1
    s.island[RESERVED_JOB, island] = job
    s.island[RESERVED_EPOCH, island] = s.island[EPOCH, island]
    s.island[RESERVED_NUMBER, island] = s.counts[RESERVATION]


@njit(**INNER)
def takes_equal_numbers(shapes, q, kind):
    """Say whether a kind has one component, and all its alternatives place equal numbers of tasks on nodes."""
    component = q.component_ptr[kind]
    if q.component_ptr[kind + 1] > component + 1:
        return False
    for i in range(q.alternative_ptr[component], q.alternative_ptr[component + 1]):
        if shapes.each[q.alternative[i]] == 0:
            return False
    return True


@njit(**INNER)
def hold(site, s, island, node):
    """Mark a node as reserved."""
    if not s.is_reserved[node]:
        s.is_reserved[node] = True
        s.held[site.island_ptr[island] + s.island[NUM_HELD, island]] = node
        s.island[NUM_HELD, island] += 1


@njit(**INNER)
def node_time(site, shapes, shape, s, store, node):
    """Return when a node holds its tasks of a shape by estimates: -inf = now."""
    need, exclusive = shapes.need[shape], shapes.exclusive[shape]
    if holds(s.free, site.capacity, need, exclusive, node):
        return -np.inf
    row, num = s.row, s.free.shape[0]
    for r in range(num):
        row[r] = s.free[r, node]
    slot = s.first[node]
    while slot >= 0:
        other = store.slot_shape[slot]
        is_enough = True
        for r in range(num):
            if shapes.exclusive[other]:
                row[r] += site.capacity[r, node]
            else:
                row[r] += shapes.base[other, r] + store.slot_tasks[slot] * shapes.unit[other, r]
            if row[r] < need[r] or (exclusive and row[r] < site.capacity[r, node]):
                is_enough = False
        if is_enough:
            return store.until[slot]
        slot = store.next[slot]
    return np.inf


@njit(**INNER)
def room_at(site, shapes, s, store, node, time, room):
    """Write to ``room`` what is free on a node when the jobs that end until a time by estimates have ended."""
    for r in range(room.shape[0]):
        room[r, node] = s.free[r, node]
    slot = s.first[node]
    while slot >= 0 and store.until[slot] <= time:
        change(site.capacity, shapes, store.slot_shape[slot], room, node, store.slot_tasks[slot], 1)
        slot = store.next[slot]


@njit(**INNER)
def reserve_equal(site, shapes, q, s, store, job, island):
    """Reserve nodes that take equal numbers of tasks: each is there at a time of its own, and the last decides.

    These times are kept while heads have the same shape, and computed anew for nodes on which something has changed. Of
    several shapes, the one that is there first is taken.
    """
    component = q.component_ptr[q.kind[job]]
    first, last = q.alternative_ptr[component], q.alternative_ptr[component + 1]
    best, time = q.alternative[first], np.inf
    for i in range(first, last):
        found = equal_time(site, shapes, s, store, q.alternative[i], island)
        if found < time:
            best, time = q.alternative[i], found
    if last - first > 1:
        equal_time(site, shapes, s, store, best, island)
    hold_equal(site, shapes, s, store, best, island, time)
    return time


@njit(**INNER)
def equal_time(site, shapes, s, store, shape, island):
    """Return when enough nodes hold their tasks of a shape, and leave in ``avail`` when each of them does."""
    first, last = site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]
    in_set, avail = site.in_set[shapes.node_set[shape]], s.avail
    is_new = s.island[AVAIL_SHAPE, island] != shape
    s.island[AVAIL_SHAPE, island] = shape
    for node in range(first, last):
        if in_set[node] and (is_new or np.isnan(avail[node])):
            avail[node] = node_time(site, shapes, shape, s, store, node)
    wanted = shapes.tasks[shape] // shapes.each[shape]
    return nth_time(first, last, in_set, avail, wanted, s.times)


@njit(**INNER)
def hold_equal(site, shapes, s, store, shape, island, time):
    """Reserve the nodes of a shape that are there at a time."""
    first, last = site.set_first[shapes.node_set[shape]], site.set_last[shapes.node_set[shape]]
    in_set, avail = site.in_set[shapes.node_set[shape]], s.avail
    wanted = shapes.tasks[shape] // shapes.each[shape]
    if wanted == 1:
        best = -1
        for node in range(first, last):
            if in_set[node] and avail[node] <= time:
                room_at(site, shapes, s, store, node, time, s.beside)
                if best < 0 or (site.weight[node] == site.weight[best] and s.beside[CPUS, node] < s.beside[CPUS, best]):
                    best = node
        change(site.capacity, shapes, shape, s.beside, best, shapes.each[shape], -1)
        hold(site, s, island, best)
        return
    count = 0
    for phase in range(2):
        for node in range(first, last):
            if count == wanted:
                return
            if in_set[node] and avail[node] <= time and (avail[node] == -np.inf) == (phase == 1):
                room_at(site, shapes, s, store, node, time, s.beside)
                change(site.capacity, shapes, shape, s.beside, node, shapes.each[shape], -1)
                hold(site, s, island, node)
                count += 1


@njit(**INNER)
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
    return select(times, count, wanted - 1)


@njit(**INNER)
def select(values, count, wanted):
    """Return the value that would stand at a place if the first values were sorted; changes their order."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, k = low, high
        while i <= k:
            while values[i] < pivot:
                i += 1
            while values[k] > pivot:
                k -= 1
            if i <= k:
                values[i], values[k] = values[k], values[i]
                i += 1
                k -= 1
        if wanted <= k:
            high = k
        elif wanted >= i:
            low = i
        else:
            return values[wanted]
    return values[wanted]


@njit(**INNER)
def heap_of_ends(q, s, island):
    """Make a heap of the estimated ends of an island's running jobs; return its size."""
    size = 0
    for i in range(s.counts[NUM_RUNNING]):
        if q.island[q.kind[s.running[i]]] == island:
            push_timed(s.heap_time, s.heap_job, 0, size, s.expected[i], s.running[i])
            size += 1
    return size


@njit(**INNER)
def reserve_by_walk(site, shapes, q, s, store, out, job, island):
    """Walk through the estimated ends of the running jobs until the job fits.

    Where the job is one shape and no node is ever closed, what fits is counted while nodes are given back, and nodes
    are chosen only when enough may be free.
    """
    size = heap_of_ends(q, s, island)
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        for r in range(s.free.shape[0]):
            s.later[r, site.island_node[k]] = s.free[r, site.island_node[k]]
    kind = q.kind[job]
    shape = q.only_shape[kind] if site.closed_from.shape[0] == 0 else -1
    ask = (False, 0.0, 0.0, True)
    count, total = 0, 0
    if shape >= 0:
        count, total = measure(site, shapes, shape, s.later, s.beside, s.is_reserved, ask, s.fit)
        node_set, per_node = shapes.node_set[shape], shapes.per_node[shape]
        count_fits(site.in_set[node_set], s.fit, per_node, s.row)
        wanted, fewest, most = shapes.tasks[shape], shapes.min_nodes[shape], shapes.max_nodes[shape]
    else:
        wanted, fewest, most, per_node = 0, 0, 0, 0
    reopening = 0
    while reopening < site.reopening.shape[0] and site.reopening[reopening] <= s.clock[0]:
        reopening += 1
    while True:
        time = s.heap_time[0] if size > 0 else np.inf
        if reopening < site.reopening.shape[0] and site.reopening[reopening] <= time:
            time = site.reopening[reopening]
            reopening += 1
        if time == np.inf:
            return np.inf
        while size > 0 and s.heap_time[0] == time:
            other = s.heap_job[0]
            drop_timed(s.heap_time, s.heap_job, 0, size)
            size -= 1
            start, stop = out.first_place[other], out.first_place[other] + out.num_places[other]
            if shape < 0:
                apply(site, shapes, store, start, stop, s.later, 1)
            else:
                count, total = give_back(site, shapes, s, store, start, stop, shape, count, total)
        if shape >= 0 and (count < fewest or total < wanted or not is_enough(wanted, most, per_node, s.row)):
            continue
        taken, _ = place(site, shapes, q, s, store, kind, s.later, (False, time, time + q.estimate[job], True))
        if taken > 0:
            for k in range(s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken):
                node = store.node[k]
                for r in range(s.later.shape[0]):
                    s.beside[r, node] = s.later[r, node]
                hold(site, s, island, node)
            return time


@njit(**INNER)
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
            s.row[before] -= 1
            s.row[after] += 1
    return count, total


@njit(**INNER)
def count_fits(in_set, fit, per_node, num_fit):
    """Count the nodes of a set on which so many tasks fit."""
    for tasks in range(per_node + 1):
        num_fit[tasks] = 0
    for node in range(in_set.shape[0]):
        if in_set[node]:
            num_fit[fit[node]] += 1


@njit(**INNER)
def is_enough(wanted, nodes, per_node, num_fit):
    """Say whether so many nodes at most, the roomiest, hold the tasks that are wanted."""
    tasks = per_node
    while wanted > 0 and nodes > 0 and tasks > 0:
        used = min(nodes, num_fit[tasks])
        wanted -= used * tasks
        nodes -= used
        tasks -= 1
    return wanted <= 0
