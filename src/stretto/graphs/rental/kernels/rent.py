"""Place tasks one by one: each on the cheapest node on which it ends by its due time, else where it ends first.

Nodes may be rented: one that is used for the first time costs its billing minimum, one that is used for longer what is
added to its bill. The times are those of the plan's execution in sequence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.compile import njit
from stretto.core.problem import ProblemArrays

Bools = NDArray[np.bool_]


class NodeArrays(NamedTuple):
    """Nodes that may be used; m nodes, R resources."""

    capacity: Floats  # [m, R]
    price: Floats  # [m] USD per second
    billing_s: Floats  # [m] each begun one is paid
    minimum_s: Floats  # [m] least time that is paid
    ready_s: Floats  # [m] no task starts before
    group: Ints  # [m] nodes of one group are alike
    pool: Ints  # [m]
    most: Ints  # [P] nodes of a pool that may be used, in all markets together
    is_spot: Bools  # [m]


@njit(cache=True, nogil=True)
def path_levels(p: ProblemArrays, seconds: Floats, above: Floats, below: Floats) -> None:
    """Fill the longest path up to the end of each task, and the one from its end on, without transfers."""
    for t in p.topo:
        longest = 0.0
        for e in range(p.in_ptr[t], p.in_ptr[t + 1]):
            longest = max(longest, above[p.in_task[e]])
        above[t] = longest + seconds[t]
    below[:] = 0.0
    for t in p.topo[::-1]:
        for e in range(p.in_ptr[t], p.in_ptr[t + 1]):
            before = p.in_task[e]
            below[before] = max(below[before], below[t] + seconds[t])


@njit(cache=True, nogil=True)
def billed(used_s: float, billing_s: float, minimum_s: float) -> float:
    """Return the seconds that are paid for a rental."""
    return max(minimum_s, math.ceil(used_s / billing_s - 1e-9) * billing_s)


@njit(cache=True, nogil=True)
def arrival(p: ProblemArrays, t: int, v: int, device: Ints, finish: Floats) -> float:
    """Return when all inputs of a task are on a node."""
    latest = p.release[t]
    for e in range(p.in_ptr[t], p.in_ptr[t + 1]):
        before = p.in_task[e]
        u, at = device[before], finish[before]
        if u != v and p.in_size[e] > 0:
            at += p.latency[u, v] + p.in_size[e] * p.inv_bandwidth[u, v]
        latest = max(latest, at)
    return latest


@njit(cache=True, nogil=True)
def first_fit(at: float, needs: Floats, capacity: Floats, active: Ints, finish: Floats, need: Floats) -> float:
    """Return the first moment from ``at`` on at which a task fits beside the active ones, all of which have begun."""
    while True:
        fits, following = True, math.inf
        for r in range(len(needs)):
            used = needs[r]
            for q in active:
                if finish[q] > at:
                    used += need[q, r]
            if used > capacity[r]:
                fits = False
        if fits:
            return at
        for q in active:
            if finish[q] > at:
                following = min(following, finish[q])
        at = following


@njit(cache=True, nogil=True)
def place_tasks(
    p: ProblemArrays,
    nodes: NodeArrays,
    need: Floats,
    order: Ints,
    due: Floats,
    allowed: Bools,
    may_spot: Bools,
    device: Ints,
    start: Floats,
    finish: Floats,
    exposed: Bools,
) -> float:
    """Place all tasks, inputs before readers; return the bill in USD, inf where a task fits nowhere.

    ``allowed`` says which nodes may be used, ``may_spot`` which tasks may run on spot nodes. ``exposed`` gets the tasks
    that the loss of a spot node may delay: those on spot, their readers, and what comes later on the same node.
    """
    m = len(allowed)
    taken = np.zeros(len(nodes.most), np.int64)
    at_risk = nodes.is_spot.copy()
    active = np.empty((m, p.duration.shape[0]), np.int32)
    count = np.zeros(m, np.int64)
    first, last_start, last_end = np.full(m, -1.0), np.zeros(m), np.zeros(m)
    tried = np.zeros(nodes.group.max() + 1, np.bool_)
    for t in order:
        tried[:] = False
        choice, best_cost, best_finish, best_start, in_time = -1, math.inf, math.inf, 0.0, False
        for v in range(m):
            seconds = p.duration[t, p.device_class[v]]
            if not allowed[v] or not seconds < math.inf or (nodes.is_spot[v] and not may_spot[t]):
                continue
            if first[v] < 0.0:  # of unused nodes that are alike, one stands for all
                if tried[nodes.group[v]] or taken[nodes.pool[v]] >= nodes.most[nodes.pool[v]]:
                    continue
                tried[nodes.group[v]] = True
            at = max(arrival(p, t, v, device, finish), nodes.ready_s[v], last_start[v])
            at = first_fit(at, need[t], nodes.capacity[v], active[v, : count[v]], finish, need)
            end = at + seconds
            cost = 0.0
            if nodes.price[v] > 0.0:
                begin = at if first[v] < 0.0 else first[v]
                paid = 0.0 if first[v] < 0.0 else billed(last_end[v] - begin, nodes.billing_s[v], nodes.minimum_s[v])
                then = billed(max(end, last_end[v]) - begin, nodes.billing_s[v], nodes.minimum_s[v])
                cost = nodes.price[v] * (then - paid)
            timely = end <= due[t]
            if timely != in_time:
                better = timely
            elif timely:
                better = cost < best_cost or (cost == best_cost and end < best_finish)
            else:
                better = end < best_finish or (end == best_finish and cost < best_cost)
            if better:
                choice, best_cost, best_finish, best_start, in_time = v, cost, end, at, timely
        if choice < 0:
            return math.inf
        v = choice
        kept = 0
        for k in range(count[v]):
            if finish[active[v, k]] > best_start:
                active[v, kept] = active[v, k]
                kept += 1
        active[v, kept] = t
        count[v] = kept + 1
        device[t], start[t], finish[t] = v, best_start, best_finish
        if first[v] < 0.0:
            first[v] = best_start
            taken[nodes.pool[v]] += 1
        for e in range(p.in_ptr[t], p.in_ptr[t + 1]):
            at_risk[v] = at_risk[v] or exposed[p.in_task[e]]
        exposed[t] = at_risk[v]
        last_start[v], last_end[v] = best_start, max(last_end[v], best_finish)
    cost = 0.0
    for v in range(m):
        if first[v] >= 0.0 and nodes.price[v] > 0.0:
            cost += nodes.price[v] * billed(last_end[v] - first[v], nodes.billing_s[v], nodes.minimum_s[v])
    return cost
