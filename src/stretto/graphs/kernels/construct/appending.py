"""List scheduling without insertion: tasks in a given order, each behind what its device has."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Words
from stretto.graphs.kernels.construct.arrival import open_devices, ready_everywhere

#: What makes a device the best for the next task. Equal ones: earlier finish, then lower index.
BY_FINISH = 0
BY_START = 1
BY_DURATION = 2
BY_IDLE = 3


@njit(cache=True, nogil=True)
def append_by_rule(p: Arrays, order: Ints, rule: int) -> tuple[Ints, Floats, Floats]:
    """Give each task the device that a rule prefers; return assignment, start and finish."""
    m = p.device_class.shape[0]
    assign, start, finish, free, row = open_devices(p)
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        best = np.inf
        end = np.inf
        device = -1
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span == np.inf:
                continue
            at = max(row[d], free[d])
            score = _score(rule, at, span, free[d])
            if score < best or (score == best and at + span < end):
                best, end, device = score, at + span, d
        assign[v] = device
        start[v] = max(row[device], free[device])
        finish[v] = end
        free[device] = end
    return assign, start, finish


@njit(cache=True, nogil=True)
def append_by_start_at_random(p: Arrays, order: Ints, state: Words) -> tuple[Ints, Floats, Floats]:
    """Give each task, in order, a device on which it starts first; equal ones are drawn at random.

    Parameters
    ----------
    state
        State of the random generator, which advances.
    """
    m = p.device_class.shape[0]
    assign, start, finish, free, row = open_devices(p)
    for v in order:
        ready_everywhere(p, assign, finish, v, row)
        best = np.inf
        device = -1
        ties = 0
        for d in range(m):
            if p.duration[v, p.device_class[d]] == np.inf:
                continue
            at = max(row[d], free[d])
            if at < best:
                best, device, ties = at, d, 1
            elif at == best:
                ties += 1
                # The t-th of equal devices takes over with chance 1/t: all end up equally likely.
                if below(state, ties) == 0:
                    device = d
        assign[v] = device
        start[v] = best
        finish[v] = best + p.duration[v, p.device_class[device]]
        free[device] = finish[v]
    return assign, start, finish


@njit(cache=True, nogil=True)
def _score(rule: int, at: float, span: float, free: float) -> float:
    if rule == BY_START:
        return at
    if rule == BY_DURATION:
        return span
    if rule == BY_IDLE:
        return free
    return at + span


@njit(cache=True, nogil=True)
def append_assigned(p: Arrays, order: Ints, assign: Ints) -> tuple[Floats, Floats]:
    """Return start and finish of each task when devices are given and tasks queue in order."""
    n = order.shape[0]
    start = np.empty(n)
    finish = np.empty(n)
    free = np.zeros(p.device_class.shape[0])
    for i in range(n):
        v = order[i]
        d = assign[v]
        at = max(p.release[v], free[d])
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            there = finish[u]
            size = p.in_size[e]
            if size > 0.0:
                there += p.latency[assign[u], d] + size * p.inv_bandwidth[assign[u], d]
            at = max(at, there)
        start[v] = at
        finish[v] = at + p.duration[v, p.device_class[d]]
        free[d] = finish[v]
    return start, finish


@njit(cache=True, nogil=True)
def in_turn(p: Arrays, order: Ints) -> Ints:
    """Assign tasks, in order, to the next device in turn that can run them."""
    n = order.shape[0]
    m = p.device_class.shape[0]
    assign = np.empty(n, dtype=np.int32)
    d = 0
    for i in range(n):
        v = order[i]
        while p.duration[v, p.device_class[d]] == np.inf:
            d = (d + 1) % m
        assign[v] = d
        d = (d + 1) % m
    return assign


@njit(cache=True, nogil=True)
def at_random(p: Arrays, state: Words) -> Ints:
    """Assign each task to one of the devices that can run it, all equally likely."""
    n = p.duration.shape[0]
    assign = np.empty(n, dtype=np.int32)
    for v in range(n):
        able = 0
        for d in range(p.device_class.shape[0]):
            if p.duration[v, p.device_class[d]] < np.inf:
                able += 1
                if below(state, able) == 0:
                    assign[v] = d
    return assign
