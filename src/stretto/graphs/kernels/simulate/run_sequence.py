"""Execute a plan in sequence without link contention: no choices, hence no event queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.graphs.kernels.simulate.plan_check import group_by_device

DONE = 0
DEADLOCK = 1


@njit(cache=True, nogil=True)
def run_sequence(arrays: Any, device: Any, order: Any, seconds: Any, start: Any, finish: Any) -> Any:
    """Fill ``start`` and ``finish`` and return DONE, or DEADLOCK where device orders contradict the graph.

    After a deadlock, tasks that could not run have a finish of -1.
    """
    n = device.size
    free = np.zeros(arrays.device_class.size)
    for task in range(n):
        finish[task] = -1.0
    for position in range(n):
        task = order[position]
        earliest = _earliest(arrays, device, finish, task)
        if earliest < 0.0:
            # The order is not topological; it may still be possible device by device.
            return _by_worklist(arrays, device, order, seconds, start, finish, free)
        _run(device, seconds, start, finish, free, task, earliest)
    return DONE


@njit(cache=True, nogil=True)
def _earliest(arrays: Any, device: Any, finish: Any, task: int) -> Any:
    """Return when all that a task reads is on its device, or -1 when a producer has not run."""
    here = device[task]
    earliest = arrays.release[task]
    for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        producer = arrays.in_task[read]
        arrival = finish[producer]
        if arrival < 0.0:
            return -1.0
        there = device[producer]
        size = arrays.in_size[read]
        if there != here and size > 0.0:
            arrival += arrays.latency[there, here] + size * arrays.inv_bandwidth[there, here]
        earliest = max(earliest, arrival)
    return earliest


@njit(cache=True, nogil=True)
def _run(device: Any, seconds: Any, start: Any, finish: Any, free: Any, task: int, earliest: float) -> None:
    here = device[task]
    start[task] = max(free[here], earliest)
    finish[task] = start[task] + seconds[task]
    free[here] = finish[task]


@njit(cache=True, nogil=True)
def _by_worklist(arrays: Any, device: Any, order: Any, seconds: Any, start: Any, finish: Any, free: Any) -> int:
    """Advance each device through its own sequence as far as data allows, until nothing moves."""
    n = device.size
    m = free.size
    base, tasks = group_by_device(device, order, m)
    at = base[:-1].copy()
    missing = np.empty(n, dtype=np.int32)
    for task in range(n):
        missing[task] = arrays.in_ptr[task + 1] - arrays.in_ptr[task]
        finish[task] = -1.0
    for d in range(m):
        free[d] = 0.0
    # A device stands here at most twice: from the beginning, and since its next task lost its last gap.
    work = np.empty(2 * m, dtype=np.int32)
    for d in range(m):
        work[d] = m - 1 - d
    num_work = m
    num_done = 0
    while num_work > 0:
        num_work -= 1
        here = work[num_work]
        while at[here] < base[here + 1] and missing[tasks[at[here]]] == 0:
            task = tasks[at[here]]
            at[here] += 1
            num_done += 1
            _run(device, seconds, start, finish, free, task, _earliest(arrays, device, finish, task))
            for item in range(arrays.out_ptr[task], arrays.out_ptr[task + 1]):
                for read in range(arrays.object_ptr[item], arrays.object_ptr[item + 1]):
                    reader = arrays.object_reader[read]
                    missing[reader] -= 1
                    there = device[reader]
                    if missing[reader] == 0 and there != here and tasks[at[there]] == reader:
                        work[num_work] = there
                        num_work += 1
    return DONE if num_done == n else DEADLOCK
