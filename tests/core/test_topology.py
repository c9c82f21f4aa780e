"""Routing, against a search through all simple paths."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.topology import Wire, route
from stretto.errors import InvalidInput


def _all_paths(wires: list[Wire], num_nodes: int, source: int, target: int) -> list[tuple[int, float]]:
    """Hops and bottleneck of every simple path; the best wire of each parallel bundle."""
    width: dict[tuple[int, int], float] = {}
    for wire in wires:
        for ends in ((wire.a, wire.b), (wire.b, wire.a)):
            width[ends] = max(width.get(ends, 0.0), wire.bandwidth)
    found = []
    others = [node for node in range(num_nodes) if node not in (source, target)]
    for length in range(len(others) + 1):
        for middle in permutations(others, length):
            path = [source, *middle, target]
            steps = list(zip(path, path[1:], strict=False))
            if all(step in width for step in steps):
                found.append((len(steps), min(width[step] for step in steps)))
    return found


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_routes_are_shortest_then_widest(data: st.DataObject) -> None:
    num_nodes = data.draw(st.integers(2, 6))
    num_devices = data.draw(st.integers(2, num_nodes))
    ends = st.tuples(st.integers(0, num_nodes - 1), st.integers(0, num_nodes - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    wire = st.builds(
        lambda pair, rate, delay, duplex: Wire(*pair, rate, delay, duplex),
        ends,
        st.sampled_from([1.0, 2.0, 5.0, float("inf")]),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.booleans(),
    )
    wires = data.draw(st.lists(wire, min_size=1, max_size=9))
    nodes = [f"n{i}" for i in range(num_nodes)]
    pairs = [(a, b) for a in range(num_devices) for b in range(num_devices) if a != b]
    paths = {pair: _all_paths(wires, num_nodes, *pair) for pair in pairs}
    if not all(paths.values()):
        with pytest.raises(InvalidInput, match="no path"):
            route(nodes, num_devices, wires)
        return
    latency, bandwidth, links = route(nodes, num_devices, wires)
    for (a, b), found in paths.items():
        hops = min(length for length, _ in found)
        assert bandwidth[a, b] == max(width for length, width in found if length == hops)
        at = a * num_devices + b
        taken = links.route[links.route_ptr[at] : links.route_ptr[at + 1]]
        assert len(taken) <= hops
        if len(taken):
            assert links.bandwidth[taken].min() == bandwidth[a, b]
        else:
            assert bandwidth[a, b] == np.inf
        assert latency[a, b] <= hops * 1.0
    assert len(links.names) == sum(2 if wire.duplex else 1 for wire in wires)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_routes_are_walks_from_source_to_target(data: st.DataObject) -> None:
    """A ring with random chords: every route is a chain of its own wires, latencies added."""
    num_nodes = data.draw(st.integers(3, 7))
    delays = st.integers(0, 8).map(float)
    wires = [Wire(i, (i + 1) % num_nodes, 1.0, data.draw(delays), data.draw(st.booleans())) for i in range(num_nodes)]
    for _ in range(data.draw(st.integers(0, 3))):
        a = data.draw(st.integers(0, num_nodes - 1))
        b = (a + data.draw(st.integers(1, num_nodes - 1))) % num_nodes
        wires.append(Wire(a, b, data.draw(st.sampled_from([1.0, 2.0])), data.draw(delays), data.draw(st.booleans())))
    wire_of = [wire for wire in wires for _ in range(2 if wire.duplex else 1)]
    latency, _, links = route([str(i) for i in range(num_nodes)], num_nodes, wires)
    for a in range(num_nodes):
        for b in range(num_nodes):
            at, walked, seconds = a * num_nodes + b, a, 0.0
            for link in links.route[links.route_ptr[at] : links.route_ptr[at + 1]].tolist():
                wire = wire_of[link]
                if wire.duplex:
                    assert links.names[link].startswith(f"{walked}->")
                walked = wire.b if walked == wire.a else wire.a
                seconds += wire.latency_s
            assert walked == b
            assert latency[a, b] == seconds


def test_ties_go_through_the_lowest_index() -> None:
    wires = [Wire(0, 3, 1.0), Wire(0, 2, 1.0), Wire(3, 1, 1.0), Wire(2, 1, 1.0)]
    _, _, links = route(["a", "b", "c", "d"], 2, wires)
    assert [links.names[link] for link in links.route[links.route_ptr[1] : links.route_ptr[2]]] == ["a->c", "c->b"]


def test_too_many_devices_are_refused() -> None:
    with pytest.raises(InvalidInput, match="limited to"):
        route([str(i) for i in range(3000)], 3000, [])
