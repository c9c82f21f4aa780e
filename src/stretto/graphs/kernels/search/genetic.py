"""A steady-state genetic algorithm over (assignment, order), all in one compiled loop."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.graphs.kernels.search.decode import decode


@njit(cache=True, nogil=True)
def cross(mother_assign, mother_order, father_assign, father_order, cut, assign, order):
    """Take the mother's first ``cut`` tasks, then the rest in the father's order; both are topological.

    Each task keeps the device of the parent whose order placed it.
    """
    n = order.shape[0]
    taken = np.zeros(n, dtype=np.bool_)
    for i in range(cut):
        v = mother_order[i]
        order[i] = v
        assign[v] = mother_assign[v]
        taken[v] = True
    k = cut
    for i in range(n):
        v = father_order[i]
        if not taken[v]:
            order[k] = v
            assign[v] = father_assign[v]
            k += 1


@njit(cache=True, nogil=True)
def mutate(p, assign, order, count, rng):
    """Change the device of some tasks, and swap some neighbours in the order that may be swapped."""
    n = order.shape[0]
    m = p.device_class.shape[0]
    for _ in range(count):
        v = below(rng, n)
        d = below(rng, m)
        if p.duration[v, p.device_class[d]] < np.inf:
            assign[v] = d
        i = below(rng, n)
        while i + 1 < n:  # sink a task until it meets one that reads it
            v = order[i]
            u = order[i + 1]
            depends = False
            for e in range(p.in_ptr[u], p.in_ptr[u + 1]):
                if p.in_task[e] == v:
                    depends = True
            if depends or below(rng, 8) == 0:
                break
            order[i] = u
            order[i + 1] = v
            i += 1


@njit(cache=True, nogil=True)
def tournament(values, rng):
    """Return the better of two random members."""
    a = below(rng, values.shape[0])
    b = below(rng, values.shape[0])
    return a if values[a] <= values[b] else b


@njit(cache=True, nogil=True)
def evolve(p, assigns, orders, values, num_children, mutations, rng):
    """Breed children one by one, each replacing the loser of a reverse tournament; return the best member."""
    n = orders.shape[1]
    assign = np.empty(n, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    start = np.empty(n)
    finish = np.empty(n)
    best = 0
    for k in range(values.shape[0]):
        if values[k] < values[best]:
            best = k
    for _ in range(num_children):
        a = tournament(values, rng)
        b = tournament(values, rng)
        cross(assigns[a], orders[a], assigns[b], orders[b], below(rng, n + 1), assign, order)
        mutate(p, assign, order, 1 + below(rng, mutations), rng)
        value = decode(p, assign, order, start, finish)
        loser = below(rng, values.shape[0])
        other = below(rng, values.shape[0])
        if values[other] > values[loser]:
            loser = other
        if value <= values[loser]:  # the best member can only lose to a better one
            assigns[loser] = assign
            orders[loser] = order
            values[loser] = value
            if value < values[best]:
                best = loser
    return best
