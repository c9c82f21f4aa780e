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
from stretto.core.kernels.rng import uniform
from stretto.graphs.kernels.search.decode import best_device, reads_arrive
from stretto.graphs.kernels.search.moves import propose_move, readers_of, revert

CHECKPOINT = 16  # positions between stored free times


class AnnealState(NamedTuple):
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


def new_state(num_tasks: int, num_devices: int) -> AnnealState:
    """Allocate a state."""
    assign, order, position, old_assign = (np.zeros(num_tasks, dtype=np.int32) for _ in range(4))
    start, finish, peak, *old_times = (np.zeros(num_tasks) for _ in range(6))
    free = np.zeros((num_tasks // CHECKPOINT + 1, num_devices))
    work, critical = np.zeros(num_devices), np.zeros(num_tasks + 1, dtype=np.int32)
    return AnnealState(assign, order, position, start, finish, peak, free, work, critical, old_assign, *old_times)


@njit(cache=True, nogil=True)
def load_state(p, s, assign, order, greedy):
    """Put a solution into the state, decode it whole, and return its makespan."""
    n = order.shape[0]
    put_solution(s, assign, order)
    end, _ = evaluate(p, s, s.start, 0, np.inf, n if greedy else 0)
    store_checkpoints(s, 0)
    trace_critical(p, s, True)
    return end


@njit(cache=True, nogil=True, inline="always")
def put_solution(s, assign, order):
    """Put an assignment and an order into the state; times are for the caller to fill."""
    for i in range(order.shape[0]):
        s.order[i] = order[i]
        s.position[order[i]] = i
        s.assign[i] = assign[i]


@njit(cache=True, nogil=True, inline="always")
def copy_solution(s, assign, order):
    """Write the assignment and the order of the state to arrays."""
    for i in range(order.shape[0]):
        assign[i] = s.assign[i]
        order[i] = s.order[i]


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
        begin = reads_arrive(in_ptr, in_task, in_size, latency, inv_bandwidth, assign, finish, v, d, begin, -1)
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
def trace_critical(p, s, in_order):
    """Walk back from the last task to end, along whatever made each task wait.

    With ``in_order``, devices run their tasks in the order of the state; otherwise in the order of their times.
    """
    n = s.order.shape[0]
    v = s.order[0] if in_order else 0
    for u in range(n):
        if s.finish[u] > s.finish[v]:
            v = u
    count = 0
    while v >= 0 and count < n:
        s.critical[count] = v
        count += 1
        v = blocker(p, s, v, in_order)
    s.critical[n] = count


@njit(cache=True, nogil=True)
def blocker(p, s, v, in_order):
    """Return the task whose end decided the start of v: a producer, or one on its device; or -1."""
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
    if in_order:
        for i in range(s.position[v] - 1, -1, -1):
            u = s.order[i]
            if s.assign[u] == d:
                return u if s.finish[u] >= begin else -1
        return -1
    for u in range(s.order.shape[0]):
        if u != v and s.assign[u] == d and s.finish[u] == begin and s.start[u] < begin:
            return u
    return -1


@njit(cache=True, nogil=True)
def anneal(p, s, tail, rng, num_steps, temperature, greedy, value, best_value, best_assign, best_order):
    """Make ``num_steps`` proposals at one temperature.

    Returns the current and the best makespan; the best solution is written to the arrays given.
    With ``greedy``, only the order is searched and devices follow from it.
    """
    n = s.order.shape[0]
    stale = 0
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    for _ in range(num_steps):
        first = propose_move(p, s, reader_ptr, rng, greedy, change)
        if first == n:
            continue
        threshold = value - temperature * np.log(1.0 - uniform(rng))
        result, reached = evaluate(p, s, tail, first, threshold, n if greedy else 0)
        if result > threshold:
            undo(s, first, reached, greedy)
            revert(s.order, s.position, s.assign, change)
            continue
        value = result
        store_checkpoints(s, first)
        stale += 1
        if stale >= 16 or result < best_value:
            trace_critical(p, s, True)
            stale = 0
        if result < best_value:
            best_value = result
            copy_solution(s, best_assign, best_order)
    return value, best_value


@njit(cache=True, nogil=True)
def mean_rise(p, s, tail, rng, num_samples, greedy, value):
    """Return by how much moves that lengthen the makespan do so on average; nothing is changed."""
    n = s.order.shape[0]
    reader_ptr = readers_of(p)
    change = np.empty(7 + 2 * n, dtype=np.int32)
    total = 0.0
    count = 0
    for _ in range(num_samples):
        first = propose_move(p, s, reader_ptr, rng, greedy, change)
        if first == n:
            continue
        result, reached = evaluate(p, s, tail, first, np.inf, n if greedy else 0)
        if result > value:
            total += result - value
            count += 1
        undo(s, first, reached, greedy)
        revert(s.order, s.position, s.assign, change)
    return total / max(1, count)
