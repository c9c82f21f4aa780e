"""Longest paths through a graph with the task that follows on each: b-level and t-level chains."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints


@njit(cache=True, nogil=True)
def bottom_chain(p: Arrays, weight: Floats, move_s: Floats) -> tuple[Floats, Ints]:
    """Return each task's b-level and the task after it on that path (-1 at the end).

    ``b(v) = weight(v) + max over readers c of (move_s of what c reads from v + b(c))``.
    Ties go to the lower index.
    """
    n = weight.shape[0]
    level = weight.copy()
    following = np.full(n, -1, dtype=np.int32)
    for i in range(n - 1, -1, -1):
        v = p.topo[i]
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            _lengthen(level, following, u, v, weight[u] + move_s[e] + level[v])
    return level, following


@njit(cache=True, nogil=True)
def top_chain(p: Arrays, weight: Floats, move_s: Floats) -> tuple[Floats, Ints]:
    """Return each task's t-level, its own weight included, and the task before it on that path."""
    n = weight.shape[0]
    level = weight.copy()
    before = np.full(n, -1, dtype=np.int32)
    for i in range(n):
        v = p.topo[i]
        for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
            u = p.in_task[e]
            _lengthen(level, before, v, u, weight[v] + move_s[e] + level[u])
    return level, before


@njit(cache=True, nogil=True, inline="always")
def _lengthen(level: Floats, neighbour: Ints, v: int, u: int, path: float) -> None:
    """Take a path from v by way of u where it is the longest, or as long by a lower index."""
    if path > level[v] or (path == level[v] and (neighbour[v] < 0 or u < neighbour[v])):
        level[v] = path
        neighbour[v] = u
