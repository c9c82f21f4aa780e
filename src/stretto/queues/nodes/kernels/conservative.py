"""Conservative backfilling on nodes: every waiting job has a reservation on certain nodes.

The plan is made anew at every pass: all waiting jobs, in order, each as early as running jobs (by their estimates) and
the jobs before it allow. It is only made as far as it matters now: behind the last job of a kind that fits into what is
free, nothing can start.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.keys import FIRST_DYNAMIC
from stretto.queues.nodes.kernels.arrays import BEGIN, END, HEAD, INNER, IS_FAILED, NUM_PLACES, UNSEEN
from stretto.queues.nodes.kernels.easy import count_alive, fails, seen, start_job
from stretto.queues.nodes.kernels.limits import is_throttled
from stretto.queues.nodes.kernels.place import apply, place
from stretto.queues.nodes.kernels.reserve import room_at
from stretto.queues.nodes.kernels.waiting import remove, resort


@njit(**INNER)
def plan_over(site, shapes, q, rules, s, store, out, island):
    """Start what the plan of an island starts now; return False where the store has no room for another job.

    The plan stands at the end of the store, from behind: nodes, tasks and shapes, the times from and until which they
    are taken, and in ``slot`` the next entry of the same node.
    """
    s.island[HEAD, island] = UNSEEN
    alive = count_alive(site, shapes, q, s, store, island)
    if alive == 0:
        seen(s, island)
        return True
    if rules.strategy >= FIRST_DYNAMIC:
        resort(q, rules, s, island)
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        s.planned[site.island_node[k]] = -1
    top = store.node.shape[0]
    i = s.island[BEGIN, island]
    while i < s.island[END, island] and alive > 0:
        job = s.waiting[i]
        kind = q.kind[job]
        if is_throttled(q, s, job):
            i += 1
            continue
        most = site.capacity.shape[1] * (q.component_ptr[kind + 1] - q.component_ptr[kind])
        if s.counts[NUM_PLACES] + 2 * most > top:
            return False
        is_alive = s.kind[IS_FAILED, kind] == 0
        time, taken = earliest(site, shapes, q, s, store, job, island)
        first = s.counts[NUM_PLACES]
        if taken > 0 and time == s.clock[0]:
            apply(site, shapes, store, first, first + taken, s.free, -1)
            start_job(q, s, store, out, job, taken)
            i = remove(q, s, island, i)
            alive -= 1
            continue
        for k in range(first, first + taken):
            top -= 1
            store.node[top], store.tasks[top], store.shape[top] = store.node[k], store.tasks[k], store.shape[k]
            store.since[top], store.until[top] = time, time + q.estimate[job]
            store.slot[top] = s.planned[store.node[k]]
            s.planned[store.node[k]] = top
        if is_alive:  # it may be of a kind of which none fits any more
            alive -= recheck(site, shapes, q, s, store, kind)
        i += 1
    seen(s, island)
    return True


@njit(**INNER)
def recheck(site, shapes, q, s, store, kind):
    """Note where a kind does not fit into what is free; return how many jobs that concerns."""
    taken, could = place(site, shapes, q, s, store, kind, s.free, (False, -np.inf, -np.inf, False))
    if taken > 0:
        apply(site, shapes, store, s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken, s.free, 1)
        return 0
    return fails(site, shapes, q, s, store, kind, could)


@njit(**INNER)
def earliest(site, shapes, q, s, store, job, island):
    """Find the earliest time at which a job fits into the plan; write its entries behind the store's last one."""
    time = s.clock[0]
    kind = q.kind[job]
    while time < np.inf:
        if s.kind[IS_FAILED, kind] == 0 or time > s.clock[0]:
            taken = fit_at(site, shapes, q, s, store, kind, island, time, time + q.estimate[job])
            if taken > 0:
                return time, taken
        time = next_time(site, s, store, island, time)
    return np.inf, 0


@njit(**INNER)
def next_time(site, s, store, island, after):
    """Return the next time at which the plan frees something: an estimated or planned end, or a reopening."""
    time = np.inf
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        slot = s.first[node]
        while slot >= 0:
            if store.until[slot] > after:
                time = min(time, store.until[slot])
                break
            slot = store.next[slot]
        entry = s.planned[node]
        while entry >= 0:
            if store.until[entry] > after:
                time = min(time, store.until[entry])
            entry = store.slot[entry]
    for i in range(site.reopening.shape[0]):
        if site.reopening[i] > after:
            return min(time, site.reopening[i])
    return time


@njit(**INNER)
def fit_at(site, shapes, q, s, store, kind, island, start, end):
    """Write the entries of a kind that runs from a start to an end; return how many, 0 = the plan has no room."""
    window_room(site, shapes, s, store, island, start, end)
    taken, _ = place(site, shapes, q, s, store, kind, s.later, (False, start, end, False))
    return taken


@njit(**INNER)
def window_room(site, shapes, s, store, island, start, end):
    """Write to ``later`` what stays free on every node of an island from a start to an end."""
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        room_at(site, shapes, s, store, node, start, s.later)
        if s.planned[node] < 0:
            continue
        for r in range(s.free.shape[0]):
            # Room can only shrink where a planned entry begins: look at the start and at those times.
            least = planned_room(site, shapes, s, store, node, r, start)
            moment = s.planned[node]
            while moment >= 0:
                if start < store.since[moment] < end:
                    least = min(least, planned_room(site, shapes, s, store, node, r, store.since[moment]))
                moment = store.slot[moment]
            s.later[r, node] = least


@njit(**INNER)
def planned_room(site, shapes, s, store, node, r, time):
    """Return what the plan leaves of a resource on a node at a time."""
    room = s.free[r, node]
    slot = s.first[node]
    while slot >= 0 and store.until[slot] <= time:
        room += amount(site, shapes, store.slot_shape[slot], store.slot_tasks[slot], node, r)
        slot = store.next[slot]
    entry = s.planned[node]
    while entry >= 0:
        if store.since[entry] <= time < store.until[entry]:
            room -= amount(site, shapes, store.shape[entry], store.tasks[entry], node, r)
        entry = store.slot[entry]
    return room


@njit(**INNER)
def amount(site, shapes, shape, tasks, node, r):
    """Return what some tasks of a shape take of a resource on a node."""
    if shapes.exclusive[shape]:
        return site.capacity[r, node]
    return shapes.base[shape, r] + tasks * shapes.unit[shape, r]
