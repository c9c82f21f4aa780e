"""The state of the general event loop: one record per task, device, copy and object.

Records rather than an array per field, because numba counts references to every array of a tuple at every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import push_timed
from stretto.core.kernels.records import record
from stretto.core.kernels.shapes import Arrays, Flags, Floats, Ints, Longs, Records
from stretto.graphs.kernels.simulate.copies import Copies
from stretto.graphs.kernels.simulate.run_sequence import group_by_device

if TYPE_CHECKING:
    from stretto.graphs.conditions import MemoryLoad, PackLoad

NO_CONTENTION = 0
FIFO = 1
FAIR = 2

# Kinds of events.
TASK_ENDS = 0  # index = task
ARRIVAL = 1  # index = copy
RELEASE = 2  # index = task
LATENCY_ENDS = 3  # index = copy
KIND_BITS = 40
INDEX_MASK = (1 << KIND_BITS) - 1

# Places in EventState.counts.
EVENTS = 0
REQUESTS = 1
CANDIDATES = 2
JOINS = 3
STIRRED = 4
FINISHED = 5
REQUESTED = 6
WAITING = 7
FREED = 8
NUM_COUNTS = 9

TASK = record(
    [
        ("device", np.int64),
        ("rank", np.int64),
        ("missing", np.int64),  # reads still to come
        ("is_ready", np.int64),
        ("is_started", np.int64),
        ("first_copy", np.int64),  # copies of its outputs
        ("end_copy", np.int64),
        ("release", np.float64),
        ("seconds", np.float64),
        ("start", np.float64),
        ("finish", np.float64),
        ("own_bytes", np.float64),
        ("need_bytes", np.float64),  # its own and its outputs'
    ]
)
DEVICE = record(
    [
        ("base", np.int64),  # its slice of EventState.planned and ready
        ("end", np.int64),
        ("position", np.int64),  # next of planned
        ("num_ready", np.int64),
        ("is_busy", np.int64),  # 1 = a device that runs one task at a time has one
        ("packs", np.int64),  # 1 = a node
        ("is_stirred", np.int64),
        ("used", np.float64),  # bytes
        ("limit", np.float64),
    ]
)
COPY = record(
    [
        ("item", np.int64),  # the object
        ("device", np.int64),
        ("pair", np.int64),  # source * m + device
        ("moves", np.int64),  # 1 = a transfer
        ("is_started", np.int64),  # 1 = moving, or waiting for memory only
        ("request", np.int64),  # number of the request
        ("flow_class", np.int64),
        ("first_reader", np.int64),  # its slice of EventState.reader
        ("end_reader", np.int64),
        ("needs", np.int64),  # readers still to finish
        ("latency", np.float64),
        ("seconds", np.float64),  # over idle links
        ("work", np.float64),  # what fair sharing serves: seconds on pair links, bytes on routes
        ("start", np.float64),
        ("finish", np.float64),
    ]
)
OBJECT = record(
    [
        ("home", np.int64),
        ("needs", np.int64),  # local readers and outgoing transfers still to finish
        ("num_bytes", np.float64),
    ]
)


class EventState(NamedTuple):
    """Records, future events, and what the present round has to do."""

    tasks: Records  # [n] TASK
    devices: Records  # [m] DEVICE
    copies: Records  # [K] COPY
    objects: Records  # [O] OBJECT; empty without memory limits
    reader: Ints  # [E] readers by copy
    order: Ints  # [n] task of each rank
    planned: Longs  # [n] tasks by device, in planned order
    ready: Longs  # [n] ranks, a heap per device
    event_time: Floats  # heap of (time, kind << 40 | index)
    event_key: Longs
    requests: Longs  # [K] transfers requested in this round
    candidates: Longs  # transfers that may be able to start
    joins: Longs  # [K] transfers whose latency has passed
    stirred: Longs  # [m] devices that may be able to start a task
    waiting: Longs  # [K] transfers that do not fit, by request
    aside: Longs  # [n] scratch: ready tasks that do not fit
    need: Floats  # [n, R] what tasks hold of nodes; R = 0 where no device packs
    free: Floats  # [m, R] what nodes have left
    least: Floats  # [R] the smallest need of any task
    counts: Longs  # [NUM_COUNTS] how many there are of what


@njit(cache=True, nogil=True)
def make_state(
    order: Ints,
    tasks: Records,
    devices: Records,
    copies: Records,
    objects: Records,
    reader: Ints,
    num_slots: int,
    packs: PackLoad,
) -> EventState:
    """Return the state before time zero, with the release of every task that reads nothing as an event.

    ``num_slots`` counts the places of all transfers in the queues of links.
    """
    n, m, num_copies = tasks.size, devices.size, copies.size
    num_events = n + m + num_copies
    planned = np.empty(n, dtype=np.int64)
    state = EventState(
        tasks,
        devices,
        copies,
        objects,
        reader,
        order,
        planned,
        np.empty(n, dtype=np.int64),
        np.empty(num_events),
        np.empty(num_events, dtype=np.int64),
        np.empty(num_copies, dtype=np.int64),
        # New requests, and a new head of every link that a transfer leaves.
        np.empty(num_copies + num_slots, dtype=np.int64),
        np.empty(num_copies, dtype=np.int64),
        np.empty(m, dtype=np.int64),
        np.empty(num_copies, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        packs.need,
        packs.capacity.copy(),
        _least(packs.need),
        np.zeros(NUM_COUNTS, dtype=np.int64),
    )
    fill = np.empty(m, dtype=np.int64)
    for d in range(m):
        fill[d] = devices[d].base
    for position in range(n):
        task = order[position]
        planned[fill[tasks[task].device]] = task
        fill[tasks[task].device] += 1
    for task in range(n):
        if tasks[task].missing == 0:
            push_event(state, tasks[task].release, RELEASE, task)
    return state


@njit(cache=True, nogil=True)
def _least(need: Floats) -> Floats:
    """Return the smallest need of each resource."""
    least = np.full(need.shape[1], np.inf)
    for t in range(need.shape[0]):
        for r in range(need.shape[1]):
            least[r] = min(least[r], need[t, r])
    return least


@njit(cache=True, nogil=True)
def push_event(state: EventState, time: float, kind: int, index: int) -> None:
    """Add a future event."""
    push_timed(state.event_time, state.event_key, 0, state.counts[EVENTS], time, (kind << KIND_BITS) | index)
    state.counts[EVENTS] += 1


@njit(cache=True, nogil=True)
def make_tasks(
    arrays: Arrays, device: Ints, rank: Ints, seconds: Floats, copies: Copies, limits: MemoryLoad
) -> Records:
    """Return the records of tasks; the byte columns of the limits may be empty."""
    tasks = np.zeros(device.size, dtype=TASK)
    for t in range(device.size):
        task = tasks[t]
        first, end = arrays.out_ptr[t], arrays.out_ptr[t + 1]
        task.device = device[t]
        task.rank = rank[t]
        task.missing = arrays.in_ptr[t + 1] - arrays.in_ptr[t]
        task.first_copy = copies.ptr[first]
        task.end_copy = copies.ptr[end]
        task.release = arrays.release[t]
        task.seconds = seconds[t]
        if limits.task.size:
            task.own_bytes = limits.task[t]
            task.need_bytes = limits.task[t]
            for item in range(first, end):
                task.need_bytes += limits.object[item]
    return tasks


@njit(cache=True, nogil=True)
def make_devices(device: Ints, num_devices: int, limit: Floats, resident: Floats, packs: Flags) -> Records:
    """Return the records of devices, all idle; limits and flags of nodes may be empty."""
    devices = np.zeros(num_devices, dtype=DEVICE)
    base, _ = group_by_device(device, np.arange(device.size), num_devices)
    for d in range(num_devices):
        devices[d].base = base[d]
        devices[d].end = base[d + 1]
        devices[d].position = base[d]
        devices[d].packs = packs[d] if packs.size else 0
        if limit.size:
            devices[d].used = resident[d]
            devices[d].limit = limit[d]
    return devices


@njit(cache=True, nogil=True)
def make_copy_records(arrays: Arrays, device: Ints, copies: Copies, is_pair: bool) -> Records:
    """Return the records of copies, none of them requested."""
    m = arrays.device_class.size
    records = np.zeros(copies.device.size, dtype=COPY)
    for k in range(records.size):
        copy = records[k]
        item = copies.object_index[k]
        source, target = device[arrays.object_task[item]], copies.device[k]
        size, inverse = arrays.object_size[item], arrays.inv_bandwidth[source, target]
        copy.item = item
        copy.device = target
        copy.pair = source * m + target
        copy.moves = copies.moves[k]
        copy.first_reader = copies.reader_ptr[k]
        copy.end_reader = copies.reader_ptr[k + 1]
        copy.needs = copy.end_reader - copy.first_reader
        copy.latency = arrays.latency[source, target]
        copy.seconds = copy.latency + size * inverse
        copy.work = size * inverse if is_pair else size
    return records


@njit(cache=True, nogil=True)
def make_objects(arrays: Arrays, device: Ints, copies: Copies, object_bytes: Floats) -> Records:
    """Return the records of objects, or none where memory is not limited."""
    objects = np.zeros(object_bytes.size, dtype=OBJECT)
    for item in range(objects.size):
        objects[item].home = device[arrays.object_task[item]]
        objects[item].num_bytes = object_bytes[item]
        for k in range(copies.ptr[item], copies.ptr[item + 1]):
            num_readers = copies.reader_ptr[k + 1] - copies.reader_ptr[k]
            objects[item].needs += 1 if copies.moves[k] else num_readers
    return objects
