"""The optimistic cost table: the shortest way to the end behind a task, by its device."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats
from stretto.graphs.kernels.construct.ranks import mean_transfer


@njit(cache=True, nogil=True)
def optimistic_costs(p: Arrays) -> Floats:
    """Return the table [n, m] with the transfer time of each actual link.

    ``table[v, d]`` is the maximum over the tasks w that read from v of the minimum over
    devices q of ``table[w, q] + duration[w, q] + transfer from d to q``; zero behind the last task.
    """
    n = p.duration.shape[0]
    m = p.device_class.shape[0]
    table = np.zeros((n, m))
    # Row q holds the links that lead to q: the inner loop then runs along memory.
    latency = np.ascontiguousarray(p.latency.T)
    inv_bandwidth = np.ascontiguousarray(p.inv_bandwidth.T)
    onward = np.empty(m)
    least = np.empty(m)
    for i in range(n - 1, -1, -1):
        w = p.topo[i]
        for q in range(m):
            onward[q] = table[w, q] + p.duration[w, p.device_class[q]]
        for e in range(p.in_ptr[w], p.in_ptr[w + 1]):
            size = p.in_size[e]
            if size > 0.0:
                _cheapest(latency, inv_bandwidth, onward, size, least)
            else:
                least[:] = onward.min()
            before = table[p.in_task[e]]
            for d in range(m):
                if least[d] > before[d]:
                    before[d] = least[d]
    return table


@njit(cache=True, nogil=True)
def _cheapest(latency: Floats, inv_bandwidth: Floats, onward: Floats, size: float, least: Floats) -> None:
    """Fill, for each device d, the least of sending to q and going on from there."""
    m = onward.shape[0]
    least[:] = np.inf
    for q in range(m):
        base = onward[q]
        if base == np.inf:
            continue
        wait = latency[q]
        rate = inv_bandwidth[q]
        for d in range(m):
            cost = base + (wait[d] + size * rate[d])
            if cost < least[d]:
                least[d] = cost


@njit(cache=True, nogil=True)
def optimistic_costs_by_mean(p: Arrays, latency: float, inv_bandwidth: float) -> Floats:
    """Return the table [n, m] as the paper has it: one mean transfer time for all links."""
    n = p.duration.shape[0]
    m = p.device_class.shape[0]
    table = np.zeros((n, m))
    onward = np.empty(m)
    for i in range(n - 1, -1, -1):
        w = p.topo[i]
        least = np.inf
        for q in range(m):
            onward[q] = table[w, q] + p.duration[w, p.device_class[q]]
            least = min(least, onward[q])
        for e in range(p.in_ptr[w], p.in_ptr[w + 1]):
            moved = least + mean_transfer(p.in_size[e], latency, inv_bandwidth)
            before = table[p.in_task[e]]
            for d in range(m):
                cost = min(onward[d], moved)
                if cost > before[d]:
                    before[d] = cost
    return table


@njit(cache=True, nogil=True)
def mean_rows(p: Arrays, table: Floats) -> Floats:
    """Return the mean of each task's row over the devices that can run the task."""
    n, m = table.shape
    mean = np.empty(n)
    for v in range(n):
        total = 0.0
        count = 0
        for d in range(m):
            if p.duration[v, p.device_class[d]] < np.inf:
                total += table[v, d]
                count += 1
        mean[v] = total / count
    return mean
