"""Ranks: how far each task is from the end and from the start, in mean costs."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats


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
