"""Simulated annealing over (assignment, order), with evaluations that start late and stop early.

A move changes the order from some position on; what stands before keeps its times, so decoding
starts there, from the nearest checkpoint of the devices' free times. The acceptance threshold
is drawn *before* the evaluation, so decoding ends at the first task whose finish plus its
shortest possible tail exceeds it. Most proposals are rejected, most of those after a few tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.graphs.kernels.search.decode import best_device

CHECKPOINT = 16  # positions between stored free times
MAX_CLUSTER = 32  # connected tasks that move together
WHOLE_DEVICES = 2000  # largest graph in which whole devices are exchanged


class State(NamedTuple):
    """A solution under search with everything needed to change it cheaply."""

    assign: np.ndarray  # [n]
    order: np.ndarray  # [n]
    position: np.ndarray  # [n]
    start: np.ndarray  # [n]
    finish: np.ndarray  # [n]
    peak: np.ndarray  # [n] largest finish among the first i+1 tasks of the order
    free: np.ndarray  # [n // CHECKPOINT + 1, m] device free times before position k * CHECKPOINT
    work: np.ndarray  # [m] scratch
    critical: np.ndarray  # [n + 1] tasks of one critical path; the last entry is their number
    old_assign: np.ndarray  # [n] undo log, by position
    old_start: np.ndarray  # [n]
    old_finish: np.ndarray  # [n]
    old_peak: np.ndarray  # [n]


def new_state(num_tasks: int, num_devices: int) -> State:
    """Allocate a state."""
    ints = [np.zeros(num_tasks, dtype=np.int32) for _ in range(4)]
    floats = [np.zeros(num_tasks) for _ in range(6)]
    return State(
        ints[0],
        ints[1],
        ints[2],
        floats[0],
        floats[1],
        floats[2],
        np.zeros((num_tasks // CHECKPOINT + 1, num_devices)),
        np.zeros(num_devices),
        np.zeros(num_tasks + 1, dtype=np.int32),
        ints[3],
        floats[3],
        floats[4],
        floats[5],
    )


@njit(cache=True, nogil=True)
def load_state(p, s, assign, order, greedy):
    """Put a solution into the state, decode it whole, and return its makespan."""
    n = order.shape[0]
    for i in range(n):
        s.order[i] = order[i]
        s.position[order[i]] = i
        s.assign[i] = assign[i]
    end, _ = evaluate(p, s, s.start, 0, np.inf, n if greedy else 0)
    store_checkpoints(s, 0)
    trace_critical(p, s)
    return end


@njit(cache=True, nogil=True, inline="always")
def evaluate(p, s, tail, first, threshold, placed):
    """Decode from position ``first``; return the makespan and how far it got.

    Tasks before position ``placed`` are given the device that ends them first, those from there
    on keep theirs. The makespan is inf as soon as it must exceed the threshold (``tail`` is not
    read while that is inf). Old values are kept in the undo log.
    """
    n = s.order.shape[0]
    # One function with local names: passing the tuples on costs more than the loop itself.
    order, assign, start, finish, peak = s.order, s.assign, s.start, s.finish, s.peak
    in_ptr, in_task, in_size = p.in_ptr, p.in_task, p.in_size
    latency, inv_bandwidth, duration, device_class = p.latency, p.inv_bandwidth, p.duration, p.device_class
    old_assign, old_start, old_finish, old_peak = s.old_assign, s.old_start, s.old_finish, s.old_peak
    free = s.work
    block = first // CHECKPOINT
    for d in range(free.shape[0]):
        free[d] = s.free[block, d]
    for i in range(block * CHECKPOINT, first):
        v = order[i]
        free[assign[v]] = finish[v]
    makespan = peak[first - 1] if first > 0 else 0.0
    bounded = threshold < np.inf
    if makespan > threshold:
        return np.inf, first
    for i in range(first, n):
        v = order[i]
        old_assign[i] = assign[v]
        old_start[i] = start[v]
        old_finish[i] = finish[v]
        old_peak[i] = peak[i]
        if i < placed:
            assign[v] = best_device(p, assign, finish, free, v)
        d = assign[v]
        begin = max(free[d], p.release[v])
        for e in range(in_ptr[v], in_ptr[v + 1]):
            u = in_task[e]
            at = finish[u]
            a = assign[u]
            if a != d and in_size[e] > 0.0:
                at += latency[a, d] + in_size[e] * inv_bandwidth[a, d]
            begin = max(begin, at)
        end = begin + duration[v, device_class[d]]
        start[v] = begin
        finish[v] = end
        free[d] = end
        makespan = max(makespan, end)
        peak[i] = makespan
        if bounded and end + tail[v] > threshold:
            return np.inf, i + 1
    return makespan, n


@njit(cache=True, nogil=True, inline="always")
def undo(s, first, reached, restore_assign):
    """Put back the times that an evaluation overwrote; the order must be the evaluated one."""
    for i in range(first, reached):
        v = s.order[i]
        s.start[v] = s.old_start[i]
        s.finish[v] = s.old_finish[i]
        s.peak[i] = s.old_peak[i]
        if restore_assign:
            s.assign[v] = s.old_assign[i]


@njit(cache=True, nogil=True, inline="always")
def store_checkpoints(s, first):
    """Refresh the checkpoints after position ``first``."""
    n = s.order.shape[0]
    block = first // CHECKPOINT
    free = s.work
    for d in range(free.shape[0]):
        free[d] = s.free[block, d]
    for i in range(block * CHECKPOINT, n):
        if i % CHECKPOINT == 0:
            for d in range(free.shape[0]):
                s.free[i // CHECKPOINT, d] = free[d]
        v = s.order[i]
        free[s.assign[v]] = s.finish[v]


@njit(cache=True, nogil=True)
def trace_critical(p, s):
    """Walk back from the last task to end, along whatever made each task wait."""
    n = s.order.shape[0]
    last = s.order[0]
    for v in range(n):
        if s.finish[v] > s.finish[last]:
            last = v
    count = 0
    v = last
    while v >= 0:
        s.critical[count] = v
        count += 1
        v = blocker(p, s, v)
    s.critical[n] = count


@njit(cache=True, nogil=True)
def blocker(p, s, v):
    """Return the task whose end decided the start of v, or -1."""
    d = s.assign[v]
    begin = s.start[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        at = s.finish[u]
        a = s.assign[u]
        if a != d and p.in_size[e] > 0.0:
            at += p.latency[a, d] + p.in_size[e] * p.inv_bandwidth[a, d]
        if at >= begin:
            return u
    for i in range(s.position[v] - 1, -1, -1):
        u = s.order[i]
        if s.assign[u] == d:
            return u if s.finish[u] >= begin else -1
    return -1


@njit(cache=True, nogil=True, inline="always")
def move_to(order, position, v, target):
    """Move task v to a position, shifting those between."""
    at = position[v]
    if target > at:
        for i in range(at, target):
            u = order[i + 1]
            order[i] = u
            position[u] = i
    else:
        for i in range(at, target, -1):
            u = order[i - 1]
            order[i] = u
            position[u] = i
    order[target] = v
    position[v] = target


@njit(cache=True, nogil=True)
def readers_of(p):
    """Return where the readers of each task's objects begin, [n+1]."""
    n = p.release.shape[0]
    ptr = np.empty(n + 1, dtype=np.int32)
    for v in range(n + 1):
        ptr[v] = p.object_ptr[p.out_ptr[v]]
    return ptr


@njit(cache=True, nogil=True)
def propose(
    order,
    position,
    assign,
    critical,
    in_ptr,
    in_task,
    reader_ptr,
    reader,
    duration,
    device_class,
    rng,
    order_only,
    change,
):
    """Change the solution by one random move; return the first position it touches, or n for none.

    ``change`` notes what to put back: the task shifted and where it stood (or -1), the number of
    tasks reassigned, then task and former device of each. One function over plain arrays, because handing
    tuples to helpers costs several times the move itself.
    """
    n = order.shape[0]
    m = device_class.shape[0]
    # Half of the moves aim at the critical path.
    v = critical[below(rng, critical[n])] if below(rng, 2) == 0 else np.int32(below(rng, n))
    first = n
    change[0] = v
    change[1] = -1
    count = 0
    kind = 0 if order_only or m == 1 else below(rng, 32)
    # 0-10 shift, 11-18 reassign, 19-21 both, 22-24 swap devices with any task, 25-27 take two
    # neighbours along, 28-30 move a cluster, 31 exchange two whole devices
    if kind <= 10 or (kind >= 19 and kind <= 21):
        low = 0
        for e in range(in_ptr[v], in_ptr[v + 1]):
            low = max(low, position[in_task[e]] + 1)
        high = n - 1
        for r in range(reader_ptr[v], reader_ptr[v + 1]):
            high = min(high, position[reader[r]] - 1)
        if low < high:
            at = position[v]
            target = low + below(rng, high - low)
            if target >= at:
                target += 1
            change[1] = at
            move_to(order, position, v, target)
            first = min(at, target)
    if kind >= 22 and kind <= 24:
        u = below(rng, n)
        a = assign[v]
        b = assign[u]
        if a != b and duration[v, device_class[b]] < np.inf and duration[u, device_class[a]] < np.inf:
            change[3] = v
            change[4] = a
            change[5] = u
            change[6] = b
            count = 2
            assign[v] = b
            assign[u] = a
            first = min(position[v], position[u])
    elif kind == 31:
        a = assign[v]
        b = below(rng, m)
        if n <= WHOLE_DEVICES and a != b:
            for u in range(n):
                here = assign[u]
                there = b if here == a else (a if here == b else -1)
                if there >= 0 and duration[u, device_class[there]] < np.inf:
                    change[3 + 2 * count] = u
                    change[4 + 2 * count] = here
                    count += 1
                    assign[u] = there
                    first = min(first, position[u])
    elif kind >= 11:
        home = assign[v]
        reads = in_ptr[v + 1] - in_ptr[v]
        links = reads + reader_ptr[v + 1] - reader_ptr[v]
        d = -1
        for _ in range(6):
            # A neighbour's device half of the time: it saves a transfer.
            if links > 0 and below(rng, 2) == 0:
                k = below(rng, links)
                u = in_task[in_ptr[v] + k] if k < reads else reader[reader_ptr[v] + k - reads]
                d = assign[u]
            else:
                d = below(rng, m)
            if d != home and duration[v, device_class[d]] < np.inf:
                break
            d = -1
        if d >= 0:
            change[3] = v
            change[4] = home
            count = 1
            assign[v] = d
            first = min(first, position[v])
            limit = 1
            if kind >= 28:
                limit = 2 + below(rng, min(n, MAX_CLUSTER) - 1) if n > 1 else 1
            elif kind >= 25:
                limit = 3
            done = 0
            while done < count and count < limit:  # spread over neighbours on the same device
                w = change[3 + 2 * done]
                done += 1
                reads = in_ptr[w + 1] - in_ptr[w]
                links = reads + reader_ptr[w + 1] - reader_ptr[w]
                for k in range(links):
                    u = in_task[in_ptr[w] + k] if k < reads else reader[reader_ptr[w] + k - reads]
                    if count < limit and assign[u] == home and duration[u, device_class[d]] < np.inf:
                        change[3 + 2 * count] = u
                        change[4 + 2 * count] = home
                        count += 1
                        assign[u] = d
                        first = min(first, position[u])
    change[2] = count
    return first


@njit(cache=True, nogil=True, inline="always")
def revert(order, position, assign, change):
    """Put back what a proposal changed."""
    if change[1] >= 0:
        move_to(order, position, change[0], change[1])
    for k in range(change[2] - 1, -1, -1):
        assign[change[3 + 2 * k]] = change[4 + 2 * k]


@njit(cache=True, nogil=True)
def anneal(p, s, tail, rng, num_steps, temperature, greedy, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature.

    Returns the current and the best makespan; the best solution is written to the arrays given.
    With ``greedy``, only the order is searched and devices follow from it.
    """
    n = s.order.shape[0]
    stale = 0
    order, position, assign, critical = s.order, s.position, s.assign, s.critical
    in_ptr, in_task, reader, duration, device_class = p.in_ptr, p.in_task, p.object_reader, p.duration, p.device_class
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    for _ in range(num_steps):
        first = propose(
            order,
            position,
            assign,
            critical,
            in_ptr,
            in_task,
            reader_ptr,
            reader,
            duration,
            device_class,
            rng,
            greedy,
            change,
        )
        if first == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result, reached = evaluate(p, s, tail, first, threshold, n if greedy else 0)
        if result > threshold:
            undo(s, first, reached, greedy)
            revert(order, position, assign, change)
            continue
        value = result
        store_checkpoints(s, first)
        stale += 1
        if stale >= 16 or result < best_value:
            trace_critical(p, s)
            stale = 0
        if result < best_value:
            best_value = result
            for i in range(n):
                best_assign[i] = s.assign[i]
                best_order[i] = s.order[i]
    return value, best_value


@njit(cache=True, nogil=True)
def mean_rise(p, s, tail, rng, num_samples, greedy, value):
    """Return by how much moves that lengthen the makespan do so on average; nothing is changed."""
    n = s.order.shape[0]
    order, position, assign, critical = s.order, s.position, s.assign, s.critical
    in_ptr, in_task, reader, duration, device_class = p.in_ptr, p.in_task, p.object_reader, p.duration, p.device_class
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    total = 0.0
    count = 0
    for _ in range(num_samples):
        first = propose(
            order,
            position,
            assign,
            critical,
            in_ptr,
            in_task,
            reader_ptr,
            reader,
            duration,
            device_class,
            rng,
            greedy,
            change,
        )
        if first == n:
            continue
        result, reached = evaluate(p, s, tail, first, np.inf, n if greedy else 0)
        if result > value:
            total += result - value
            count += 1
        undo(s, first, reached, greedy)
        revert(order, position, assign, change)
    return total / max(1, count)
