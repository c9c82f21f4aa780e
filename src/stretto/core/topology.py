"""A network of wires between devices, machines and switches, routed into links of a cluster.

A route has the fewest hops; among those the highest bandwidth at its narrowest wire; among
those it goes through the nodes of lowest index, seen from the target. Its bandwidth is that of
the narrowest wire, its latency the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.cluster import Links
from stretto.core.csr import Floats, Ints
from stretto.errors import InvalidInput

#: Routes are stored for each ordered pair of devices.
MAX_ROUTED_DEVICES = 2_000
#: A switch in the middle needs one wire per device; a full mesh of 700 devices has this many.
MAX_WIRES = 250_000
#: Links on all routes together: a chain of 2,000 devices would have billions.
MAX_HOPS = 20_000_000


@dataclass(frozen=True)
class Wire:
    """A cable between two nodes.

    Attributes
    ----------
    duplex
        When true, each direction has the full bandwidth to itself; otherwise the two share it.
    bandwidth
        Bytes per second; ``inf`` says that the wire is never the limit.
    """

    a: int
    b: int
    bandwidth: float
    latency_s: float = 0.0
    duplex: bool = True


@dataclass(frozen=True)
class _Hop:
    """One direction of a wire."""

    target: int
    link: int
    bandwidth: float
    latency_s: float


def route(nodes: Sequence[str], num_devices: int, wires: Sequence[Wire]) -> tuple[Floats, Floats, Links]:
    """Return latency and bandwidth between the devices, and the links they share.

    Parameters
    ----------
    nodes
        Names of all nodes; the first ``num_devices`` are the devices.
    """
    if num_devices > MAX_ROUTED_DEVICES:
        raise InvalidInput(f"{num_devices} devices; routes are limited to {MAX_ROUTED_DEVICES}", field="link")
    hops, names, capacity = _hops(nodes, wires)
    m = num_devices
    latency, bandwidth = np.zeros((m, m)), np.full((m, m), np.inf)
    route_ptr = np.zeros(m * m + 1, dtype=np.int64)
    links: list[int] = []
    for source in range(m):
        best = _search(hops, source)
        for target in range(m):
            if target != source:
                path = _path(best, source, target, nodes)
                latency[source, target] = sum(hop.latency_s for hop in path)
                bandwidth[source, target] = min(hop.bandwidth for hop in path)
                # A wire without a limit never makes anyone wait.
                links.extend(hop.link for hop in path if np.isfinite(hop.bandwidth))
            route_ptr[source * m + target + 1] = len(links)
        if len(links) > MAX_HOPS:
            raise InvalidInput(
                f"the routes between {m} devices pass more than {MAX_HOPS:,} links; join them by switches", field="link"
            )
    return latency, bandwidth, Links(tuple(names), capacity, _ints(route_ptr), _ints(links))


def _hops(nodes: Sequence[str], wires: Sequence[Wire]) -> tuple[list[list[_Hop]], list[str], Floats]:
    """Return the hops out of each node, and names and bandwidths of the links."""
    hops: list[list[_Hop]] = [[] for _ in nodes]
    names: list[str] = []
    capacity: list[float] = []
    for wire in wires:
        forward = len(names)
        backward = forward + 1 if wire.duplex else forward
        a, b = nodes[wire.a], nodes[wire.b]
        names.extend([f"{a}->{b}", f"{b}->{a}"] if wire.duplex else [f"{a}--{b}"])
        capacity.extend([wire.bandwidth] * (backward - forward + 1))
        hops[wire.a].append(_Hop(wire.b, forward, wire.bandwidth, wire.latency_s))
        hops[wire.b].append(_Hop(wire.a, backward, wire.bandwidth, wire.latency_s))
    return hops, names, np.array(capacity, dtype=np.float64)


def _search(hops: list[list[_Hop]], source: int) -> list[tuple[int, _Hop] | None]:
    """Return the previous node and the hop from it, for every node that can be reached.

    Goes level by level: all fewest-hop routes to a node come from the level before it, so
    the widest route to each node is known once that level is complete.
    """
    previous: list[tuple[int, _Hop] | None] = [None] * len(hops)
    width = {source: np.inf}
    level = [source]
    while level:
        found: dict[int, tuple[float, int, _Hop]] = {}
        for node in level:  # ascending, so that ties stay with the lowest index
            for hop in hops[node]:
                if hop.target in width:
                    continue
                reach = min(width[node], hop.bandwidth)
                known = found.get(hop.target)
                if known is None or reach > known[0]:
                    found[hop.target] = (reach, node, hop)
        level = sorted(found)
        for node in level:
            reach, before, hop = found[node]
            width[node] = reach
            previous[node] = (before, hop)
    return previous


def _path(best: list[tuple[int, _Hop] | None], source: int, target: int, nodes: Sequence[str]) -> list[_Hop]:
    path: list[_Hop] = []
    node = target
    while node != source:
        step = best[node]
        if step is None:
            raise InvalidInput(f"no path from {nodes[source]!r} to {nodes[target]!r}", field="link")
        node, hop = step
        path.append(hop)
    return path[::-1]


def _ints(values: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ints:
    return np.asarray(values, dtype=np.int32)
