"""Simulated annealing over (assignment, order), with evaluations that start late and stop early.

A move changes the order from some position on; what stands before keeps its times, so decoding
starts there, from the nearest checkpoint of the devices' free times. The acceptance threshold
is drawn *before* the evaluation, so decoding ends at the first task whose finish plus its
shortest possible tail exceeds it. Most proposals are rejected, most of those after a few tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from stretto.kernels.decode import best_device
from stretto.kernels.rng import below, uniform

CHECKPOINT = 16  # positions between stored free times


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
def move_to(s, v, target):
    """Move task v to a position, shifting those between."""
    at = s.position[v]
    if target > at:
        for i in range(at, target):
            u = s.order[i + 1]
            s.order[i] = u
            s.position[u] = i
    else:
        for i in range(at, target, -1):
            u = s.order[i - 1]
            s.order[i] = u
            s.position[u] = i
    s.order[target] = v
    s.position[v] = target


@njit(cache=True, nogil=True, inline="always")
def slack_range(p, s, v):
    """Return the first and last position that v may take while all others keep their order."""
    low = 0
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        low = max(low, s.position[p.in_task[e]] + 1)
    high = s.order.shape[0] - 1
    for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
        for r in range(p.object_ptr[o], p.object_ptr[o + 1]):
            high = min(high, s.position[p.object_reader[r]] - 1)
    return low, high


@njit(cache=True, nogil=True, inline="always")
def neighbour(p, v, rng):
    """Return a random producer or reader next to v, or -1."""
    reads = p.in_ptr[v + 1] - p.in_ptr[v]
    first = p.object_ptr[p.out_ptr[v]]
    readers = p.object_ptr[p.out_ptr[v + 1]] - first
    if reads + readers == 0:
        return -1
    k = below(rng, reads + readers)
    return p.in_task[p.in_ptr[v] + k] if k < reads else p.object_reader[first + k - reads]


@njit(cache=True, nogil=True, inline="always")
def propose_device(p, s, v, rng):
    """Return another device for v that can run it: a neighbour's, or any; -1 when none was found."""
    m = p.device_class.shape[0]
    for _ in range(6):
        d = -1
        if below(rng, 2) == 0:
            u = neighbour(p, v, rng)
            if u >= 0:
                d = s.assign[u]
        if d < 0:
            d = below(rng, m)
        if d != s.assign[v] and p.duration[v, p.device_class[d]] < np.inf:
            return d
    return -1


@njit(cache=True, nogil=True, inline="always")
def pick_task(s, rng):
    """Return a task: of the critical path half of the time."""
    count = s.critical[s.order.shape[0]]
    if below(rng, 2) == 0:
        return s.critical[below(rng, count)]
    return below(rng, s.order.shape[0])


@njit(cache=True, nogil=True, inline="always")
def reassign(p, s, v, d, change, first):
    """Put task v on device d and note it; return the first position that changes."""
    if d < 0 or d == s.assign[v] or p.duration[v, p.device_class[d]] == np.inf:
        return first
    k = change[2]
    change[3 + 2 * k] = v
    change[4 + 2 * k] = s.assign[v]
    change[2] = k + 1
    s.assign[v] = d
    return min(first, s.position[v])


@njit(cache=True, nogil=True, inline="always")
def propose(p, s, rng, order_only, change):
    """Change the solution by one random move; return the first position it touches, or n for none.

    ``change`` notes what to put back: the task shifted and where it stood (or -1), the number of
    tasks reassigned, then task and former device of each (at most three).
    """
    n = s.order.shape[0]
    v = pick_task(s, rng)
    first = n
    change[0] = v
    change[1] = -1
    change[2] = 0
    kind = 0 if order_only or p.device_class.shape[0] == 1 else below(rng, 10)
    # 0-3 shift, 4-6 reassign, 7 both, 8 swap devices with any task, 9 take two neighbours along
    if kind <= 3 or kind == 7:
        low, high = slack_range(p, s, v)
        if low < high:
            at = s.position[v]
            target = low + below(rng, high - low)
            if target >= at:
                target += 1
            change[1] = at
            move_to(s, v, target)
            first = min(at, target)
    if kind == 8:
        u = below(rng, n)
        a = s.assign[v]
        b = s.assign[u]
        if p.duration[v, p.device_class[b]] < np.inf and p.duration[u, p.device_class[a]] < np.inf:
            first = reassign(p, s, v, b, change, first)
            first = reassign(p, s, u, a, change, first)
    elif kind >= 4:
        d = propose_device(p, s, v, rng)
        first = reassign(p, s, v, d, change, first)
        if kind == 9 and d >= 0:
            for _ in range(2):
                u = neighbour(p, v, rng)
                if u >= 0:
                    first = reassign(p, s, u, d, change, first)
    return first


@njit(cache=True, nogil=True, inline="always")
def revert(s, change):
    """Put back what a proposal changed."""
    if change[1] >= 0:
        move_to(s, change[0], change[1])
    for k in range(change[2] - 1, -1, -1):
        s.assign[change[3 + 2 * k]] = change[4 + 2 * k]


@njit(cache=True, nogil=True)
def anneal(p, s, tail, rng, num_steps, temperature, greedy, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature.

    Returns the current and the best makespan; the best solution is written to the arrays given.
    With ``greedy``, only the order is searched and devices follow from it.
    """
    n = s.order.shape[0]
    stale = 0
    change = np.empty(9, dtype=np.int32)
    for _ in range(num_steps):
        first = propose(p, s, rng, greedy, change)
        if first == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result, reached = evaluate(p, s, tail, first, threshold, n if greedy else 0)
        if result > threshold:
            undo(s, first, reached, greedy)
            revert(s, change)
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
