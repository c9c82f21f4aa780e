"""Check a plan, and execute it in sequence without link contention: no choices, hence no event queue."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Longs

#: How an execution ended.
DONE = 0
DEADLOCK = 1
#: What is wrong with a plan.
OK = 0
BAD_DEVICE = 1
CANNOT_RUN = 2
BAD_ORDER = 3


@njit(cache=True, nogil=True)
def run_sequence(arrays: Arrays, device: Ints, order: Ints, seconds: Floats, start: Floats, finish: Floats) -> int:
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
def _earliest(arrays: Arrays, device: Ints, finish: Floats, task: int) -> float:
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
def _run(
    device: Ints, seconds: Floats, start: Floats, finish: Floats, free: Floats, task: int, earliest: float
) -> None:
    here = device[task]
    start[task] = max(free[here], earliest)
    finish[task] = start[task] + seconds[task]
    free[here] = finish[task]


@njit(cache=True, nogil=True)
def _by_worklist(
    arrays: Arrays, device: Ints, order: Ints, seconds: Floats, start: Floats, finish: Floats, free: Floats
) -> int:
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


@njit(cache=True, nogil=True)
def check_plan(
    arrays: Arrays, device: Ints, order: Ints, factor: Floats, rank: Ints, seconds: Floats
) -> tuple[int, int]:
    """Fill ``rank`` and ``seconds`` and return ``(status, position or task at fault)``.

    ``factor`` multiplies the durations and is empty where there is no noise.
    """
    n = device.size
    m = arrays.device_class.size
    for task in range(n):
        rank[task] = -1
        if device[task] < 0 or device[task] >= m:
            return BAD_DEVICE, task
        seconds[task] = arrays.duration[task, arrays.device_class[device[task]]]
        if not seconds[task] < np.inf:
            return CANNOT_RUN, task
        if factor.size:
            seconds[task] *= factor[task]
    for position in range(n):
        task = order[position]
        if task < 0 or task >= n or rank[task] >= 0:
            return BAD_ORDER, position
        rank[task] = position
    return OK, -1


@njit(cache=True, nogil=True)
def group_by_device(device: Ints, order: Ints | Longs, num_devices: int) -> tuple[Longs, Ints]:
    """Return ``(base, tasks)``: device d runs ``tasks[base[d] : base[d + 1]]``, in the plan's order."""
    base = np.zeros(num_devices + 1, dtype=np.int64)
    for task in range(device.size):
        base[device[task] + 1] += 1
    for d in range(num_devices):
        base[d + 1] += base[d]
    fill = base[:-1].copy()
    tasks = np.empty(device.size, dtype=np.int32)
    for position in range(order.size):
        task = order[position]
        tasks[fill[device[task]]] = task
        fill[device[task]] += 1
    return base, tasks
