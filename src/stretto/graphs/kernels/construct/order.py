"""The order in which a list scheduler takes tasks: of those ready, the most urgent first."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Ints


@njit(cache=True, nogil=True)
def ready_order(p: Arrays, wanted: Ints) -> Ints:
    """Return all tasks: always the ready one that stands first in ``wanted``.

    A task is ready when all that it reads from stand before it, so the result is a topological
    order. Where ``wanted`` is one already, as by upward ranks, it is the result.
    """
    n = wanted.shape[0]
    rank = np.empty(n, dtype=np.int32)
    for i in range(n):
        rank[wanted[i]] = i
    if _is_topological(p, rank):
        return wanted
    order = np.empty(n, dtype=np.int32)
    heap = np.empty(n, dtype=np.int32)  # ranks, the least on top
    missing = np.empty(n, dtype=np.int32)
    count = 0
    for v in range(n):
        missing[v] = p.in_ptr[v + 1] - p.in_ptr[v]
        if missing[v] == 0:
            push(heap, count, rank[v])
            count += 1
    for i in range(n):
        v = wanted[pop(heap, count)]
        count -= 1
        order[i] = v
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
                w = p.object_reader[e]
                missing[w] -= 1
                if missing[w] == 0:
                    push(heap, count, rank[w])
                    count += 1
    return order


@njit(cache=True, nogil=True)
def _is_topological(p: Arrays, rank: Ints) -> bool:
    for v in range(rank.shape[0]):
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            if rank[p.in_task[e]] > rank[v]:
                return False
    return True


@njit(cache=True, nogil=True)
def push(heap: Ints, count: int, value: int) -> None:
    """Put a value on a binary heap that holds ``count`` of them."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= value:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = value


@njit(cache=True, nogil=True)
def pop(heap: Ints, count: int) -> int:
    """Take the least value off a binary heap that holds ``count`` of them."""
    first = int(heap[0])
    size = count - 1
    last = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first
