"""Progressive filling: max-min fair rates of classes of flows over shared links.

Again and again, the link with the least share ``left / num_open`` (lowest index in ties) fixes the rate of the
classes over it, in ascending order; classes whose pair allows less than that share come first, each at what
its pair allows. The level never falls, whatever the rounding.

One filling costs O(classes with flows * hops + steps * links with flows). All indices live in one array,
because numba counts references to every array that a function takes, and this one runs at every event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.records import record
from stretto.core.kernels.shapes import Floats, Longs, Records

#: The rate of a class whose flows came or went in this round: no filling yields it.
CHANGED_RATE = -1.0

#: The bits of an infinite share.
INFINITE = int(np.array(np.inf).view(np.int64))

# How many there are of what: places at the front of Flows.lists.
ACTIVE = 0
BUSY = 1
TIGHT = 2
DUE = 3
FILLING = 4
IS_CHANGED = 5  # whether flows came or went in this round
NUM_COUNTS = 6

CLASS = record(
    [
        ("base", np.int64),  # its heap of flows
        ("num_flows", np.int32),
        ("first_hop", np.int32),  # its slice of the hops
        ("end_hop", np.int32),
        ("cap_place", np.int32),  # its place among the capped classes or -1
        ("filling", np.int64),  # number of the last filling that fixed its rate
        ("served", np.float64),
        ("since", np.float64),
        ("rate", np.float64),  # bytes per second of each flow (routes only)
        ("new_rate", np.float64),
        ("first_goal", np.float64),  # value of served at which its first flow leaves,
        ("next_time", np.float64),  # and when that is
        ("cap", np.float64),  # bytes per second that the pair allows one flow
    ]
)
LINK = record(
    [
        ("bandwidth", np.float64),
        ("num_flows", np.int64),
        ("place", np.int64),  # its place among the busy links while it has flows
        ("num_members", np.int64),  # classes with flows over it
        ("first_member", np.int64),
        ("left", np.float64),  # of a filling: bandwidth not given away,
        ("num_open", np.int64),  # and flows without a rate
        ("padding", np.int64),  # makes the record a cache line
    ]
)


class Slices(NamedTuple):
    """Where the lists begin in ``index``."""

    hop: int  # links of each class
    member: int  # classes with flows over each link, ascending
    busy: int  # links with flows, in any order
    capped: int  # classes that their pair may hold below what their links allow, by ascending cap
    tight: int  # those of them that have flows, as ascending places
    fixed: int  # classes in the order of the filling
    due: int  # classes whose flows leave first


@njit(cache=True, nogil=True)
def share_links(classes: Records, links: Records, index: Longs, share: Floats, at: Slices, now: float) -> float:
    """Set the rates of all classes that have flows, list those that are due first and return when."""
    _fill_rates(classes, links, index, share, at)
    first = np.inf
    num_due = 0
    for place in range(index[ACTIVE]):
        c = index[at.fixed + place]
        group = classes[c]
        if group.rate != group.new_rate:
            advance(classes, c, now)
            group.rate = group.new_rate
            group.next_time = now + (group.first_goal - group.served) / group.rate
        if group.next_time < first:
            first = group.next_time
            num_due = 0
        if group.next_time == first:
            index[at.due + num_due] = c
            num_due += 1
    index[DUE] = num_due
    index[IS_CHANGED] = 0
    return first


@njit(cache=True, nogil=True)
def advance(classes: Records, c: int, now: float) -> None:
    """Move the clock of a class that has flows to now at its present rate, not beyond its first goal."""
    group = classes[c]
    if now > group.since:
        group.served = min(group.served + (now - group.since) * group.rate, group.first_goal)
    group.since = now


@njit(cache=True, nogil=True)
def _fill_rates(classes: Records, links: Records, index: Longs, share: Floats, at: Slices) -> None:
    """Set ``new_rate`` of all classes that have flows and list them as fixed."""
    index[FILLING] += 1
    filling, num_active, num_tight, num_open = index[FILLING], index[ACTIVE], index[TIGHT], index[BUSY]
    for place in range(num_open):
        link = links[index[at.busy + place]]
        link.left = link.bandwidth
        link.num_open = link.num_flows
        share[place] = link.left / link.num_open
    # Shares are not negative, so their bits have their order: and least integers are found several at a time.
    bits = share.view(np.int64)
    level = 0.0
    num_capped = 0
    num_fixed = 0
    while num_fixed < num_active:
        least_bits = INFINITE
        for place in range(num_open):
            least_bits = min(least_bits, bits[place])
        narrow = links.size
        for place in range(num_open):
            narrow = min(narrow, index[at.busy + place] if bits[place] == least_bits else links.size)
        least = share[links[narrow].place] if least_bits < INFINITE else np.inf
        # The classes that cannot use such a share or else those over the narrowest link.
        first = num_fixed
        done = -1
        while num_capped < num_tight:
            c = index[at.capped + index[at.tight + num_capped]]
            if least < np.inf and classes[c].cap >= least:
                break
            num_capped += 1
            if classes[c].filling != filling:
                level = classes[c].cap
                classes[c].filling = filling
                classes[c].new_rate = level
                index[at.fixed + num_fixed] = c
                num_fixed += 1
        if num_fixed == first:
            level = max(level, least)
            member = at.member + links[narrow].first_member
            for place in range(member, member + links[narrow].num_members):
                c = index[place]
                if classes[c].filling != filling:
                    classes[c].filling = filling
                    classes[c].new_rate = level
                    index[at.fixed + num_fixed] = c
                    num_fixed += 1
            done = narrow
            num_open -= 1
            _close(links, index, share, at.busy, links[narrow].place, num_open)
        # Their other links have less left, for fewer flows.
        for fixed in range(at.fixed + first, at.fixed + num_fixed):
            group = classes[index[fixed]]
            used = group.new_rate * group.num_flows
            for hop in range(at.hop + group.first_hop, at.hop + group.end_hop):
                if index[hop] == done:
                    continue
                link = links[index[hop]]
                link.num_open -= group.num_flows
                if link.num_open > 0:
                    if link.left < np.inf:
                        link.left = max(0.0, link.left - used)
                    share[link.place] = link.left / link.num_open
                else:
                    num_open -= 1
                    _close(links, index, share, at.busy, link.place, num_open)


@njit(cache=True, nogil=True)
def _close(links: Records, index: Longs, share: Floats, busy: int, place: int, last: int) -> None:
    """Let a link that is done trade places with the last busy link that is not."""
    done, other = index[busy + place], index[busy + last]
    share[place] = share[last]
    index[busy + place], index[busy + last] = other, done
    links[other].place = place
    links[done].place = last


@njit(cache=True, nogil=True)
def add_flow(classes: Records, links: Records, index: Longs, at: Slices, c: int, now: float) -> None:
    """Count one more flow of a class on its links."""
    group = classes[c]
    is_first = group.num_flows == 0
    if is_first:
        group.since = now
        group.served = 0.0
        index[ACTIVE] += 1
        if group.cap_place >= 0:
            _insert(index, at.tight, index[TIGHT], group.cap_place)
            index[TIGHT] += 1
    else:
        advance(classes, c, now)
    group.num_flows += 1
    group.rate = CHANGED_RATE
    index[IS_CHANGED] = 1
    for hop in range(at.hop + group.first_hop, at.hop + group.end_hop):
        link = links[index[hop]]
        if link.num_flows == 0:
            link.place = index[BUSY]
            index[at.busy + link.place] = index[hop]
            index[BUSY] += 1
        link.num_flows += 1
        if is_first:
            _insert(index, at.member + link.first_member, link.num_members, c)
            link.num_members += 1


@njit(cache=True, nogil=True)
def drop_flows(
    classes: Records, links: Records, index: Longs, at: Slices, c: int, num_dropped: int, now: float
) -> float:
    """Take flows that have left the last of the due classes from its links; return now while other classes are due."""
    group = classes[c]
    is_last = group.num_flows == 0
    if is_last:
        index[ACTIVE] -= 1
        if group.cap_place >= 0:
            _remove(index, at.tight, index[TIGHT], group.cap_place)
            index[TIGHT] -= 1
    group.rate = CHANGED_RATE
    index[IS_CHANGED] = 1
    for hop in range(at.hop + group.first_hop, at.hop + group.end_hop):
        link = links[index[hop]]
        link.num_flows -= num_dropped
        if is_last:
            _remove(index, at.member + link.first_member, link.num_members, c)
            link.num_members -= 1
        if link.num_flows == 0:
            index[BUSY] -= 1
            last = index[at.busy + index[BUSY]]
            index[at.busy + link.place] = last
            links[last].place = link.place
    index[DUE] -= 1
    return now if index[DUE] > 0 else np.inf


@njit(cache=True, nogil=True)
def _insert(values: Longs, base: int, count: int, value: int) -> None:
    """Add a value to the ascending ``values[base : base + count]``."""
    place = base + count
    while place > base and values[place - 1] > value:
        values[place] = values[place - 1]
        place -= 1
    values[place] = value


@njit(cache=True, nogil=True)
def _remove(values: Longs, base: int, count: int, value: int) -> None:
    """Take a value that is there from the ascending ``values[base : base + count]``."""
    place = base + count - 1
    above = values[place]
    while above != value:
        place -= 1
        above, values[place] = values[place], above
