"""The nodes of a site as arrays, and the groups of nodes that no job connects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.queues.nodes.kernels.arrays import Flags, Longs, ShapeArrays, SiteArrays


def ptr(lengths: Sequence[int]) -> Longs:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Islands:
    """The island of each kind of jobs and of each node."""

    of_kind: Longs
    of_node: Longs


def islands(
    site: Site, shapes: ShapeArrays, sets: list[list[int]], wanted: list[tuple[tuple[int, ...], ...]]
) -> Islands:
    """Number the groups of nodes that no job connects: each is a queue of its own, with a reservation of its own."""
    parent = list(range(len(site.nodes)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for nodes in sets:
        for node in nodes[1:]:
            parent[root(node)] = root(nodes[0])
    anchor = [sets[int(k)][0] for k in shapes.node_set]
    for components in set(wanted):
        flat = [shape for component in components for shape in component]
        for shape in flat[1:]:
            parent[root(anchor[shape])] = root(anchor[flat[0]])
    roots = [root(i) for i in range(len(parent))]
    number = {r: i for i, r in enumerate(dict.fromkeys(roots))}
    of_node = np.array([number[r] for r in roots], dtype=np.int64)
    of_kind = np.array([of_node[anchor[components[0][0]]] for components in wanted], dtype=np.int64)
    return Islands(of_kind, of_node)


def site_arrays(site: Site, capacity: Longs, sets: list[list[int]], island: Longs, shift_s: float) -> SiteArrays:
    """Return nodes, sets, islands and closings as arrays, with times from ``shift_s`` on."""
    closed: list[list[tuple[float, float]]] = [[] for _ in site.nodes]
    index = {node.name: i for i, node in enumerate(site.nodes)}
    for item in sorted(site.reservations, key=lambda item: item.start_s):
        for name in item.nodes:
            if item.end_s > shift_s:
                closed[index[name]].append((item.start_s - shift_s, item.end_s - shift_s))
    in_set: Flags = np.zeros((len(sets), len(site.nodes)), dtype=np.bool_)
    for row, nodes in zip(in_set, sets, strict=True):
        row[nodes] = True
    by_island = np.argsort(island, kind="stable").astype(np.int32)
    times: Floats = np.array([pair for pairs in closed for pair in pairs], dtype=np.float64).reshape(-1, 2)
    return SiteArrays(
        capacity,
        np.array([node.weight for node in site.nodes], dtype=np.int64),
        ptr([len(nodes) for nodes in sets]),
        np.array([node for nodes in sets for node in nodes], dtype=np.int32),
        ptr([len(pairs) for pairs in closed]),
        np.ascontiguousarray(times[:, 0]),
        np.ascontiguousarray(times[:, 1]),
        in_set,
        ptr(np.bincount(island).tolist()),
        by_island,
    )
