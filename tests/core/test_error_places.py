"""Errors of the domain say which field is wrong, and the limits of what is taken are where they are said to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stretto.core import units
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import merge
from stretto.core.topology import MAX_ROUTED_DEVICES, Wire, route
from stretto.core.workload import Job, Workload
from stretto.errors import InvalidInput, UnknownName

GRAPH = TaskGraph.from_edges([1.0, 2.0], [0], [1], name="g")
SECONDS = TaskGraph.from_edges([1.0], [], [], transfer_unit="seconds")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: Workload.of([GRAPH], arrivals_s=[1.0, 2.0]), "arrivals_s: 2 arrivals for 1 graphs"),
        (lambda: Job(GRAPH, -1.0), "g: arrival -1.0 must be finite and not negative"),
        (lambda: merge(Workload("w", ())), "w: the workload has no jobs"),
        (
            lambda: merge(Workload.of([GRAPH, SECONDS], name="w")),
            "w: graphs with transfers in bytes and in seconds cannot share a workload",
        ),
        (lambda: units.parse_bytes(True), "a size: True is not a size"),
        (lambda: units.parse_rate(10**400), "a bandwidth: a number of 401 digits is not a bandwidth"),
        (lambda: units.parse_rate("1.2.3"), "a bandwidth: '1.2.3' is not a bandwidth"),
        (lambda: units.parse_seconds(-1.0), "a time: -1.0 must not be negative or NaN"),
        (lambda: units.parse_seconds("1 year"), "a time: '1 year' is not a time; units: s, ms, us, ns, min, h"),
        (
            lambda: route(["n"] * 2001, MAX_ROUTED_DEVICES + 1, []),
            f"link: {MAX_ROUTED_DEVICES + 1} devices; routes are limited to {MAX_ROUTED_DEVICES}",
        ),
        (lambda: route(["a", "b"], 2, []), "link: no path from 'a' to 'b'"),
        (lambda: Cluster.parse("cpu:1x1.2.3"), "cluster: 'cpu:1x1.2.3': '1.2.3' is not a speed"),
        (lambda: Cluster.parse("cpu:0"), "cluster: 'cpu:0': between 1 and 10000 devices"),
        (
            lambda: Cluster.parse("?"),
            "cluster: '?' is not KIND:COUNT, KIND:COUNTxSPEED or node:COUNT*16c64GB, "
            "as in 'cpu:8x1.0,gpu:2x5.0@10GB/s'",
        ),
    ],
)
def test_an_error_says_where_and_what(wrong: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        wrong()
    assert str(caught.value) == text


def test_an_unknown_graph_is_told_with_its_workload() -> None:
    work = Workload.of([GRAPH, SECONDS])
    assert work.name == "workload"
    with pytest.raises(UnknownName, match=r"unknown graph in 'workload': 'h'"):
        work.select("h")


def test_times_turn_to_whole_seconds_at_ten_thousand() -> None:
    assert units.format_seconds(9999.0) == "9999 s"
    assert units.format_seconds(10_000.0) == "10,000 s"
    assert units.format_seconds(1e-3) == "1 ms"
    assert units.format_seconds(1e-6) == "1 µs"
    assert units.format_seconds(1.0) == "1 s"


def test_routes_of_one_node_are_whole_numbers_of_numbers() -> None:
    latency, bandwidth, links = route(["a", "b", "s"], 2, [Wire(0, 2, 4.0, 0.5), Wire(2, 1, 3.0, 0.25, duplex=False)])
    assert (latency.tolist(), bandwidth.dtype) == ([[0.0, 0.75], [0.75, 0.0]], np.float64)
    assert bandwidth.tolist() == [[np.inf, 3.0], [3.0, np.inf]]
    assert links.names == ("a->s", "s->a", "s--b")
    assert (links.route_ptr.tolist(), links.route.tolist()) == ([0, 0, 2, 4, 4], [0, 2, 2, 1])
    assert links.bandwidth.tolist() == [4.0, 4.0, 3.0]
