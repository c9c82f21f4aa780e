"""Rates on shared links are max-min fair: judged by the definition of fairness, not by another filling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_against_reference import assert_same

from stretto.core.cluster import Cluster, Links
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.graphs.kernels.simulate.event_state import COPY
from stretto.graphs.kernels.simulate.fair import join_route, make_flows, take_finished
from stretto.graphs.kernels.simulate.filling import ACTIVE, BUSY, DUE, drop_flows, share_links
from stretto.graphs.kernels.simulate.links import Routes

NUM_DEVICES = 4
NUM_PAIRS = NUM_DEVICES**2
#: At most this many flows of one pair at a time.
ROOM = 12
CLOSE = 1e-9


@dataclass
class Network:
    """Flows under the kernels' care, and how many there are of each pair."""

    routes: list[list[int]]
    bandwidth: list[float]
    cap: list[float]
    num_flows: list[int] = field(default_factory=lambda: [0] * NUM_PAIRS)
    now: float = 0.0
    due: float = np.inf

    def __post_init__(self) -> None:
        cluster = Cluster.related([1.0] * NUM_DEVICES, bandwidth=np.reshape(self.cap, (NUM_DEVICES, NUM_DEVICES)))
        arrays = Problem.of(TaskGraph.from_edges([1.0], [], [], []), cluster).arrays
        # A device reaches itself at any rate, whatever was drawn.
        self.cap = [1 / inverse if inverse > 0 else np.inf for inverse in arrays.inv_bandwidth.ravel().tolist()]
        ptr = np.cumsum([0] + [len(route) for route in self.routes]).astype(np.int32)
        links = np.array([link for route in self.routes for link in route], dtype=np.int32)
        copies = np.zeros(NUM_PAIRS * ROOM, dtype=COPY)
        copies["pair"] = np.arange(len(copies)) // ROOM
        copies["moves"] = 1
        self.flows = make_flows(
            arrays, Routes(np.zeros(1, dtype=np.int64), ptr, links, np.array(self.bandwidth)), copies, True
        )

    def join(self, pair: int, work: float) -> None:
        f = self.flows
        join_route(f.classes, f.goal, f.copy_of, f.links, f.lists, f.at, pair, pair, work, self.now)
        self.num_flows[pair] += 1

    def leave(self) -> None:
        """Let all flows leave that are due first."""
        f = self.flows
        self.now = self.due
        while self.due == self.now:
            pair = int(f.lists[f.at.due + f.lists[DUE] - 1])
            taken = take_finished(f.classes, f.goal, f.copy_of, f.leaving, pair, self.now)
            self.num_flows[pair] -= taken
            assert set(f.leaving[:taken].tolist()) == {pair}
            self.due = drop_flows(f.classes, f.links, f.lists, f.at, pair, taken, self.now)

    def share(self) -> dict[int, float]:
        """Set the rates and return them by pair."""
        f = self.flows
        self.due = share_links(f.classes, f.links, f.lists, f.share, f.at, self.now)
        active = [pair for pair in range(NUM_PAIRS) if self.num_flows[pair] > 0]
        assert sorted(f.lists[f.at.fixed : f.at.fixed + f.lists[ACTIVE]].tolist()) == active
        assert f.lists[BUSY] == len({link for pair in active for link in self.routes[pair]})
        return {pair: float(f.classes[pair]["rate"]) for pair in active}


def assert_fair(network: Network, rates: dict[int, float]) -> None:
    """No link carries more than it can, and every flow is held by its pair or by a full link where none is faster."""
    load = [0.0] * len(network.bandwidth)
    fastest = [0.0] * len(network.bandwidth)
    for pair, rate in rates.items():
        assert 0 < rate <= network.cap[pair]
        for link in network.routes[pair]:
            load[link] += rate * network.num_flows[pair]
            fastest[link] = max(fastest[link], rate)
    for carried, bandwidth in zip(load, network.bandwidth, strict=True):
        assert carried <= bandwidth * (1 + CLOSE)
    for pair, rate in rates.items():
        is_held = any(
            load[link] >= network.bandwidth[link] * (1 - CLOSE) and rate >= fastest[link] * (1 - CLOSE)
            for link in network.routes[pair]
        )
        assert is_held or rate == network.cap[pair]


@st.composite
def networks(draw: st.DrawFn) -> Network:
    num_links = draw(st.integers(1, 6))
    rates = st.sampled_from([1.0, 1.0, 2.0, 3.0, 0.7, 10.0, np.inf])
    hops = st.lists(st.integers(0, num_links - 1), max_size=3, unique=True)
    return Network(
        [draw(hops) for _ in range(NUM_PAIRS)],
        [draw(rates) for _ in range(num_links)],
        [draw(st.sampled_from([0.1, 0.3, 1.0, 1.0, 2.0, np.inf])) for _ in range(NUM_PAIRS)],
    )


CHANGES = st.lists(st.lists(st.integers(0, NUM_PAIRS - 1), max_size=6), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(network=networks(), rounds=CHANGES)
def test_rates_are_max_min_fair_whatever_came_and_went(network: Network, rounds: list[list[int]]) -> None:
    """Each round lets the first flows leave and others join; what was kept from earlier rounds must not matter."""
    for number, joining in enumerate(rounds):
        if network.due < np.inf:
            network.leave()
        for pair in joining:
            if network.num_flows[pair] < ROOM:
                network.join(pair, 1.0 + 0.37 * number)
        rates = network.share()
        assert_fair(network, rates)
        assert (network.due < np.inf) == bool(rates)
    while network.due < np.inf:
        before = sum(network.num_flows)
        network.leave()
        assert sum(network.num_flows) < before
        assert_fair(network, network.share())
    assert network.num_flows == [0] * NUM_PAIRS


def test_what_one_pair_cannot_use_goes_to_the_others() -> None:
    network = Network([[0]] * NUM_PAIRS, [10.0], [np.inf, 1.0] + [np.inf] * (NUM_PAIRS - 2))
    for pair in (1, 2, 2, 3):
        network.join(pair, 5.0)
    assert network.share() == {1: 1.0, 2: 3.0, 3: 3.0}


def test_without_any_link_pairs_alone_limit() -> None:
    network = Network([[]] * NUM_PAIRS, [], [2.0] * NUM_PAIRS)
    network.join(1, 5.0)
    network.join(1, 7.0)
    assert network.share() == {1: 2.0}
    assert network.due == 2.5


def star(m: int, rng: np.random.Generator) -> list[list[int]]:
    """A link out of and one into every device."""
    return [[a, m + b] if a != b else [] for a in range(m) for b in range(m)]


def two_racks(m: int, rng: np.random.Generator) -> list[list[int]]:
    """A star whose two halves are joined by one link each way, so that many classes meet."""
    half = m // 2
    far = [[] if (a < half) == (b < half) else [2 * m + (a < half)] for a in range(m) for b in range(m)]
    return [near[:1] + middle + near[1:] for near, middle in zip(star(m, rng), far, strict=True)]


def tangle(m: int, rng: np.random.Generator) -> list[list[int]]:
    """Any links in any order."""
    return [rng.choice(2 * m + 2, rng.integers(0, 5), replace=False).tolist() for _ in range(m * m)]


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("is_capped", [False, True])
@pytest.mark.parametrize("topology", [star, two_racks, tangle])
def test_many_flows_with_inexact_times(topology: Any, is_capped: bool, discipline: str) -> None:
    """Small integers hide rounding, and small graphs hide long fillings; here no two sums are alike."""
    rng = np.random.default_rng(5)
    n, m, num_edges = 150, 6, 400
    target = rng.integers(1, n, num_edges)
    source = rng.integers(np.maximum(0, target - 60), target)
    graph = TaskGraph.from_edges(rng.uniform(0, 1, n), source, target, rng.uniform(0.1, 9, num_edges))
    routes = topology(m, rng)
    links = Links(
        tuple(f"l{i}" for i in range(2 * m + 2)),
        rng.uniform(2, 5, 2 * m + 2),
        np.cumsum([0] + [len(route) for route in routes]).astype(np.int32),
        np.array([link for route in routes for link in route], dtype=np.int32),
    )
    caps = rng.uniform(0.3, 2, (m, m)) if is_capped else np.full((m, m), 100.0)
    cluster = replace(Cluster.related(rng.uniform(0.5, 2, m), bandwidth=caps, latency_s=0.01), links=links)
    plan = Plan(rng.integers(0, m, n).astype(np.int32), np.arange(n, dtype=np.int32))
    assert_same(Problem.of(graph, cluster), plan, discipline=discipline, contention="fair")
