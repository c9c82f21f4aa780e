"""When the data of a task is where it is needed."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints


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
