"""The nodes that pools offer for one plan: owned ones, and instances that may be rented, on demand or on spot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stretto.core.cluster import DEFAULT_BANDWIDTH, Cluster, Device
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.rental.kernels.rent import NodeArrays

Market = Literal["owned", "on-demand", "spot"]
#: What is paid at least for a rental whose offer does not say; as the large providers do.
ASSUMED_MINIMUM_S = 60.0
#: Nodes of one pool that a plan considers.
MAX_PER_POOL = 128


@dataclass(frozen=True)
class Node:
    """A node that a plan may use.

    Attributes
    ----------
    ready_s
        No task starts on it before: it has to come up.
    """

    name: str
    pool: Pool
    market: Market
    ready_s: float

    @property
    def minimum_s(self) -> float:
        """The least time that is paid."""
        stated = self.pool.minimum_s
        return ASSUMED_MINIMUM_S if stated is None else stated

    @property
    def price_usd_per_hour(self) -> float:
        """The price at second zero."""
        if self.market == "spot":
            assert self.pool.spot is not None
            return float(self.pool.spot.price_usd_per_hour[0])
        return self.pool.price_usd_per_hour


@dataclass(frozen=True, eq=False)
class Fleet:
    """Nodes, and what was assumed about them."""

    nodes: tuple[Node, ...]
    notes: tuple[str, ...]

    @staticmethod
    def of(pools: Sequence[Pool], num_tasks: int, notes: Sequence[str] = ()) -> Fleet:
        """Return all nodes of some pools that a plan of so many tasks could use."""
        nodes: list[Node] = []
        notes = list(notes)
        for pool in pools:
            number = min(pool.num_nodes, num_tasks, MAX_PER_POOL)
            if number < min(pool.num_nodes, num_tasks):
                notes.append(f"Of the {pool.num_nodes:,} nodes of pool {pool.name}, {number} are considered.")
            nodes += _on_demand(pool, number)
            if pool.spot is not None:
                nodes += _spot(pool, number, notes)
        return Fleet(tuple(nodes), (*notes, *_assumptions(pools)))

    def take(self, places: Sequence[int]) -> Fleet:
        """Return some of the nodes."""
        return Fleet(tuple(self.nodes[place] for place in places), self.notes)

    @property
    def owned(self) -> list[int]:
        """Places of the owned nodes."""
        return [place for place, node in enumerate(self.nodes) if node.market == "owned"]

    def problem(self, graph: TaskGraph) -> Problem:
        """Compile a graph for these nodes; a node with one processor and nothing else to share is a device."""
        packs = any(_shares(node.pool) for node in self.nodes)
        devices = [_device(node, kind_of(graph), packs) for node in self.nodes]
        return Problem.of(graph, Cluster.uniform(devices, bandwidth=DEFAULT_BANDWIDTH, name="pools"))

    def arrays(self, problem: Problem) -> NodeArrays:
        """Return what the kernel reads."""
        nodes = self.nodes
        groups: dict[tuple[str, str, float], int] = {}
        group = [groups.setdefault((n.pool.name, n.market, n.ready_s), len(groups)) for n in nodes]
        pools: dict[str, int] = {}
        pool = [pools.setdefault(n.pool.name, len(pools)) for n in nodes]
        packing = problem.packing
        return NodeArrays(
            np.ones((len(nodes), 1)) if packing is None else packing.capacity,
            np.array([node.price_usd_per_hour / 3600.0 for node in nodes]),
            np.array([node.pool.billing_s for node in nodes]),
            np.array([node.minimum_s for node in nodes]),
            self.ready_s,
            np.array(group, dtype=np.int32),
            np.array(pool, dtype=np.int32),
            np.array([next(n.pool.num_nodes for n in nodes if n.pool.name == name) for name in pools], dtype=np.int32),
            np.array([node.market == "spot" for node in nodes]),
        )

    @property
    def ready_s(self) -> Floats:
        """When each node is up."""
        return np.array([node.ready_s for node in self.nodes])


def kind_of(graph: TaskGraph) -> str:
    """Return the kind of device whose durations hold on the nodes of pools."""
    return graph.kinds[0] if graph.kinds and "cpu" not in graph.kinds else "cpu"


def _on_demand(pool: Pool, number: int) -> list[Node]:
    market: Market = "owned" if pool.price_usd_per_hour == 0 else "on-demand"
    if pool.spot is not None and market == "owned":
        raise InvalidInput(
            "has spot prices but no price_usd_per_hour: state the on-demand price of its nodes, on which a plan falls "
            "back when spot is lost",
            field=f"pool {pool.name}",
        )
    is_up = pool.num_nodes if pool.min_nodes is None else pool.min_nodes
    return [Node(f"{pool.name}-{k}", pool, market, 0.0 if k < is_up else pool.provision_s) for k in range(number)]


def _spot(pool: Pool, number: int, notes: list[str]) -> list[Node]:
    spot = pool.spot
    assert spot is not None
    above = spot.price_usd_per_hour > spot.bid_usd_per_hour
    if bool(above.any()):
        when = float(spot.time_s[int(np.argmax(above))])
        notes.append(
            f"Spot nodes of pool {pool.name} are left out: their price rises above the bid of "
            f"{spot.bid_usd_per_hour:g} USD/h after {when:g} s."
        )
        return []
    return [Node(f"{pool.name}-spot-{k}", pool, "spot", pool.provision_s) for k in range(number)]


def _assumptions(pools: Sequence[Pool]) -> list[str]:
    """Say what was assumed about the pools that are rented."""
    notes = [f"Links between nodes are assumed: {DEFAULT_BANDWIDTH / 1e9:g} GB/s, no latency."]
    rented = [pool for pool in pools if pool.price_usd_per_hour > 0]
    silent = [pool.name for pool in rented if pool.minimum_s is None]
    if silent:
        per = {f"per begun {pool.billing_s:g} s" if pool.billing_s != 1 else "per second" for pool in rented}
        notes.append(
            f"Billing of {', '.join(silent)} is assumed: {' or '.join(sorted(per))}, at least "
            f"{ASSUMED_MINIMUM_S:g} s (state billing and minimum in the pool file)."
        )
    prompt = [pool.name for pool in rented if pool.provision_s == 0 and pool.is_elastic]
    if prompt:
        notes.append(f"Nodes of {', '.join(prompt)} are assumed to be up at once (state provision in the pool file).")
    stays = [pool.name for pool in rented if np.isfinite(pool.idle_shutdown_s)]
    if stays:
        notes.append(f"idle_shutdown of {', '.join(stays)} is not used: the plan says when each node is released.")
    if any(pool.spot is not None for pool in pools):
        notes.append("On-demand nodes are assumed to be available whenever spot is lost.")
        if not all(bool(pool.spot.hazard_per_hour.any()) for pool in pools if pool.spot is not None):
            notes.append("The cost assumes that spot nodes without a stated hazard_per_hour are not lost.")
    if rented:
        notes.append("Outputs of tasks are assumed to be kept where every node reaches them.")
    return notes


def _shares(pool: Pool) -> bool:
    return pool.procs_per_node > 1 or pool.gpus_per_node > 0 or np.isfinite(pool.memory_bytes_per_node)


def _device(node: Node, kind: str, packs: bool) -> Device:
    pool = node.pool
    name, speed, price = node.name, pool.speed, node.price_usd_per_hour
    if not packs:
        return Device(name, kind=kind, speed=speed, machine=name, price_usd_per_hour=price)
    return Device(
        name,
        kind=kind,
        speed=speed,
        memory_bytes=pool.memory_bytes_per_node,
        cores=float(pool.procs_per_node),
        gpus=float(pool.gpus_per_node),
        packs=True,
        machine=name,
        price_usd_per_hour=price,
    )
