"""Ranks, how far each task is from the end and from the start, and the order in which ranked tasks become ready."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints


@njit(cache=True, nogil=True)
def mean_durations(p: Arrays) -> Floats:
    """Return the mean duration of each task over the devices that can run it."""
    n, num_classes = p.duration.shape
    size = np.zeros(num_classes)
    for d in range(p.device_class.shape[0]):
        size[p.device_class[d]] += 1.0
    mean = np.empty(n)
    for v in range(n):
        total = 0.0
        count = 0.0
        for c in range(num_classes):
            span = p.duration[v, c]
            if span < np.inf:
                total += span * size[c]
                count += size[c]
        mean[v] = total / count
    return mean


@njit(cache=True, nogil=True)
def median_durations(p: Arrays) -> Floats:
    """Return the median duration of each task over the devices that can run it."""
    n = p.duration.shape[0]
    m = p.device_class.shape[0]
    median = np.empty(n)
    spans = np.empty(m)
    for v in range(n):
        count = 0
        for d in range(m):
            span = p.duration[v, p.device_class[d]]
            if span < np.inf:
                spans[count] = span
                count += 1
        median[v] = np.median(spans[:count])
    return median


@njit(cache=True, nogil=True)
def mean_transfer(size: float, latency: float, inv_bandwidth: float) -> float:
    """Return the mean seconds that an object of this size takes; a pure precedence takes none."""
    if size > 0.0:
        return latency + size * inv_bandwidth
    return 0.0


@njit(cache=True, nogil=True)
def upward_ranks(p: Arrays, weight: Floats, latency: float, inv_bandwidth: float) -> Floats:
    """Return the longest path from the start of each task to the end of the graph.

    Without latency and inverse bandwidth this is the *static level*, with them the *b-level*.
    """
    n = weight.shape[0]
    rank = np.zeros(n)  # until its turn, a task holds the longest path behind it
    for i in range(n - 1, -1, -1):
        v = p.topo[i]
        rank[v] += weight[v]
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            rank[u] = max(rank[u], mean_transfer(p.in_size[e], latency, inv_bandwidth) + rank[v])
    return rank


@njit(cache=True, nogil=True)
def downward_ranks(p: Arrays, weight: Floats, latency: float, inv_bandwidth: float) -> Floats:
    """Return the longest path from the start of the graph to the start of each task."""
    n = weight.shape[0]
    rank = np.zeros(n)
    for i in range(n):
        v = p.topo[i]
        longest = 0.0
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            path = rank[u] + weight[u] + mean_transfer(p.in_size[e], latency, inv_bandwidth)
            longest = max(longest, path)
        rank[v] = longest
    return rank


@njit(cache=True, nogil=True)
def critical_path(p: Arrays, rank: Floats, latency: float, inv_bandwidth: float) -> Floats:
    """Return 1.0 for the tasks of one longest path by upward rank, and 0.0 for the others."""
    n = rank.shape[0]
    chosen = np.zeros(n)
    v = -1
    for u in range(n):
        if p.in_ptr[u] == p.in_ptr[u + 1] and (v < 0 or rank[u] > rank[v]):
            v = u
    while v >= 0:
        chosen[v] = 1.0
        following = -1
        longest = -1.0
        for o in range(p.out_ptr[v], p.out_ptr[v + 1]):
            cost = mean_transfer(p.object_size[o], latency, inv_bandwidth)
            for e in range(p.object_ptr[o], p.object_ptr[o + 1]):
                w = p.object_reader[e]
                if cost + rank[w] > longest or (cost + rank[w] == longest and w < following):
                    longest = cost + rank[w]
                    following = w
        v = following
    return chosen


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
