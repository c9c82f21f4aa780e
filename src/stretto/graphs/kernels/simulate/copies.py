"""Which devices each object must be on: one *copy* per (object, device that has a reader)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Arrays, Flags, Ints, Longs
from stretto.graphs.kernels.simulate.run_sequence import group_by_device


class Copies(NamedTuple):
    """Copies in ascending order of (object, device), so that a copy's index is its rank in ties.

    A copy moves, hence is a transfer, when its device is not the producer's and its size is not zero.
    """

    ptr: Longs  # [O+1] copies of each object
    object_index: Ints  # [K]
    device: Ints  # [K]
    moves: Flags  # [K] 1 = a transfer
    reader_ptr: Longs  # [K+1]
    reader: Ints  # [E] readers of each copy
    of_read: Longs  # [E] copy of each read, in the order of arrays.in_object


@njit(cache=True, nogil=True)
def make_copies(arrays: Arrays, device: Ints) -> Copies:
    """List the copies that an assignment needs."""
    num_objects = arrays.object_size.size
    _, tasks = group_by_device(device, np.arange(device.size), arrays.device_class.size)
    ptr = np.zeros(num_objects + 1, dtype=np.int64)
    last = np.full(num_objects, -1, dtype=np.int64)
    for task in tasks:
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            item = arrays.in_object[read]
            if last[item] != device[task]:
                last[item] = device[task]
                ptr[item + 1] += 1
    for item in range(num_objects):
        ptr[item + 1] += ptr[item]
        last[item] = -1
    return _fill_copies(arrays, device, tasks, ptr, last)


@njit(cache=True, nogil=True)
def _fill_copies(arrays: Arrays, device: Ints, tasks: Ints, ptr: Longs, last: Longs) -> Copies:
    num_copies = ptr[-1]
    num_reads = arrays.in_object.size
    object_index = np.empty(num_copies, dtype=np.int32)
    copy_device = np.empty(num_copies, dtype=np.int32)
    moves = np.empty(num_copies, dtype=np.uint8)
    reader_ptr = np.zeros(num_copies + 1, dtype=np.int64)
    reader = np.empty(num_reads, dtype=np.int32)
    of_read = np.empty(num_reads, dtype=np.int64)
    fill = ptr[:-1].copy()
    # Tasks come by ascending device: the copies of an object do, too.
    for task in tasks:
        here = device[task]
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            item = arrays.in_object[read]
            if last[item] != here:
                last[item] = here
                copy = fill[item]
                fill[item] += 1
                object_index[copy] = item
                copy_device[copy] = here
                moves[copy] = here != device[arrays.object_task[item]] and arrays.object_size[item] > 0.0
            copy = fill[item] - 1
            of_read[read] = copy
            reader_ptr[copy + 1] += 1
    for copy in range(num_copies):
        reader_ptr[copy + 1] += reader_ptr[copy]
    at = reader_ptr[:-1].copy()
    for task in range(device.size):
        for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
            reader[at[of_read[read]]] = task
            at[of_read[read]] += 1
    return Copies(ptr, object_index, copy_device, moves, reader_ptr, reader, of_read)
