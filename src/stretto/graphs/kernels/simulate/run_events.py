"""The general event loop: queues or fair sharing on links, memory limits, both disciplines.

One turn of the loop is one *round* of ``graphs.reference``, step by step: settle what completes
now, queue what was requested, start tasks, start transfers. What takes no time comes up again as an event at
the same time, hence in the next round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, pop_int, push_int
from stretto.graphs.kernels.simulate.copies import make_copies
from stretto.graphs.kernels.simulate.event_state import (
    ARRIVAL,
    CANDIDATES,
    EVENTS,
    FAIR,
    FIFO,
    FINISHED,
    FREED,
    INDEX_MASK,
    JOINS,
    KIND_BITS,
    LATENCY_ENDS,
    RELEASE,
    REQUESTED,
    REQUESTS,
    STIRRED,
    TASK_ENDS,
    WAITING,
    make_copy_records,
    make_devices,
    make_objects,
    make_state,
    make_tasks,
    push_event,
)
from stretto.graphs.kernels.simulate.fair import (
    join_pair,
    join_route,
    leave_pair,
    make_flows,
    retime_pairs,
    take_finished,
)
from stretto.graphs.kernels.simulate.filling import DUE, IS_CHANGED, drop_flows, share_links
from stretto.graphs.kernels.simulate.links import enqueue, is_first, leave, make_queues

DONE = 0
STUCK = 1


@njit(cache=True, nogil=True)
def run_events(
    arrays: Any,
    device: Any,
    order: Any,
    rank: Any,
    seconds: Any,
    start: Any,
    finish: Any,
    in_sequence: bool,
    contention: int,
    routes: Any,
    limits: Any,
) -> Any:
    """Fill ``start`` and ``finish`` and return ``(status, time, device, task, used bytes, copies)``.

    ``limits`` holds memory limits, residents, bytes of tasks and of objects: all empty for none. When
    the execution is stuck, ``device`` and ``task`` name the first thing that cannot proceed.
    """
    limited = limits.limit.size > 0
    is_pair = routes.is_pair[0] == 1
    needed = make_copies(arrays, device)
    copies = make_copy_records(arrays, device, needed, is_pair)
    queues = make_queues(routes, copies, arrays.device_class.size, contention == FIFO)
    flows = make_flows(arrays, routes, copies, contention == FAIR)
    state = make_state(
        order,
        make_tasks(arrays, device, rank, seconds, needed, limits),
        make_devices(device, arrays.device_class.size, limits.limit, limits.resident),
        copies,
        make_objects(arrays, device, needed, limits.object),
        needed.reader,
        queues.slot_copy.size,
    )
    # Taken out of the tuples once: numba counts references to all arrays of a tuple wherever it is passed on.
    candidates, requests, joins, count = state.candidates, state.requests, state.joins, state.count
    classes, goal, copy_of, leaving = flows.classes, flows.goal, flows.copy_of, flows.leaving
    changed, next_time, tie, tree = flows.changed, flows.next_time, flows.tie, flows.tree
    links, share, index, at = flows.links, flows.share, flows.index, flows.at
    now = 0.0
    due = np.inf  # when the first flow leaves
    while True:
        time = min(_next_event(state), due)
        if time == np.inf:
            break
        now = time
        # Step 1: everything that completes now.
        while _next_event(state) == now:
            kind = state.event_key[0] >> KIND_BITS
            item = state.event_key[0] & INDEX_MASK
            drop_timed(state.event_time, state.event_key, 0, count[EVENTS])
            count[EVENTS] -= 1
            if kind == TASK_ENDS:
                if limited:
                    _free_after_task(arrays, needed.of_read, state, item)
                _complete_task(state, item, in_sequence, now)
            elif kind == ARRIVAL:
                if contention == FIFO:
                    pair = copies[item].pair
                    heads = leave(queues, routes, pair, item, candidates, count[CANDIDATES])
                    count[CANDIDATES] = heads
                _land(state, item, in_sequence, limited, now)
            elif kind == RELEASE:
                _make_ready(state, item, in_sequence)
            else:
                _add_join(state, item)
        while due == now:
            group = tree[1] if is_pair else index[at.due + index[DUE] - 1]
            taken = take_finished(classes, goal, copy_of, leaving, group, now)
            for place in range(taken):
                _land(state, leaving[place], in_sequence, limited, now)
            if is_pair:
                due = leave_pair(classes, next_time, tie, tree, changed, group)
            else:
                due = drop_flows(classes, links, index, at, group, taken, now)
        # Step 2: requests join their queues.
        if count[REQUESTS] > 0:
            first = count[CANDIDATES]
            _number_requests(copies, requests, candidates, count)
            if contention == FIFO:
                for place in range(first, count[CANDIDATES]):
                    copy = candidates[place]
                    enqueue(queues, routes, copies[copy].pair, copy)
        # Step 3: idle devices start their choices.
        for place in range(count[STIRRED]):
            _start_task(state, state.stirred[place], in_sequence, limited, now)
        count[STIRRED] = 0
        # Step 4: transfers start, flows join, rates are set.
        for place in range(count[CANDIDATES]):
            copy = candidates[place]
            if copies[copy].is_started:
                continue
            if contention == FIFO and not is_first(queues, routes, copies[copy].pair, copy):
                continue
            copies[copy].is_started = 1
            if limited:
                _wait_for_memory(state, copy)
            else:
                _start_transfer(state, copy, contention, now)
        count[CANDIDATES] = 0
        if count[FREED] > 0:
            _retry_waiting(state, contention, now)
        if contention == FAIR:
            for place in range(count[JOINS]):
                copy = joins[place]
                group, work = copies[copy].flow_class, copies[copy].work
                if is_pair:
                    join_pair(classes, goal, copy_of, changed, group, copy, work, now)
                else:
                    join_route(classes, goal, copy_of, links, index, at, group, copy, work, now)
            count[JOINS] = 0
            if changed[0] > 0:
                due = retime_pairs(classes, next_time, tie, tree, changed, now)
            if index[IS_CHANGED]:
                due = share_links(classes, links, index, share, at, now)
    for task in range(device.size):
        start[task] = state.tasks[task].start
        finish[task] = state.tasks[task].finish
    if state.count[FINISHED] == device.size:
        return DONE, now, -1, -1, 0.0, copies
    where, what = _find_stuck(state, in_sequence)
    return STUCK, now, where, what, state.devices[where].used, copies


@njit(cache=True, nogil=True)
def _next_event(state: Any) -> Any:
    return state.event_time[0] if state.count[EVENTS] > 0 else np.inf


@njit(cache=True, nogil=True)
def _complete_task(state: Any, here: int, in_sequence: bool, now: float) -> None:
    """Deliver what a finished task made where it is read locally, and request the transfers of the rest."""
    task = state.tasks[state.devices[here].running]
    state.devices[here].running = -1
    state.count[FINISHED] += 1
    _stir(state, here)
    for copy in range(task.first_copy, task.end_copy):
        if state.copies[copy].moves:
            state.requests[state.count[REQUESTS]] = copy
            state.count[REQUESTS] += 1
        else:
            _deliver(state, copy, in_sequence, now)


@njit(cache=True, nogil=True)
def _land(state: Any, copy: int, in_sequence: bool, limited: bool, now: float) -> None:
    """A transfer has arrived."""
    state.copies[copy].finish = now
    if limited:
        _need_less_at_home(state, state.copies[copy].item)
    _deliver(state, copy, in_sequence, now)


@njit(cache=True, nogil=True)
def _deliver(state: Any, copy: int, in_sequence: bool, now: float) -> None:
    """Tell the readers of a copy that it is there."""
    for index in range(state.copies[copy].first_reader, state.copies[copy].end_reader):
        reader = state.reader[index]
        task = state.tasks[reader]
        task.missing -= 1
        if task.missing == 0:
            if task.release > now:
                push_event(state, task.release, RELEASE, reader)
            else:
                _make_ready(state, reader, in_sequence)


@njit(cache=True, nogil=True)
def _make_ready(state: Any, index: int, in_sequence: bool) -> None:
    task = state.tasks[index]
    task.is_ready = 1
    if not in_sequence:
        here = state.devices[task.device]
        push_int(state.ready, here.base, here.num_ready, task.rank)
        here.num_ready += 1
    _stir(state, task.device)


@njit(cache=True, nogil=True)
def _stir(state: Any, here: int) -> None:
    """Note that a device may be able to start something in this round."""
    if not state.devices[here].is_stirred:
        state.devices[here].is_stirred = 1
        state.stirred[state.count[STIRRED]] = here
        state.count[STIRRED] += 1


@njit(cache=True, nogil=True)
def _add_join(state: Any, copy: int) -> None:
    state.joins[state.count[JOINS]] = copy
    state.count[JOINS] += 1


@njit(cache=True, nogil=True)
def _free_after_task(arrays: Any, copy_of_read: Any, state: Any, here: int) -> None:
    """Free what a finished task held, what only it still read, and outputs that nobody reads."""
    device = state.devices[here]
    task = device.running
    device.used -= state.tasks[task].own_bytes
    state.count[FREED] = 1
    for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        copy = state.copies[copy_of_read[read]]
        if copy.moves:
            copy.needs -= 1
            if copy.needs == 0:
                device.used -= state.objects[copy.item].num_bytes
        else:
            _need_less_at_home(state, copy.item)
    for item in range(arrays.out_ptr[task], arrays.out_ptr[task + 1]):
        if state.objects[item].needs == 0:
            device.used -= state.objects[item].num_bytes


@njit(cache=True, nogil=True)
def _need_less_at_home(state: Any, item: int) -> None:
    """Count down who needs an object on its producer's device; the last one frees it."""
    record = state.objects[item]
    record.needs -= 1
    if record.needs == 0:
        state.devices[record.home].used -= record.num_bytes
        state.count[FREED] = 1
        _stir(state, record.home)


@njit(cache=True, nogil=True)
def _number_requests(copies: Any, requests: Any, candidates: Any, count: Any) -> None:
    """Number the round's requests in the order of (object, target), which is that of the copies."""
    num_requests = count[REQUESTS]
    for place in range(num_requests):
        push_int(requests, 0, place, requests[place])
    for place in range(num_requests):
        copy = pop_int(requests, 0, num_requests - place)
        copies[copy].request = count[REQUESTED]
        count[REQUESTED] += 1
        candidates[count[CANDIDATES]] = copy
        count[CANDIDATES] += 1
    count[REQUESTS] = 0


@njit(cache=True, nogil=True)
def _start_task(state: Any, index: int, in_sequence: bool, limited: bool, now: float) -> None:
    """Let a device start its choice if it is idle and has one."""
    here = state.devices[index]
    here.is_stirred = 0
    if here.running >= 0:
        return
    chosen = _next_planned(state, index, limited) if in_sequence else _next_ranked(state, index, limited)
    if chosen < 0:
        return
    here.running = chosen
    task = state.tasks[chosen]
    task.start = now
    task.finish = now + task.seconds
    here.used += task.need_bytes
    push_event(state, task.finish, TASK_ENDS, index)


@njit(cache=True, nogil=True)
def _fits(state: Any, here: int, task: int) -> Any:
    return state.devices[here].used + state.tasks[task].need_bytes <= state.devices[here].limit


@njit(cache=True, nogil=True)
def _next_planned(state: Any, index: int, limited: bool) -> Any:
    """Take the next task of the device's own sequence if it is ready and fits, or return -1."""
    here = state.devices[index]
    if here.position == here.end:
        return -1
    task = state.planned[here.position]
    if not state.tasks[task].is_ready or (limited and not _fits(state, index, task)):
        return -1
    here.position += 1
    return task


@njit(cache=True, nogil=True)
def _next_ranked(state: Any, index: int, limited: bool) -> Any:
    """Take the ready task of lowest rank that fits, or return -1."""
    here = state.devices[index]
    found = -1
    num_aside = 0
    while here.num_ready > 0 and found < 0:
        rank = pop_int(state.ready, here.base, here.num_ready)
        here.num_ready -= 1
        if not limited or _fits(state, index, state.order[rank]):
            found = state.order[rank]
        else:
            state.aside[num_aside] = rank
            num_aside += 1
    for at in range(num_aside):
        push_int(state.ready, here.base, here.num_ready, state.aside[at])
        here.num_ready += 1
    return found


@njit(cache=True, nogil=True)
def _wait_for_memory(state: Any, copy: int) -> None:
    """Put a transfer among those that wait, which stand in the order of their requests."""
    at = state.count[WAITING]
    while at > 0 and state.copies[state.waiting[at - 1]].request > state.copies[copy].request:
        state.waiting[at] = state.waiting[at - 1]
        at -= 1
    state.waiting[at] = copy
    state.count[WAITING] += 1
    state.count[FREED] = 1  # it has not been tried yet


@njit(cache=True, nogil=True)
def _retry_waiting(state: Any, contention: int, now: float) -> None:
    """Start the waiting transfers that fit their targets now."""
    state.count[FREED] = 0
    kept = 0
    for index in range(state.count[WAITING]):
        copy = state.waiting[index]
        target = state.devices[state.copies[copy].device]
        need = state.objects[state.copies[copy].item].num_bytes
        if target.used + need <= target.limit:
            target.used += need
            _start_transfer(state, copy, contention, now)
        else:
            state.waiting[kept] = copy
            kept += 1
    state.count[WAITING] = kept


@njit(cache=True, nogil=True)
def _start_transfer(state: Any, index: int, contention: int, now: float) -> None:
    copy = state.copies[index]
    copy.start = now
    if contention != FAIR:
        push_event(state, now + copy.seconds, ARRIVAL, index)
    elif copy.latency > 0.0:
        push_event(state, now + copy.latency, LATENCY_ENDS, index)
    else:
        _add_join(state, index)


@njit(cache=True, nogil=True)
def _find_stuck(state: Any, in_sequence: bool) -> Any:
    """Return the first device with a ready task that does not fit, else the first waiting transfer's."""
    for index in range(state.devices.size):
        here = state.devices[index]
        if in_sequence:
            if here.position < here.end and state.tasks[state.planned[here.position]].is_ready:
                return index, state.planned[here.position]
        elif here.num_ready > 0:
            return index, state.order[state.ready[here.base]]
    if state.count[WAITING] > 0:
        copy = state.copies[state.waiting[0]]
        return copy.device, np.int64(state.reader[copy.first_reader])
    return 0, -1
