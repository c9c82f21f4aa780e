"""Execute a plan work-conserving without link contention or memory limits: the fast event loop.

When a task starts, its finish is known, and with it the arrival of its outputs everywhere. So a
reader's ready moment is known as soon as its last producer has *started*, and the only events
left are "device d chooses its next task". These are taken in order of time from a tournament.

A moment is a pair (time, round): things that take no time happen at the same time one round
later, exactly as ``graphs.reference`` defines. Each device keeps two heaps: tasks that are ready when it
chooses next, by rank, and tasks whose data comes later, by moment. A task whose data arrives while its
device is still busy goes straight to the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, pop_int, push_int, push_timed
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Longs
from stretto.core.kernels.tournament import make_tournament, replay

_TASK_BITS = 32
_TASK_MASK = (1 << _TASK_BITS) - 1


class DeviceQueues(NamedTuple):
    """The tasks that wait for each device; slices ``base[d] : base[d + 1]`` belong to device d."""

    base: Longs  # [m+1]
    ready: Ints  # [n] ranks, a heap per device
    num_ready: Longs  # [m]
    later_time: Floats  # [n] a heap per device
    later_key: Longs  # [n] round << 32 | rank
    num_later: Longs  # [m]
    free_time: Floats  # [m] when the device is idle again
    free_round: Longs  # [m]
    act_time: Floats  # [m] when the device chooses next; inf = it has nothing
    act_round: Longs  # [m]
    tree: Longs


@njit(cache=True, nogil=True)
def run_priority(
    arrays: Arrays, device: Ints, order: Ints, rank: Ints, seconds: Floats, start: Floats, finish: Floats
) -> int:
    """Fill ``start`` and ``finish`` and return the number of tasks that ran, which is all of them."""
    n = device.size
    queues = _make_queues(device, arrays.device_class.size)
    missing = np.empty(n, dtype=np.int32)
    ready_time = arrays.release.copy()
    ready_round = np.zeros(n, dtype=np.int32)
    for task in range(n):
        missing[task] = arrays.in_ptr[task + 1] - arrays.in_ptr[task]
        if missing[task] == 0:
            _offer(queues, device[task], rank[task], ready_time[task], 0)
    for count in range(n):
        here = queues.tree[1]
        now = queues.act_time[here]
        if now == np.inf:
            return count
        moment = queues.act_round[here]
        task = order[_choose(queues, here, now, moment)]
        end = now + seconds[task]
        end_round = moment + 1 if end == now else 0
        start[task] = now
        finish[task] = end
        queues.free_time[here] = end
        queues.free_round[here] = end_round
        for item in range(arrays.out_ptr[task], arrays.out_ptr[task + 1]):
            size = arrays.object_size[item]
            for read in range(arrays.object_ptr[item], arrays.object_ptr[item + 1]):
                reader = arrays.object_reader[read]
                there = device[reader]
                time, round_ = end, end_round
                if there != here and size > 0.0:
                    time = end + (arrays.latency[here, there] + size * arrays.inv_bandwidth[here, there])
                    round_ = end_round + 1 if time == end else 0
                if time > ready_time[reader]:
                    ready_time[reader] = time
                    ready_round[reader] = round_
                elif time == ready_time[reader] and round_ > ready_round[reader]:
                    ready_round[reader] = round_
                missing[reader] -= 1
                if missing[reader] == 0:
                    _offer(queues, there, rank[reader], ready_time[reader], ready_round[reader])
        _schedule(queues, here)
    return n


@njit(cache=True, nogil=True)
def _make_queues(device: Ints, num_devices: int) -> DeviceQueues:
    n = device.size
    base = np.zeros(num_devices + 1, dtype=np.int64)
    for task in range(n):
        base[device[task] + 1] += 1
    for d in range(num_devices):
        base[d + 1] += base[d]
    return DeviceQueues(
        base,
        np.empty(n, dtype=np.int32),
        np.zeros(num_devices, dtype=np.int64),
        np.empty(n, dtype=np.float64),
        np.empty(n, dtype=np.int64),
        np.zeros(num_devices, dtype=np.int64),
        np.full(num_devices, -1.0),  # before time zero, so that what is ready at zero comes "later"
        np.zeros(num_devices, dtype=np.int64),
        np.full(num_devices, np.inf),
        np.zeros(num_devices, dtype=np.int64),
        make_tournament(num_devices),
    )


@njit(cache=True, nogil=True)
def _offer(queues: DeviceQueues, there: int, rank: int, time: float, round_: int) -> None:
    """Tell a device that a task of its own will be ready at a moment."""
    base = queues.base[there]
    free = queues.free_time[there]
    if time < free or (time == free and round_ <= queues.free_round[there]):
        push_int(queues.ready, base, queues.num_ready[there], rank)
        queues.num_ready[there] += 1
        act_time, act_round = free, queues.free_round[there]
    else:
        push_timed(
            queues.later_time, queues.later_key, base, queues.num_later[there], time, (round_ << _TASK_BITS) | rank
        )
        queues.num_later[there] += 1
        act_time, act_round = time, round_
    before = queues.act_time[there]
    if act_time < before or (act_time == before and act_round < queues.act_round[there]):
        queues.act_time[there] = act_time
        queues.act_round[there] = act_round
        replay(queues.tree, queues.act_time, queues.act_round, there)


@njit(cache=True, nogil=True)
def _choose(queues: DeviceQueues, here: int, now: float, moment: int) -> int:
    """Take the lowest rank among the tasks that are ready on a device at this moment."""
    base = queues.base[here]
    while queues.num_later[here] > 0:
        time = queues.later_time[base]
        key = queues.later_key[base]
        if time > now or (time == now and (key >> _TASK_BITS) > moment):
            break
        drop_timed(queues.later_time, queues.later_key, base, queues.num_later[here])
        queues.num_later[here] -= 1
        push_int(queues.ready, base, queues.num_ready[here], key & _TASK_MASK)
        queues.num_ready[here] += 1
    rank = pop_int(queues.ready, base, queues.num_ready[here])
    queues.num_ready[here] -= 1
    return rank


@njit(cache=True, nogil=True)
def _schedule(queues: DeviceQueues, here: int) -> None:
    """Set when a device that has just started a task chooses next."""
    time = queues.free_time[here]
    round_ = queues.free_round[here]
    if queues.num_ready[here] == 0:
        if queues.num_later[here] == 0:
            time = np.inf
        else:
            base = queues.base[here]
            first = queues.later_time[base]
            first_round = queues.later_key[base] >> _TASK_BITS
            if first > time or (first == time and first_round > round_):
                time, round_ = first, first_round
    queues.act_time[here] = time
    queues.act_round[here] = round_
    replay(queues.tree, queues.act_time, queues.act_round, here)
