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
from stretto.queues.nodes.kernels.choose import choose_nodes
from stretto.queues.nodes.kernels.easy import count_alive, fails, has_room, seen, start_job
from stretto.queues.nodes.kernels.place import apply, change, place
from stretto.queues.nodes.kernels.waiting import is_throttled, remove, resort


@njit(**INNER)
def plan_over(site, shapes, q, rules, s, store, out, island):
    """Start what the plan of an island starts now; return False where the store has no room for another job."""
    s.island[HEAD, island] = UNSEEN
    alive = count_alive(site, shapes, q, s, store, island)
    if alive == 0:
        seen(s, island)
        return True
    if rules.strategy >= FIRST_DYNAMIC:
        resort(q, rules, s, island)
    # The plan: entries as in the store, with the times from and until which each holds, and the next of the same node.
    size = 64
    node, tasks, shape = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    follows, span = np.empty(size, np.int32), np.empty((2, size))
    planned = np.full(site.capacity.shape[1], -1)
    count = 0
    num_nodes = site.capacity.shape[1]
    picks = (np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32))
    i = s.island[BEGIN, island]
    while i < s.island[END, island] and alive > 0:
        job = s.waiting[i]
        kind = q.kind[job]
        if is_throttled(q, s, job):
            i += 1
            continue
        if not has_room(site, q, s, store, job):
            return False
        needed = count + num_nodes * (q.component_ptr[kind + 1] - q.component_ptr[kind])
        if needed > size:
            grown = 2 * needed
            node, tasks, shape = _longer(node, grown), _longer(tasks, grown), _longer(shape, grown)
            follows = _longer(follows, grown)
            wider = np.empty((2, grown))
            wider[:, :size] = span
            span, size = wider, grown
        plan = (node, tasks, shape, follows, span, planned)
        is_alive = s.kind[IS_FAILED, kind] == 0
        time, taken = earliest(site, shapes, q, s, store, out, job, island, plan, count, picks)
        if taken > 0 and time == s.clock[0]:
            for k in range(taken):
                at = s.counts[NUM_PLACES] + k
                store.node[at], store.tasks[at], store.shape[at] = node[count + k], tasks[count + k], shape[count + k]
                change(site.capacity, shapes, shape[count + k], s.free, node[count + k], tasks[count + k], -1)
            start_job(q, s, store, out, job, taken)
            i = remove(q, s, island, i)
            alive -= 1
            continue
        for k in range(count, count + taken):
            span[0, k], span[1, k] = time, time + q.estimate[job]
            follows[k] = planned[node[k]]
            planned[node[k]] = k
        count += taken
        if is_alive:  # it may be of a kind of which none fits any more
            less = recheck(site, shapes, q, s, store, kind)
            alive -= less if less > 0 else 0
        i += 1
    seen(s, island)
    return True


@njit(**INNER)
def _longer(values, size):
    longer = np.empty(size, values.dtype)
    longer[: values.shape[0]] = values
    return longer


@njit(**INNER)
def recheck(site, shapes, q, s, store, kind):
    """Note where a kind does not fit into what is free; return how many jobs that concerns."""
    taken, could = place(site, shapes, q, s, store, kind, s.free, (False, -np.inf, -np.inf, False))
    if taken > 0:
        apply(site, shapes, store, s.counts[NUM_PLACES], s.counts[NUM_PLACES] + taken, s.free, 1)
        return 0
    return fails(site, shapes, q, s, store, kind, could)


@njit(**INNER)
def earliest(site, shapes, q, s, store, out, job, island, plan, count, picks):
    """Find the earliest time at which a job fits into the plan; write its entries behind the plan's last one."""
    time = s.clock[0]
    kind = q.kind[job]
    while time < np.inf:
        if s.kind[IS_FAILED, kind] == 0 or time > s.clock[0]:
            taken = fit_at(site, shapes, q, s, store, kind, island, plan, count, picks, (time, q.estimate[job]))
            if taken > 0:
                return time, taken
        time = next_time(site, s, store, island, plan, time)
    return np.inf, 0


@njit(**INNER)
def next_time(site, s, store, island, plan, after):
    """Return the next time at which the plan frees something: an estimated or planned end, or a reopening."""
    time = np.inf
    follows, span, planned = plan[3], plan[4], plan[5]
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        entry = s.first[node]
        while entry >= 0:
            if store.until[entry] > after:
                time = min(time, store.until[entry])
                break
            entry = store.next[entry]
        entry = planned[node]
        while entry >= 0:
            if span[1, entry] > after:
                time = min(time, span[1, entry])
            entry = follows[entry]
    at = np.searchsorted(site.reopening, after, side="right")
    return min(time, site.reopening[at]) if at < site.reopening.shape[0] else time


@njit(**INNER)
def fit_at(site, shapes, q, s, store, kind, island, plan, count, picks, when):
    """Write the entries of a kind that starts at a time behind the plan's last one; return how many, 0 = no room."""
    time, length = when
    window_room(site, shapes, s, store, island, plan, time, time + length)
    node, tasks, shape = plan[0], plan[1], plan[2]
    at = count
    for component in range(q.component_ptr[kind], q.component_ptr[kind + 1]):
        taken = 0
        for i in range(q.alternative_ptr[component], q.alternative_ptr[component + 1]):
            taken, _ = choose_nodes(
                site, shapes, q.alternative[i], s.later, s.beside, s.is_reserved,
                (False, time, time + length, False), s.free, (s.fit, s.avoid), picks, 0,
            )  # fmt: skip
            if taken > 0:
                for k in range(taken):
                    node[at + k], tasks[at + k], shape[at + k] = picks[0][k], picks[1][k], q.alternative[i]
                    change(site.capacity, shapes, q.alternative[i], s.later, picks[0][k], picks[1][k], -1)
                break
        if taken == 0:
            return 0
        at += taken
    return at - count


@njit(**INNER)
def window_room(site, shapes, s, store, island, plan, start, end):
    """Write to ``later`` what stays free on every node of an island from a start to an end."""
    node_tasks, node_shape, follows, span, planned = plan[1], plan[2], plan[3], plan[4], plan[5]
    num = s.free.shape[0]
    for k in range(site.island_ptr[island], site.island_ptr[island + 1]):
        node = site.island_node[k]
        for r in range(num):
            s.later[r, node] = s.free[r, node]
        entry = s.first[node]
        while entry >= 0 and store.until[entry] <= start:
            change(site.capacity, shapes, store.slot_shape[entry], s.later, node, store.slot_tasks[entry], 1)
            entry = store.next[entry]
        if planned[node] < 0:
            continue
        for r in range(num):
            s.row[r] = s.later[r, node]
        # Room can only shrink where a planned entry begins: look at the start and at those times.
        moment = planned[node]
        least_at_start = True
        while moment >= 0 or least_at_start:
            time = start
            if not least_at_start:
                time = span[0, moment]
                moment = follows[moment]
                if time <= start or time >= end:
                    continue
            least_at_start = False
            for r in range(num):
                room = s.row[r]
                entry = s.first[node]
                while entry >= 0 and store.until[entry] <= time:
                    if store.until[entry] > start:
                        room += amount(site, shapes, store.slot_shape[entry], store.slot_tasks[entry], node, r)
                    entry = store.next[entry]
                other = planned[node]
                while other >= 0:
                    if span[0, other] <= time < span[1, other]:
                        room -= amount(site, shapes, node_shape[other], node_tasks[other], node, r)
                    other = follows[other]
                s.later[r, node] = min(s.later[r, node], room)


@njit(**INNER)
def amount(site, shapes, shape, tasks, node, r):
    """Return what some tasks of a shape take of a resource on a node."""
    if shapes.exclusive[shape]:
        return site.capacity[r, node]
    return shapes.base[shape, r] + tasks * shapes.unit[shape, r]
