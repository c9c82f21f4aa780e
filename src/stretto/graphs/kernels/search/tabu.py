"""Tabu search that weighs every safe place of critical tasks, exactly.

Take task v out of its device's sequence and time the rest both ways: from the front (earliest
starts) and from the back (longest way to the end). The makespan with v between neighbours a and b
of some device is then the larger of what remains without v and the one path through v, so each place
costs only the reads of v. The idea is Mastrolilli and Gambardella's (2000) for flexible job shops, with
transfers and without estimates. Safe means: the times without v show that no cycle can arise. With
transfers, a few places that would do are left out by that.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.graphs.kernels.construct.room import tally
from stretto.graphs.kernels.search.decode import reads_arrive, way_after
from stretto.graphs.kernels.search.tabu_state import load_tabu, relocate, take_out, time_all

WIDTHS = 5  # descents after the first weigh 2, 4, ..., 2 ** WIDTHS critical tasks per move


@njit(cache=True, nogil=True, inline="always")
def limits(in_ptr, in_task, first_reader, last_reader, object_reader, v, start, finish):
    """Return the last end of what v reads and the first start of what reads v."""
    parents_end = 0.0
    for e in range(in_ptr[v], in_ptr[v + 1]):
        parents_end = max(parents_end, finish[in_task[e]])
    child_start = np.inf
    for r in range(first_reader, last_reader):
        child_start = min(child_start, start[object_reader[r]])
    return parents_end, child_start


@njit(cache=True, nogil=True)
def shake(p, s, room, kept, most, rng, num_moves, start, finish, rest, missing):
    """Put random tasks at random places; return the makespan."""
    n = s.order.shape[0]
    m = s.first.shape[0]
    value = s.peak[n - 1]
    limited = room.limit.shape[0] > 0
    for _ in range(num_moves):
        v = np.int32(below(rng, n))
        d = np.int32(below(rng, m))
        if p.duration[v, p.device_class[d]] == np.inf:
            continue
        if limited and not has_room(room.limit, room.resident, room.running, s.assign, kept, most, v, d):
            continue
        take_out(p, s, v, start, finish, rest)
        readers = p.object_ptr[p.out_ptr[v]], p.object_ptr[p.out_ptr[v + 1]]
        parents_end, child_start = limits(
            p.in_ptr, p.in_task, readers[0], readers[1], p.object_reader, v, start, finish
        )
        chosen = np.int32(-2)
        seen = 0
        a = np.int32(-1)
        b = s.first[d] if s.first[d] != v else s.after[v]
        while a < 0 or start[a] < child_start:
            if b < 0 or finish[b] > parents_end:
                seen += 1
                if below(rng, seen) == 0:
                    chosen = a
            if b < 0:
                break
            a = b
            b = s.after[b] if s.after[b] != v else s.after[v]
        if chosen > -2:
            relocate(s, v, d, chosen)
            value = time_all(p, s, missing)
            if limited:
                tally(room, s.assign, kept, most)
    return value


@njit(cache=True, nogil=True, inline="always")
def has_room(limit, resident, running, assign, kept, most, v, d):
    """Say whether device d has memory for task v beside what ``room.tally`` found there; the task's own always has."""
    return assign[v] == d or kept[d] + resident[v] + max(most[d], running[v]) <= limit[d]


@njit(cache=True, nogil=True)
def find_critical(s, rng, value, width, critical):
    """Write up to ``width`` random critical tasks; return their number."""
    count = 0
    for v in range(s.order.shape[0]):
        if s.finish[v] + s.rest[v] >= value * (1.0 - 1e-9):
            critical[count] = v
            count += 1
    if count > width:
        for i in range(width):
            j = i + below(rng, count - i)
            critical[i], critical[j] = critical[j], critical[i]
        count = width
    return count


@njit(cache=True, nogil=True)
def keep_best(s, value, best_value, best_assign, best_order):
    """Count moves without improvement, keep the solution if it is the best, and return the best makespan."""
    s.clock[1] += 1
    if value < s.local[0] * (1.0 - 1e-12):
        s.local[0] = value
        s.clock[1] = 0
    if value >= best_value:
        return best_value
    for i in range(s.order.shape[0]):
        best_assign[i] = s.assign[i]
        best_order[i] = s.order[i]
    return value


@njit(cache=True, nogil=True)
def choose_place(p, s, room, kept, most, rng, critical, count, best_value, start, finish, rest):
    """Return the task, the device and the task before it of the best place for one of the critical tasks.

    The task is -1 where there is none. ``start``, ``finish`` and ``rest`` are scratch space.
    """
    clock = s.clock[0]
    limit, resident, running = room.limit, room.resident, room.running
    limited = limit.shape[0] > 0
    in_ptr, in_task, in_size = p.in_ptr, p.in_task, p.in_size
    out_ptr, object_ptr, reader, sizes = p.out_ptr, p.object_ptr, p.object_reader, p.object_size
    latency, inv_bandwidth, duration, classes = p.latency, p.inv_bandwidth, p.duration, p.device_class
    assign, before, after, first, barred = s.assign, s.before, s.after, s.first, s.barred
    chosen = np.int32(-1)
    chosen_device = 0
    chosen_after = np.int32(-1)
    chosen_value = np.inf
    chosen_path = np.inf
    oldest = np.iinfo(np.int64).max
    for k in range(count):
        v = critical[k]
        without = take_out(p, s, v, start, finish, rest)
        if without > chosen_value:
            continue
        parents_end, child_start = limits(
            in_ptr, in_task, object_ptr[out_ptr[v]], object_ptr[out_ptr[v + 1]], reader, v, start, finish
        )
        for d in range(first.shape[0]):
            work = duration[v, classes[d]]
            if work == np.inf:
                continue
            if limited and not has_room(limit, resident, running, assign, kept, most, v, d):
                continue
            ready = reads_arrive(
                in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, v, d, p.release[v], -1
            )
            onward = way_after(
                out_ptr, object_ptr, reader, sizes, latency, inv_bandwidth, duration, classes, assign, rest, v, d, -1
            )
            if max(without, ready + work + onward) > chosen_value:
                continue
            is_barred = barred[v, d] >= clock
            here = before[v] if d == assign[v] else np.int32(-2)
            a = np.int32(-1)
            b = first[d] if first[d] != v else after[v]
            # Behind a descendant of v there is no place for it, nor before an ancestor.
            while a < 0 or start[a] < child_start:
                if a != here and (b < 0 or finish[b] > parents_end):
                    begin = max(ready, finish[a]) if a >= 0 else ready
                    way = max(onward, duration[b, classes[d]] + rest[b]) if b >= 0 else onward
                    path = begin + work + way
                    made = max(path, without)
                    if not is_barred or made < best_value * (1.0 - 1e-12):
                        if made < chosen_value or (
                            made == chosen_value
                            and (path < chosen_path or (path == chosen_path and below(rng, 2) == 0))
                        ):
                            chosen = v
                            chosen_device = d
                            chosen_after = a
                            chosen_value = made
                            chosen_path = path
                    elif chosen_value == np.inf and barred[v, d] < oldest:
                        oldest = barred[v, d]  # all barred: the one that is free again first
                        chosen = v
                        chosen_device = d
                        chosen_after = a
                if b < 0:
                    break
                a = b
                b = after[b] if after[b] != v else after[v]
    return chosen, chosen_device, chosen_after


@njit(cache=True, nogil=True)
def tabu_search(p, s, room, rng, num_moves, patience, value, best_value, best_assign, best_order):
    """Make ``num_moves`` moves; return the current and the best makespan.

    Each takes the best place, among those of a few critical tasks, that is not barred, even if it is
    worse than where the task stood. After ``patience`` moves without improvement, the best solution is changed at
    random and another descent begins, evaluating fewer or more tasks per move. Devices without ``room`` are left out.
    """
    n = s.order.shape[0]
    start = np.empty(n)
    finish = np.empty(n)
    rest = np.empty(n)
    missing = np.empty(n, dtype=np.int32)
    critical = np.empty(n, dtype=np.int32)
    limited = room.limit.shape[0] > 0
    kept, most = np.empty(s.first.shape[0]), np.empty(s.first.shape[0])
    for _ in range(num_moves):
        s.clock[0] += 1
        if limited:
            tally(room, s.assign, kept, most)
        if s.clock[1] > patience:
            load_tabu(p, s, best_assign, best_order)
            if limited:
                tally(room, s.assign, kept, most)
            value = shake(p, s, room, kept, most, rng, 2 + below(rng, max(1, n // 4)), start, finish, rest, missing)
            s.clock[2] = 2 << below(rng, WIDTHS)
        count = find_critical(s, rng, value, s.clock[2], critical)
        chosen, device, behind = choose_place(
            p, s, room, kept, most, rng, critical, count, best_value, start, finish, rest
        )
        if chosen < 0:
            s.clock[1] = patience + 1
            continue
        span = 4 + count // 2
        s.barred[chosen, s.assign[chosen]] = s.clock[0] + span + below(rng, span)
        relocate(s, chosen, device, behind)
        value = time_all(p, s, missing)
        best_value = keep_best(s, value, best_value, best_assign, best_order)
    return value, best_value
