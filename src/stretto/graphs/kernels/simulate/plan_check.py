"""One pass over a plan: is it complete and possible, and how long does each task take?"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.core.kernels.compile import njit

OK = 0
BAD_DEVICE = 1
CANNOT_RUN = 2
BAD_ORDER = 3


@njit(cache=True, nogil=True)
def check_plan(arrays: Any, device: Any, order: Any, factor: Any, rank: Any, seconds: Any) -> Any:
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
def group_by_device(device: Any, order: Any, num_devices: int) -> Any:
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
