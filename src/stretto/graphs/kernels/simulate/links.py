"""Link queues of the ``fifo`` mode: one transfer at a time per link, in the order of requests.

A transfer stands in the queue of every link of its route and stays at their heads while it
moves; it may start when it is at the head of all of them. Two transfers that may start never share a
link, so the order of starting does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.shapes import Floats, Ints, Longs, Records


class Routes(NamedTuple):
    """The links of each ordered pair of devices; ``is_pair`` says that each pair is its own link."""

    is_pair: Longs  # [1]
    ptr: Ints  # [m*m+1] or empty
    link: Ints
    bandwidth: Floats  # [L]


class LinkQueues(NamedTuple):
    """A linked list per link; a transfer has consecutive slots, one for each link of its route."""

    head: Longs  # [L] slot or -1
    tail: Longs  # [L]
    next_slot: Longs  # [slots]
    slot_copy: Longs  # [slots]
    num_slots: Longs  # [1]


@njit(cache=True, nogil=True)
def num_hops(routes: Routes, pair: int) -> int:
    if routes.is_pair[0]:
        return 1
    return routes.ptr[pair + 1] - routes.ptr[pair]


@njit(cache=True, nogil=True)
def hop(routes: Routes, pair: int, index: int) -> int:
    if routes.is_pair[0]:
        return pair
    return routes.link[routes.ptr[pair] + index]


@njit(cache=True, nogil=True)
def make_queues(routes: Routes, copies: Records, num_devices: int, used: bool) -> LinkQueues:
    """Return empty queues with room for every transfer; tiny ones when they are not used."""
    slots = 0
    num_links = 0
    if used:
        num_links = num_devices * num_devices if routes.is_pair[0] else routes.bandwidth.size
        for index in range(copies.size):
            if copies[index].moves:
                slots += num_hops(routes, copies[index].pair)
    return LinkQueues(
        np.full(num_links, -1, dtype=np.int64),
        np.full(num_links, -1, dtype=np.int64),
        np.empty(slots, dtype=np.int64),
        np.empty(slots, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def enqueue(queues: LinkQueues, routes: Routes, pair: int, copy: int) -> None:
    """Put a transfer at the tail of every link of its route."""
    for index in range(num_hops(routes, pair)):
        link = hop(routes, pair, index)
        slot = queues.num_slots[0]
        queues.num_slots[0] += 1
        queues.slot_copy[slot] = copy
        queues.next_slot[slot] = -1
        if queues.head[link] < 0:
            queues.head[link] = slot
        else:
            queues.next_slot[queues.tail[link]] = slot
        queues.tail[link] = slot


@njit(cache=True, nogil=True)
def is_first(queues: LinkQueues, routes: Routes, pair: int, copy: int) -> bool:
    """Say whether a transfer stands at the head of every link of its route."""
    for index in range(num_hops(routes, pair)):
        if queues.slot_copy[queues.head[hop(routes, pair, index)]] != copy:
            return False
    return True


@njit(cache=True, nogil=True)
def leave(queues: LinkQueues, routes: Routes, pair: int, copy: int, candidates: Longs, num_candidates: int) -> int:
    """Take an arrived transfer from its links, add the new heads to the candidates, return how many there are then."""
    for index in range(num_hops(routes, pair)):
        link = hop(routes, pair, index)
        slot = queues.head[link]
        if slot < 0 or queues.slot_copy[slot] != copy:
            continue  # a route that names a link twice
        while slot >= 0 and queues.slot_copy[slot] == copy:
            slot = queues.next_slot[slot]
        queues.head[link] = slot
        if slot >= 0:
            candidates[num_candidates] = queues.slot_copy[slot]
            num_candidates += 1
    return num_candidates
