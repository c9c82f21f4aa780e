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

from typing import Any, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, pop_int, push_int, push_timed
from stretto.core.kernels.tournament import make_tournament, replay

_TASK_BITS = 32
_TASK_MASK = (1 << _TASK_BITS) - 1


class Board(NamedTuple):
    """What every device has before it; slices ``base[d] : base[d + 1]`` belong to device d."""

    base: Any  # [m+1]
    ready: Any  # [n] ranks, a heap per device
    num_ready: Any  # [m]
    later_time: Any  # [n] a heap per device
    later_key: Any  # [n] round << 32 | rank
    num_later: Any  # [m]
    free_time: Any  # [m] when the device is idle again
    free_round: Any  # [m]
    act_time: Any  # [m] when the device chooses next; inf = it has nothing
    act_round: Any  # [m]
    tree: Any


@njit(cache=True, nogil=True)
def run_priority(arrays: Any, device: Any, order: Any, rank: Any, seconds: Any, start: Any, finish: Any) -> Any:
    """Fill ``start`` and ``finish`` and return the number of tasks that ran, which is all of them."""
    n = device.size
    board = _make_board(device, arrays.device_class.size)
    missing = np.empty(n, dtype=np.int32)
    ready_time = arrays.release.copy()
    ready_round = np.zeros(n, dtype=np.int32)
    for task in range(n):
        missing[task] = arrays.in_ptr[task + 1] - arrays.in_ptr[task]
        if missing[task] == 0:
            _offer(board, device[task], rank[task], ready_time[task], 0)
    for count in range(n):
        here = board.tree[1]
        now = board.act_time[here]
        if now == np.inf:
            return count
        moment = board.act_round[here]
        task = order[_choose(board, here, now, moment)]
        end = now + seconds[task]
        end_round = moment + 1 if end == now else 0
        start[task] = now
        finish[task] = end
        board.free_time[here] = end
        board.free_round[here] = end_round
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
                    _offer(board, there, rank[reader], ready_time[reader], ready_round[reader])
        _schedule(board, here)
    return n


@njit(cache=True, nogil=True)
def _make_board(device: Any, num_devices: int) -> Any:
    n = device.size
    base = np.zeros(num_devices + 1, dtype=np.int64)
    for task in range(n):
        base[device[task] + 1] += 1
    for d in range(num_devices):
        base[d + 1] += base[d]
    return Board(
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
def _offer(board: Any, there: int, rank: int, time: float, round_: int) -> None:
    """Tell a device that a task of its own will be ready at a moment."""
    base = board.base[there]
    free = board.free_time[there]
    if time < free or (time == free and round_ <= board.free_round[there]):
        push_int(board.ready, base, board.num_ready[there], rank)
        board.num_ready[there] += 1
        act_time, act_round = free, board.free_round[there]
    else:
        push_timed(board.later_time, board.later_key, base, board.num_later[there], time, (round_ << _TASK_BITS) | rank)
        board.num_later[there] += 1
        act_time, act_round = time, round_
    before = board.act_time[there]
    if act_time < before or (act_time == before and act_round < board.act_round[there]):
        board.act_time[there] = act_time
        board.act_round[there] = act_round
        replay(board.tree, board.act_time, board.act_round, there)


@njit(cache=True, nogil=True)
def _choose(board: Any, here: int, now: float, moment: int) -> Any:
    """Take the lowest rank among the tasks that are ready on a device at this moment."""
    base = board.base[here]
    while board.num_later[here] > 0:
        time = board.later_time[base]
        key = board.later_key[base]
        if time > now or (time == now and (key >> _TASK_BITS) > moment):
            break
        drop_timed(board.later_time, board.later_key, base, board.num_later[here])
        board.num_later[here] -= 1
        push_int(board.ready, base, board.num_ready[here], key & _TASK_MASK)
        board.num_ready[here] += 1
    rank = pop_int(board.ready, base, board.num_ready[here])
    board.num_ready[here] -= 1
    return rank


@njit(cache=True, nogil=True)
def _schedule(board: Any, here: int) -> None:
    """Set when a device that has just started a task chooses next."""
    time = board.free_time[here]
    round_ = board.free_round[here]
    if board.num_ready[here] == 0:
        if board.num_later[here] == 0:
            time = np.inf
        else:
            base = board.base[here]
            first = board.later_time[base]
            first_round = board.later_key[base] >> _TASK_BITS
            if first > time or (first == time and first_round > round_):
                time, round_ = first, first_round
    board.act_time[here] = time
    board.act_round[here] = round_
    replay(board.tree, board.act_time, board.act_round, here)
