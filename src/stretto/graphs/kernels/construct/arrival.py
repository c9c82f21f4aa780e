"""What every construction begins with: empty devices, the first ready tasks, and when data is where it is needed."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints


@njit(cache=True, nogil=True)
def open_devices(p: Arrays) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """Return room for assignment, start and finish; when devices are free, which is at once; and a row of devices."""
    n = p.release.shape[0]
    m = p.device_class.shape[0]
    return np.empty(n, dtype=np.int32), np.empty(n), np.empty(n), np.zeros(m), np.empty(m)


@njit(cache=True, nogil=True)
def first_ready(p: Arrays) -> tuple[Ints, Ints, int]:
    """Return how many reads each task misses, and those that miss none: as an array with room for all, and how many."""
    n = p.release.shape[0]
    missing = np.empty(n, dtype=np.int32)
    fresh = np.empty(n, dtype=np.int32)
    num_fresh = 0
    for v in range(n):
        missing[v] = p.in_ptr[v + 1] - p.in_ptr[v]
        if missing[v] == 0:
            fresh[num_fresh] = v
            num_fresh += 1
    return missing, fresh, num_fresh


@njit(cache=True, nogil=True)
def ready_everywhere(p: Arrays, assign: Ints, finish: Floats, v: int, row: Floats) -> None:
    """Fill ``row`` with the time at which task v could start on each device, were all idle.

    Data of tasks without a device (-1) is left out. Adding whole rows of the link matrices lets
    the compiler use vector code; their zero diagonal makes the device of the data free. All of
    it stands in one function because a call inside the loop costs ten times the loop.
    """
    for d in range(row.shape[0]):
        row[d] = p.release[v]
    for e in range(p.in_ptr[v], p.in_ptr[v + 1]):
        u = p.in_task[e]
        source = assign[u]
        at = finish[u]
        size = p.in_size[e]
        if source < 0:
            continue
        if size > 0.0:
            for d in range(row.shape[0]):
                there = at + (p.latency[source, d] + size * p.inv_bandwidth[source, d])
                if there > row[d]:
                    row[d] = there
        else:
            for d in range(row.shape[0]):
                if at > row[d]:
                    row[d] = at
