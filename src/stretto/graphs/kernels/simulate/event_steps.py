"""What happens to tasks, devices and transfers in a round of the general event loop."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import pop_int, push_int
from stretto.core.kernels.shapes import Arrays, Longs
from stretto.graphs.kernels.simulate.event_state import (
    ARRIVAL,
    EVENTS,
    FAIR,
    FINISHED,
    FREED,
    JOINS,
    LATENCY_ENDS,
    RELEASE,
    REQUESTS,
    STIRRED,
    TASK_ENDS,
    WAITING,
    EventState,
    push_event,
)


@njit(cache=True, nogil=True)
def next_event(state: EventState) -> float:
    return state.event_time[0] if state.counts[EVENTS] > 0 else np.inf


@njit(cache=True, nogil=True)
def complete_task(state: EventState, index: int, in_sequence: bool, now: float) -> None:
    """Deliver what a finished task made where it is read locally, and request the transfers of the rest."""
    task = state.tasks[index]
    state.devices[task.device].is_busy = 0
    for r in range(state.need.shape[1]):
        state.free[task.device, r] += state.need[index, r]
    state.counts[FINISHED] += 1
    stir(state, task.device)
    for copy in range(task.first_copy, task.end_copy):
        if state.copies[copy].moves:
            state.requests[state.counts[REQUESTS]] = copy
            state.counts[REQUESTS] += 1
        else:
            deliver(state, copy, in_sequence, now)


@njit(cache=True, nogil=True)
def land(state: EventState, copy: int, in_sequence: bool, limited: bool, now: float) -> None:
    """A transfer has arrived."""
    state.copies[copy].finish = now
    if limited:
        need_less_at_home(state, state.copies[copy].item)
    deliver(state, copy, in_sequence, now)


@njit(cache=True, nogil=True)
def deliver(state: EventState, copy: int, in_sequence: bool, now: float) -> None:
    """Tell the readers of a copy that it is there."""
    for index in range(state.copies[copy].first_reader, state.copies[copy].end_reader):
        reader = state.reader[index]
        task = state.tasks[reader]
        task.missing -= 1
        if task.missing == 0:
            if task.release > now:
                push_event(state, task.release, RELEASE, reader)
            else:
                make_ready(state, reader, in_sequence)


@njit(cache=True, nogil=True)
def make_ready(state: EventState, index: int, in_sequence: bool) -> None:
    task = state.tasks[index]
    task.is_ready = 1
    if not in_sequence:
        here = state.devices[task.device]
        push_int(state.ready, here.base, here.num_ready, task.rank)
        here.num_ready += 1
    stir(state, task.device)


@njit(cache=True, nogil=True)
def stir(state: EventState, here: int) -> None:
    """Note that a device may be able to start something in this round."""
    if not state.devices[here].is_stirred:
        state.devices[here].is_stirred = 1
        state.stirred[state.counts[STIRRED]] = here
        state.counts[STIRRED] += 1


@njit(cache=True, nogil=True)
def add_join(state: EventState, copy: int) -> None:
    state.joins[state.counts[JOINS]] = copy
    state.counts[JOINS] += 1


@njit(cache=True, nogil=True)
def free_after_task(arrays: Arrays, copy_of_read: Longs, state: EventState, task: int) -> None:
    """Free what a finished task held, what only it still read, and outputs that nobody reads."""
    device = state.devices[state.tasks[task].device]
    device.used -= state.tasks[task].own_bytes
    state.counts[FREED] = 1
    for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        copy = state.copies[copy_of_read[read]]
        if copy.moves:
            copy.needs -= 1
            if copy.needs == 0:
                device.used -= state.objects[copy.item].num_bytes
        else:
            need_less_at_home(state, copy.item)
    for item in range(arrays.out_ptr[task], arrays.out_ptr[task + 1]):
        if state.objects[item].needs == 0:
            device.used -= state.objects[item].num_bytes


@njit(cache=True, nogil=True)
def need_less_at_home(state: EventState, item: int) -> None:
    """Count down the uses of an object on its producer's device; the last one frees it."""
    record = state.objects[item]
    record.needs -= 1
    if record.needs == 0:
        state.devices[record.home].used -= record.num_bytes
        state.counts[FREED] = 1
        stir(state, record.home)


@njit(cache=True, nogil=True)
def start_task(state: EventState, index: int, in_sequence: bool, limited: bool, now: float) -> None:
    """Let a device start its choice if it is idle and has one, or a node all that fit."""
    here = state.devices[index]
    here.is_stirred = 0
    if here.packs:
        if in_sequence:
            start_planned(state, index, limited, now)
        else:
            start_ranked(state, index, limited, now)
        return
    if here.is_busy:
        return
    chosen = next_planned(state, index, limited) if in_sequence else next_ranked(state, index, limited)
    if chosen >= 0:
        begin_task(state, index, chosen, now)


@njit(cache=True, nogil=True)
def begin_task(state: EventState, index: int, chosen: int, now: float) -> None:
    """Take what a task holds, and note when it ends."""
    here = state.devices[index]
    here.is_busy = 1
    task = state.tasks[chosen]
    task.is_started = 1
    task.start = now
    task.finish = now + task.seconds
    here.used += task.need_bytes
    for r in range(state.need.shape[1]):
        state.free[index, r] -= state.need[chosen, r]
    push_event(state, task.finish, TASK_ENDS, chosen)


@njit(cache=True, nogil=True)
def start_planned(state: EventState, index: int, limited: bool, now: float) -> None:
    """Start tasks of a node's own sequence, as far as they are ready and fit."""
    task = next_planned(state, index, limited)
    while task >= 0:
        begin_task(state, index, task, now)
        task = next_planned(state, index, limited)


@njit(cache=True, nogil=True)
def start_ranked(state: EventState, index: int, limited: bool, now: float) -> None:
    """Start every ready task that fits on a node, lowest rank first."""
    here = state.devices[index]
    num_aside = 0
    while here.num_ready > 0 and has_room(state, index):
        rank = pop_int(state.ready, here.base, here.num_ready)
        here.num_ready -= 1
        if fits(state, index, state.order[rank], limited):
            begin_task(state, index, state.order[rank], now)
        else:
            state.aside[num_aside] = rank
            num_aside += 1
    for at in range(num_aside):
        push_int(state.ready, here.base, here.num_ready, state.aside[at])
        here.num_ready += 1


@njit(cache=True, nogil=True)
def has_room(state: EventState, index: int) -> bool:
    """Say whether a node could start the least demanding task there is."""
    for r in range(state.need.shape[1]):
        if state.least[r] > state.free[index, r]:
            return False
    return True


@njit(cache=True, nogil=True)
def fits(state: EventState, here: int, task: int, limited: bool) -> bool:
    """Say whether a task fits: its memory where that is limited, and all else that a node has."""
    if limited and state.devices[here].used + state.tasks[task].need_bytes > state.devices[here].limit:
        return False
    for r in range(state.need.shape[1]):
        if state.need[task, r] > state.free[here, r]:
            return False
    return True


@njit(cache=True, nogil=True)
def next_planned(state: EventState, index: int, limited: bool) -> int:
    """Take the next task of the device's own sequence if it is ready and fits, or return -1."""
    here = state.devices[index]
    if here.position == here.end:
        return -1
    task = state.planned[here.position]
    if not state.tasks[task].is_ready or not fits(state, index, task, limited):
        return -1
    here.position += 1
    return task


@njit(cache=True, nogil=True)
def next_ranked(state: EventState, index: int, limited: bool) -> int:
    """Take the ready task of lowest rank that fits, or return -1."""
    here = state.devices[index]
    found = -1
    num_aside = 0
    while here.num_ready > 0 and found < 0:
        rank = pop_int(state.ready, here.base, here.num_ready)
        here.num_ready -= 1
        if fits(state, index, state.order[rank], limited):
            found = state.order[rank]
        else:
            state.aside[num_aside] = rank
            num_aside += 1
    for at in range(num_aside):
        push_int(state.ready, here.base, here.num_ready, state.aside[at])
        here.num_ready += 1
    return found


@njit(cache=True, nogil=True)
def begin_transfer(state: EventState, copy: int, contention: int, limited: bool, now: float) -> None:
    """Start a transfer that has its links to itself, or let it wait for memory."""
    state.copies[copy].is_started = 1
    if limited:
        wait_for_memory(state, copy)
    else:
        start_transfer(state, copy, contention, now)


@njit(cache=True, nogil=True)
def wait_for_memory(state: EventState, copy: int) -> None:
    """Put a transfer among those that wait, which stand in the order of their requests."""
    at = state.counts[WAITING]
    while at > 0 and state.copies[state.waiting[at - 1]].request > state.copies[copy].request:
        state.waiting[at] = state.waiting[at - 1]
        at -= 1
    state.waiting[at] = copy
    state.counts[WAITING] += 1
    state.counts[FREED] = 1  # it has not been tried yet


@njit(cache=True, nogil=True)
def retry_waiting(state: EventState, contention: int, now: float) -> None:
    """Start the waiting transfers that fit their targets now."""
    state.counts[FREED] = 0
    kept = 0
    for index in range(state.counts[WAITING]):
        copy = state.waiting[index]
        target = state.devices[state.copies[copy].device]
        need = state.objects[state.copies[copy].item].num_bytes
        if target.used + need <= target.limit:
            target.used += need
            start_transfer(state, copy, contention, now)
        else:
            state.waiting[kept] = copy
            kept += 1
    state.counts[WAITING] = kept


@njit(cache=True, nogil=True)
def start_transfer(state: EventState, index: int, contention: int, now: float) -> None:
    copy = state.copies[index]
    copy.start = now
    if contention != FAIR:
        push_event(state, now + copy.seconds, ARRIVAL, index)
    elif copy.latency > 0.0:
        push_event(state, now + copy.latency, LATENCY_ENDS, index)
    else:
        add_join(state, index)


@njit(cache=True, nogil=True)
def find_stuck(state: EventState, in_sequence: bool) -> tuple[int, int | np.int64]:
    """Return the first device with a ready task that does not fit, else the first waiting transfer's."""
    for index in range(state.devices.size):
        here = state.devices[index]
        if in_sequence:
            if here.position < here.end and state.tasks[state.planned[here.position]].is_ready:
                return index, state.planned[here.position]
        elif here.num_ready > 0:
            return index, state.order[state.ready[here.base]]
    if state.counts[WAITING] > 0:
        copy = state.copies[state.waiting[0]]
        return copy.device, np.int64(state.reader[copy.first_reader])
    return 0, -1
