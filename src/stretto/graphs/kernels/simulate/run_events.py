"""The general event loop: queues or fair sharing on links, memory limits, both disciplines.

One turn of the loop is one *round* of ``graphs.reference``, step by step: settle what completes
now, queue what was requested, start tasks, start transfers. What takes no time comes up again as an event at
the same time, hence in the next round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, pop_int, push_int
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Longs, Records
from stretto.graphs.kernels.simulate.copies import Copies, make_copies
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
    RELEASE,
    REQUESTED,
    REQUESTS,
    STIRRED,
    TASK_ENDS,
    EventState,
    make_copy_records,
    make_devices,
    make_objects,
    make_state,
    make_tasks,
)
from stretto.graphs.kernels.simulate.event_steps import (
    add_join,
    begin_transfer,
    complete_task,
    find_stuck,
    free_after_task,
    land,
    make_ready,
    next_event,
    retry_waiting,
    start_task,
)
from stretto.graphs.kernels.simulate.fair import (
    Flows,
    join_pair,
    join_route,
    leave_pair,
    make_flows,
    retime_pairs,
    take_finished,
)
from stretto.graphs.kernels.simulate.filling import DUE, IS_CHANGED, drop_flows, share_links
from stretto.graphs.kernels.simulate.links import LinkQueues, Routes, enqueue, is_first, leave, make_queues

if TYPE_CHECKING:
    from stretto.graphs.conditions import Loads

DONE = 0
STUCK = 1


class PlanArrays(NamedTuple):
    """A checked plan: device, position and seconds of each task, and the task at each position."""

    device: Ints  # [n]
    order: Ints  # [n]
    rank: Ints  # [n]
    seconds: Floats  # [n]


@njit(cache=True, nogil=True)
def run_events(
    arrays: Arrays, plan: PlanArrays, in_sequence: bool, contention: int, routes: Routes, loads: Loads
) -> tuple[int, float, int, int | np.int64, float, Records, Records]:
    """Return ``(status, time, device, task, used bytes, tasks, copies)``; the last two are records with times.

    ``loads`` holds memory limits, residents, bytes of tasks and of objects, and what nodes have and tasks need:
    empty for none. When the execution is stuck, ``device`` and ``task`` name the first thing that cannot proceed.
    """
    limited, is_pair = loads.memory.limit.size > 0, routes.is_pair[0] == 1
    needed, queues, flows, state = _prepare(arrays, plan, contention, routes, loads)
    # Taken out of the tuples once, and one long loop: numba counts references to all arrays of a tuple in every call.
    copies, candidates, requests, count = state.copies, state.candidates, state.requests, state.counts
    classes, goal, copy_of, leaving = flows.classes, flows.goal, flows.copy_of, flows.leaving
    changed, next_time, tie, tree = flows.changed, flows.next_time, flows.tie, flows.tree
    links, share, index, at = flows.links, flows.share, flows.lists, flows.at
    now, due = 0.0, np.inf  # due: when the first flow leaves
    while True:
        time = min(next_event(state), due)
        if time == np.inf:
            break
        now = time
        while next_event(state) == now:  # step 1: everything that completes now
            kind = state.event_key[0] >> KIND_BITS
            item = state.event_key[0] & INDEX_MASK
            drop_timed(state.event_time, state.event_key, 0, count[EVENTS])
            count[EVENTS] -= 1
            if kind == TASK_ENDS:
                if limited:
                    free_after_task(arrays, needed.of_read, state, item)
                complete_task(state, item, in_sequence, now)
            elif kind == ARRIVAL:
                if contention == FIFO:
                    count[CANDIDATES] = leave(queues, routes, copies[item].pair, item, candidates, count[CANDIDATES])
                land(state, item, in_sequence, limited, now)
            elif kind == RELEASE:
                make_ready(state, item, in_sequence)
            else:
                add_join(state, item)
        while due == now:
            group = tree[1] if is_pair else index[at.due + index[DUE] - 1]
            taken = take_finished(classes, goal, copy_of, leaving, group, now)
            for place in range(taken):
                land(state, leaving[place], in_sequence, limited, now)
            if is_pair:
                due = leave_pair(classes, next_time, tie, tree, changed, group)
            else:
                due = drop_flows(classes, links, index, at, group, taken, now)
        if count[REQUESTS] > 0:  # step 2: requests join their queues
            first = count[CANDIDATES]
            _number_requests(copies, requests, candidates, count)
            for place in range(first if contention == FIFO else count[CANDIDATES], count[CANDIDATES]):
                enqueue(queues, routes, copies[candidates[place]].pair, candidates[place])
        for place in range(count[STIRRED]):  # step 3: idle devices start their choices
            start_task(state, state.stirred[place], in_sequence, limited, now)
        count[STIRRED] = 0
        for place in range(count[CANDIDATES]):  # step 4: transfers start, flows join, rates are set
            copy = candidates[place]
            if not copies[copy].is_started and (
                contention != FIFO or is_first(queues, routes, copies[copy].pair, copy)
            ):
                begin_transfer(state, copy, contention, limited, now)
        count[CANDIDATES] = 0
        if count[FREED] > 0:
            retry_waiting(state, contention, now)
        for place in range(count[JOINS]):  # under fair sharing only
            copy = state.joins[place]
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
    if count[FINISHED] == plan.device.size:
        return DONE, now, -1, -1, 0.0, state.tasks, copies
    where, what = find_stuck(state, in_sequence)
    return STUCK, now, where, what, state.devices[where].used, state.tasks, copies


@njit(cache=True, nogil=True)
def _prepare(
    arrays: Arrays, plan: PlanArrays, contention: int, routes: Routes, loads: Loads
) -> tuple[Copies, LinkQueues, Flows, EventState]:
    """Return the copies that the plan needs, the links' queues and flows, and the state before time zero."""
    device, num_devices = plan.device, arrays.device_class.size
    limits, packs = loads.memory, loads.packs
    needed = make_copies(arrays, device)
    copies = make_copy_records(arrays, device, needed, routes.is_pair[0] == 1)
    queues = make_queues(routes, copies, num_devices, contention == FIFO)
    flows = make_flows(arrays, routes, copies, contention == FAIR)
    state = make_state(
        plan.order,
        make_tasks(arrays, device, plan.rank, plan.seconds, needed, limits),
        make_devices(device, num_devices, limits.limit, limits.resident, packs.packs),
        copies,
        make_objects(arrays, device, needed, limits.object),
        needed.reader,
        queues.slot_copy.size,
        packs,
    )
    return needed, queues, flows, state


@njit(cache=True, nogil=True)
def _number_requests(copies: Records, requests: Longs, candidates: Longs, count: Longs) -> None:
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
