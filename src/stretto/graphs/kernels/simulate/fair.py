"""Fair sharing of links by virtual time, one clock per class of flows.

All flows between one ordered pair of devices form a *class*: they share one route, hence one rate. A
class keeps the service that each of its flows has received since the class was last empty
(``served``, at moment ``since``). A flow that joins with work w leaves when ``served`` reaches its
value at joining plus w. So only the class's clock moves, never its flows, and only where its rate changes.

Two cases, with formulas that ``graphs.reference`` repeats literally:

- pair links: work is ``size * inv_bandwidth`` seconds; k flows are served at 1/k each;
- routes: work is bytes; rates come from progressive filling, see ``graphs.kernels.simulate.filling``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.heap import drop_timed, push_timed
from stretto.core.kernels.shapes import Arrays, Floats, Longs, Records
from stretto.core.kernels.tournament import make_tournament, replay
from stretto.graphs.kernels.simulate.filling import CHANGED_RATE, CLASS, LINK, NUM_COUNTS, Slices, add_flow
from stretto.graphs.kernels.simulate.links import Routes, hop, num_hops


class Flows(NamedTuple):
    """Classes of flows in ascending order of their pair, and their flows as heaps by goal."""

    classes: Records  # [C] CLASS
    goal: Floats  # [K] value of served at which the flow leaves
    copy_of: Longs  # [K]
    leaving: Longs  # [K] copies of the flows that end now
    changed: Longs  # [1+C] pair links: how many classes changed in this round, and which
    next_time: Floats  # [C] pair links: when the first flow of each class leaves
    tie: Longs  # [C] pair links: zeros, since classes at one time need no order
    tree: Longs  # pair links: the class whose flow leaves first
    links: Records  # [L] LINK; routes, as all below
    share: Floats  # [L] bandwidth per flow of the links that a filling is not done with
    lists: Longs  # numbers and lists, see kernels.filling
    at: Slices  # Slices of lists


@njit(cache=True, nogil=True)
def make_flows(arrays: Arrays, routes: Routes, copies: Records, used: bool) -> Flows:
    """Return the classes that a plan's transfers need, all empty; one class without use when there are none."""
    m = arrays.device_class.size
    count = np.zeros(m * m if used else 1, dtype=np.int64)
    for place in range(copies.size if used else 0):
        count[copies[place].pair] += copies[place].moves
    pairs = np.flatnonzero(count)
    classes = np.zeros(max(pairs.size, 1), dtype=CLASS)
    class_of = np.zeros(count.size, dtype=np.int64)
    num_goals = 0
    for c in range(pairs.size):
        class_of[pairs[c]] = c
        classes[c].base = num_goals
        num_goals += count[pairs[c]]
        inverse = arrays.inv_bandwidth[pairs[c] // m, pairs[c] % m]
        classes[c].cap = 1.0 / inverse if inverse > 0.0 else np.inf
    for place in range(copies.size if used else 0):
        copies[place].flow_class = class_of[copies[place].pair]
    links = np.zeros(routes.bandwidth.size, dtype=LINK)
    hop_link = _lay_routes(routes, pairs, classes, links)
    capped = _tight_caps(classes, links, hop_link, routes.is_pair[0] == 1)
    index, at = _lay_lists(hop_link, capped, links.size, classes.size)
    return Flows(
        classes,
        np.empty(num_goals),
        np.empty(num_goals, dtype=np.int64),
        np.empty(num_goals, dtype=np.int64),
        np.zeros(classes.size + 1, dtype=np.int64),
        np.full(classes.size, np.inf),
        np.zeros(classes.size, dtype=np.int64),
        make_tournament(classes.size),
        links,
        np.empty(links.size),
        index,
        at,
    )


@njit(cache=True, nogil=True)
def _lay_lists(hop_link: Longs, capped: Longs, num_links: int, num_classes: int) -> tuple[Longs, Slices]:
    """Return the array of all indices of routes, with what is known of it, and its slices."""
    hop = NUM_COUNTS
    member = hop + hop_link.size
    busy = member + hop_link.size
    by_cap = busy + num_links
    tight = by_cap + capped.size
    fixed = tight + capped.size
    due = fixed + num_classes
    index = np.zeros(due + num_classes, dtype=np.int64)
    index[hop:member] = hop_link
    index[by_cap:tight] = capped
    return index, Slices(hop, member, busy, by_cap, tight, fixed, due)


@njit(cache=True, nogil=True)
def _lay_routes(routes: Routes, pairs: Longs, classes: Records, links: Records) -> Longs:
    """Return the links of each class and give every link room for the classes that may cross it."""
    if routes.is_pair[0]:
        return np.empty(0, dtype=np.int64)
    total = 0
    for c in range(pairs.size):
        classes[c].first_hop = total
        total += num_hops(routes, pairs[c])
        classes[c].end_hop = total
    hop_link = np.empty(total, dtype=np.int64)
    for c in range(pairs.size):
        for index in range(classes[c].end_hop - classes[c].first_hop):
            link = hop(routes, pairs[c], index)
            hop_link[classes[c].first_hop + index] = link
            links[link].num_members += 1
    room = 0
    for link in range(links.size):
        links[link].bandwidth = routes.bandwidth[link]
        links[link].first_member = room
        room += links[link].num_members
        links[link].num_members = 0
    return hop_link


@njit(cache=True, nogil=True)
def _tight_caps(classes: Records, links: Records, hop_link: Longs, is_pair: bool) -> Longs:
    """Return the classes whose cap can bind: a link's share never exceeds its bandwidth, so the others' cannot."""
    caps = np.full(classes.size, np.inf)
    tight = np.zeros(classes.size, dtype=np.uint8)
    for c in range(classes.size):
        classes[c].cap_place = -1
        caps[c] = classes[c].cap
        narrowest = np.inf
        for index in range(classes[c].first_hop, classes[c].end_hop):
            narrowest = min(narrowest, links[hop_link[index]].bandwidth)
        tight[c] = not is_pair and (caps[c] < narrowest or narrowest == np.inf)
    chosen = np.flatnonzero(tight)
    capped = chosen[np.argsort(caps[chosen], kind="mergesort")]
    for place in range(capped.size):
        classes[capped[place]].cap_place = place
    return capped


@njit(cache=True, nogil=True)
def join_pair(
    classes: Records, goal: Floats, copy_of: Longs, changed: Longs, c: int, copy: int, work: float, now: float
) -> None:
    """Add a flow with some work to a class on its own link."""
    group = classes[c]
    if group.num_flows == 0:
        group.served = 0.0
    elif now > group.since:
        group.served = min(group.served + (now - group.since) / group.num_flows, group.first_goal)
    group.since = now
    push_timed(goal, copy_of, group.base, group.num_flows, group.served + work, copy)
    group.num_flows += 1
    group.first_goal = goal[group.base]
    _mark(classes, changed, c)


@njit(cache=True, nogil=True)
def join_route(
    classes: Records,
    goal: Floats,
    copy_of: Longs,
    links: Records,
    index: Longs,
    at: Slices,
    c: int,
    copy: int,
    work: float,
    now: float,
) -> None:
    """Add a flow with some work to a class on shared links."""
    add_flow(classes, links, index, at, c, now)
    group = classes[c]
    push_timed(goal, copy_of, group.base, group.num_flows - 1, group.served + work, copy)
    group.first_goal = goal[group.base]


@njit(cache=True, nogil=True)
def take_finished(classes: Records, goal: Floats, copy_of: Longs, leaving: Longs, c: int, now: float) -> int:
    """Move the flows of a class that end now to ``leaving`` and return how many they are."""
    group = classes[c]
    group.served = group.first_goal
    group.since = now
    taken = 0
    while group.num_flows > 0 and goal[group.base] <= group.served:
        leaving[taken] = copy_of[group.base]
        taken += 1
        drop_timed(goal, copy_of, group.base, group.num_flows)
        group.num_flows -= 1
    group.first_goal = goal[group.base]
    return taken


@njit(cache=True, nogil=True)
def leave_pair(classes: Records, next_time: Floats, tie: Longs, tree: Longs, changed: Longs, c: int) -> float:
    """After flows have left a class on its own link, return when the next flow of all leaves."""
    # Until the round's end sets it anew: what is left may be due at this very time, a round later.
    next_time[c] = np.inf
    replay(tree, next_time, tie, c)
    _mark(classes, changed, c)
    return next_time[tree[1]]


@njit(cache=True, nogil=True)
def _mark(classes: Records, changed: Longs, c: int) -> None:
    """Note that flows of a class came or went in this round."""
    group = classes[c]
    if group.rate != CHANGED_RATE:
        group.rate = CHANGED_RATE
        changed[0] += 1
        changed[changed[0]] = c


@njit(cache=True, nogil=True)
def retime_pairs(classes: Records, next_time: Floats, tie: Longs, tree: Longs, changed: Longs, now: float) -> float:
    """At the end of a round, set anew when the classes that changed lose their first flow; return the first of all."""
    for place in range(1, changed[0] + 1):
        c = changed[place]
        group = classes[c]
        group.rate = 0.0
        if group.num_flows > 0:
            next_time[c] = now + (group.first_goal - group.served) * group.num_flows
            replay(tree, next_time, tie, c)
    changed[0] = 0
    return next_time[tree[1]]
