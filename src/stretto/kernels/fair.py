"""Fair sharing of links by virtual time, one clock per class of flows.

All flows between one ordered pair of devices form a *class*: they share one route, hence one rate. A
class keeps the service that each of its flows has received since the class was last empty
(``served``, at moment ``since``). A flow that joins with work w leaves when ``served`` reaches its
value at joining plus w. So only the class's clock moves, never its flows, and an event costs O(log).

Two cases, with formulas that ``sim.reference`` repeats literally:

- pair links: work is ``size * inv_bandwidth`` seconds; k flows are served at 1/k each;
- routes: work is bytes; rates come from progressive filling, see :func:`_fill_rates`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stretto.kernels.heap import drop_timed, push_timed
from stretto.kernels.links import hop, num_hops
from stretto.kernels.tournament import make_tournament, replay

#: The rate of a class that progressive filling has not fixed yet.
OPEN = -1.0

CLASS = np.dtype(
    [
        ("pair", np.int64),
        ("base", np.int64),  # its slice of Flows.goal and Flows.copy
        ("num_flows", np.int64),
        ("place", np.int64),  # its place in Flows.active while it has flows
        ("is_changed", np.int64),  # flows came or went in this round
        ("served", np.float64),
        ("since", np.float64),
        ("rate", np.float64),  # bytes per second of each flow (routes only)
        ("new_rate", np.float64),
        ("cap", np.float64),  # bytes per second that the pair allows one flow
    ]
)


class Flows(NamedTuple):
    """Classes of flows in ascending order of their pair, and their flows as heaps by goal."""

    classes: Any  # [C] CLASS
    goal: Any  # [K] value of served at which the flow leaves
    copy: Any  # [K]
    leaving: Any  # [K] copies of the flows that end now
    next_time: Any  # [C] when the first flow leaves
    tie: Any  # [C] zeros: classes at one time need no order
    tree: Any  # the class whose flow leaves first
    changed: Any  # [C] classes that changed in this round
    num_changed: Any  # [1]
    active: Any  # [C] classes that have flows, in any order
    num_active: Any  # [1]
    by_cap: Any  # classes that their pair may hold below what their links allow, by ascending cap
    link_ptr: Any  # [L+1] classes over each link
    link_class: Any
    left: Any  # [L] scratch of the filling: bandwidth not given away,
    load: Any  # [L] flows without a rate,
    share: Any  # [L] and the first over the second


@njit(cache=True, nogil=True)
def make_flows(arrays: Any, routes: Any, copies: Any, used: bool) -> Any:
    """Return the classes that a plan's transfers need, all empty; one class without use when there are none."""
    m = arrays.device_class.size
    count = np.zeros(m * m if used else 1, dtype=np.int64)
    for index in range(copies.size if used else 0):
        count[copies[index].pair] += copies[index].moves
    pairs = np.flatnonzero(count)
    classes = np.zeros(max(pairs.size, 1), dtype=CLASS)
    class_of = np.zeros(count.size, dtype=np.int64)
    num_goals = 0
    for c in range(pairs.size):
        class_of[pairs[c]] = c
        classes[c].pair = pairs[c]
        classes[c].base = num_goals
        num_goals += count[pairs[c]]
        inverse = arrays.inv_bandwidth[pairs[c] // m, pairs[c] % m]
        classes[c].cap = 1.0 / inverse if inverse > 0.0 else np.inf
    for index in range(copies.size if used else 0):
        copies[index].flow_class = class_of[copies[index].pair]
    link_ptr, link_class = _classes_by_link(routes, pairs)
    return Flows(
        classes,
        np.empty(num_goals),
        np.empty(num_goals, dtype=np.int64),
        np.empty(num_goals, dtype=np.int64),
        np.full(classes.size, np.inf),
        np.zeros(classes.size, dtype=np.int64),
        make_tournament(classes.size),
        np.empty(classes.size, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.empty(classes.size, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        _tight_caps(classes, routes),
        link_ptr,
        link_class,
        np.empty(routes.bandwidth.size),
        np.empty(routes.bandwidth.size, dtype=np.int64),
        np.empty(routes.bandwidth.size),
    )


@njit(cache=True, nogil=True)
def _tight_caps(classes: Any, routes: Any) -> Any:
    """Return the classes whose cap can bind: a link's share never exceeds its bandwidth, so the others' cannot."""
    if routes.is_pair[0]:
        return np.empty(0, dtype=np.int64)
    tight = np.zeros(classes.size, dtype=np.uint8)
    for c in range(classes.size):
        narrowest = np.inf
        for index in range(num_hops(routes, classes[c].pair)):
            narrowest = min(narrowest, routes.bandwidth[hop(routes, classes[c].pair, index)])
        tight[c] = classes[c].cap < narrowest or narrowest == np.inf
    chosen = np.flatnonzero(tight)
    caps = np.empty(chosen.size)
    for index in range(chosen.size):
        caps[index] = classes[chosen[index]].cap
    return chosen[np.argsort(caps, kind="mergesort")]


@njit(cache=True, nogil=True)
def _classes_by_link(routes: Any, pair: Any) -> Any:
    num_links = routes.bandwidth.size
    ptr = np.zeros(num_links + 1, dtype=np.int64)
    if routes.is_pair[0]:
        return ptr, np.empty(0, dtype=np.int64)
    for p in pair:
        for index in range(num_hops(routes, p)):
            ptr[hop(routes, p, index) + 1] += 1
    for link in range(num_links):
        ptr[link + 1] += ptr[link]
    members = np.empty(ptr[-1], dtype=np.int64)
    at = ptr[:-1].copy()
    for c in range(pair.size):
        for index in range(num_hops(routes, pair[c])):
            link = hop(routes, pair[c], index)
            members[at[link]] = c
            at[link] += 1
    return ptr, members


@njit(cache=True, nogil=True)
def _advance(group: Any, goal: Any, is_pair: bool, now: float) -> None:
    """Move a class's clock to now at its present rate, not beyond its first goal."""
    if group.num_flows > 0 and now > group.since:
        elapsed = now - group.since
        step = elapsed / group.num_flows if is_pair else elapsed * group.rate
        group.served = min(group.served + step, goal[group.base])
    group.since = now


@njit(cache=True, nogil=True)
def _mark(flows: Any, c: int) -> None:
    if not flows.classes[c].is_changed:
        flows.classes[c].is_changed = 1
        flows.changed[flows.num_changed[0]] = c
        flows.num_changed[0] += 1


@njit(cache=True, nogil=True)
def join(flows: Any, is_pair: bool, c: int, copy: int, work: float, now: float) -> None:
    """Add a flow with some work to a class."""
    group = flows.classes[c]
    _advance(group, flows.goal, is_pair, now)
    if group.num_flows == 0:
        group.served = 0.0
        group.place = flows.num_active[0]
        flows.active[group.place] = c
        flows.num_active[0] += 1
    push_timed(flows.goal, flows.copy, group.base, group.num_flows, group.served + work, copy)
    group.num_flows += 1
    _mark(flows, c)


@njit(cache=True, nogil=True)
def take_finished(flows: Any, c: int, now: float) -> Any:
    """Move the flows of a class that end now to ``flows.leaving`` and return how many they are."""
    group = flows.classes[c]
    group.served = flows.goal[group.base]
    group.since = now
    taken = 0
    while group.num_flows > 0 and flows.goal[group.base] <= group.served:
        flows.leaving[taken] = flows.copy[group.base]
        taken += 1
        drop_timed(flows.goal, flows.copy, group.base, group.num_flows)
        group.num_flows -= 1
    if group.num_flows == 0:
        flows.num_active[0] -= 1
        last = flows.active[flows.num_active[0]]
        flows.active[group.place] = last
        flows.classes[last].place = group.place
    # Until the round's end sets it anew: what is left may be due at this very time, a round later.
    flows.next_time[c] = np.inf
    replay(flows.tree, flows.next_time, flows.tie, c)
    _mark(flows, c)
    return taken


@njit(cache=True, nogil=True)
def refresh(flows: Any, routes: Any, now: float) -> None:
    """At the end of a round, set anew when the classes that changed lose their first flow."""
    # Arrays are taken out of the tuples here, once: helpers in the inner loops get only what they use.
    num_changed, num_active = flows.num_changed[0], flows.num_active[0]
    if num_changed == 0:
        return
    classes, goal, next_time = flows.classes, flows.goal, flows.next_time
    if routes.is_pair[0]:
        for index in range(num_changed):
            c = flows.changed[index]
            group = classes[c]
            if group.num_flows > 0:
                next_time[c] = now + (goal[group.base] - group.served) * group.num_flows
                replay(flows.tree, next_time, flows.tie, c)
    else:
        left, load, share = flows.left, flows.load, flows.share
        _open_all(classes, flows.active, num_active, left, load, share, routes.ptr, routes.link, routes.bandwidth)
        rows = (flows.link_ptr, flows.link_class)
        _fill_rates(classes, num_active, left, load, share, routes.ptr, routes.link, rows, flows.by_cap)
        for index in range(num_active):
            c = flows.active[index]
            group = classes[c]
            if group.is_changed or group.rate != group.new_rate:
                _advance(group, goal, False, now)
                group.rate = group.new_rate
                next_time[c] = now + (goal[group.base] - group.served) / group.rate
                replay(flows.tree, next_time, flows.tie, c)
    for index in range(num_changed):
        classes[flows.changed[index]].is_changed = 0
    flows.num_changed[0] = 0


@njit(cache=True, nogil=True)
def _open_all(
    classes: Any, active: Any, num_active: int, left: Any, load: Any, share: Any, ptr: Any, link_of: Any, bandwidth: Any
) -> None:
    """Take the rates of all classes with flows away."""
    for link in range(left.size):
        left[link] = bandwidth[link]
        load[link] = 0
        share[link] = np.inf
    for place in range(num_active):
        group = classes[active[place]]
        group.new_rate = OPEN
        for index in range(ptr[group.pair], ptr[group.pair + 1]):
            load[link_of[index]] += group.num_flows
    for link in range(left.size):
        if load[link] > 0:
            share[link] = left[link] / load[link]


@njit(cache=True, nogil=True)
def _fill_rates(
    classes: Any, num_open: int, left: Any, load: Any, share: Any, ptr: Any, link_of: Any, rows: Any, by_cap: Any
) -> None:
    """Set max-min fair rates by progressive filling.

    Again and again, the link with the least share ``left / load`` (lowest index in ties) fixes the
    rate of the classes over it, in ascending order; a class whose pair allows less than that share
    is fixed at what its pair allows. The level never falls, whatever the rounding.
    """
    link_ptr, link_class = rows
    level = 0.0
    capped = 0
    while num_open > 0:
        narrow = _tightest(share)
        least = share[narrow] if narrow >= 0 else np.inf
        while capped < by_cap.size and classes[by_cap[capped]].new_rate != OPEN:
            capped += 1
        if capped < by_cap.size and (narrow < 0 or classes[by_cap[capped]].cap < least):
            level = classes[by_cap[capped]].cap
            _fix(classes[by_cap[capped]], left, load, share, ptr, link_of, level)
            num_open -= 1
            continue
        level = max(level, least)
        for index in range(link_ptr[narrow], link_ptr[narrow + 1]):
            group = classes[link_class[index]]
            if group.new_rate == OPEN:
                _fix(group, left, load, share, ptr, link_of, level)
                num_open -= 1


@njit(cache=True, nogil=True)
def _tightest(share: Any) -> Any:
    """Return the link with the least share per flow, or -1 when no share is finite."""
    least = np.inf
    narrow = -1
    for link in range(share.size):
        if share[link] < least:
            least = share[link]
            narrow = link
    return narrow


@njit(cache=True, nogil=True)
def _fix(group: Any, left: Any, load: Any, share: Any, ptr: Any, link_of: Any, rate: float) -> None:
    """Give a class its rate and take what it uses from its links."""
    group.new_rate = rate
    for index in range(ptr[group.pair], ptr[group.pair + 1]):
        link = link_of[index]
        load[link] -= group.num_flows
        if left[link] < np.inf:
            left[link] = max(0.0, left[link] - rate * group.num_flows)
        share[link] = left[link] / load[link] if load[link] > 0 else np.inf
