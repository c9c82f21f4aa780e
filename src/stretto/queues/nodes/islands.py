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
    site: Site,
    shapes: ShapeArrays,
    sets: list[list[int]],
    components: list[tuple[tuple[int, ...], ...]],
    together: Sequence[Sequence[int]] = (),
) -> Islands:
    """Number the groups of nodes that no job connects: each is a queue of its own, with a reservation of its own.

    Parameters
    ----------
    components
        The shapes of each kind of jobs.
    together
        Kinds that must share an island, because a limit counts their jobs together.
    """
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
    first = [anchor[kind[0][0]] for kind in components]
    for at, kind in enumerate(components):
        for shape in (shape for component in kind for shape in component):
            parent[root(anchor[shape])] = root(first[at])
    for kinds in together:
        for other in kinds[1:]:
            parent[root(first[other])] = root(first[kinds[0]])
    roots = [root(i) for i in range(len(parent))]
    number = {r: i for i, r in enumerate(dict.fromkeys(roots))}
    of_node = np.array([number[r] for r in roots], dtype=np.int64)
    return Islands(np.array([of_node[node] for node in first], dtype=np.int64), of_node)


def site_arrays(site: Site, capacity: Longs, sets: list[list[int]], island: Longs, shift_s: float) -> SiteArrays:
    """Return nodes, sets, islands and closings as arrays, nodes by weight and index, times from ``shift_s`` on."""
    weight = np.array([node.weight for node in site.nodes], dtype=np.int64)
    order = np.argsort(weight, kind="stable").astype(np.int32)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    index = {node.name: int(place[i]) for i, node in enumerate(site.nodes)}
    closed: list[list[tuple[float, float]]] = [[] for _ in site.nodes]
    for item in sorted(site.reservations, key=lambda item: item.start_s):
        for name in item.nodes:
            if item.end_s > shift_s:
                closed[index[name]].append((item.start_s - shift_s, item.end_s - shift_s))
    in_set: Flags = np.zeros((len(sets), len(site.nodes)), dtype=np.bool_)
    for row, nodes in zip(in_set, sets, strict=True):
        row[place[nodes]] = True
    times: Floats = np.array([pair for pairs in closed for pair in pairs], dtype=np.float64).reshape(-1, 2)
    ordered = island[order]
    return SiteArrays(
        order=order,
        capacity=np.ascontiguousarray(capacity[order].T),
        weight=weight[order],
        in_set=in_set,
        set_first=np.argmax(in_set, axis=1).astype(np.int64),
        set_last=(len(order) - np.argmax(in_set[:, ::-1], axis=1)).astype(np.int64),
        closed_ptr=ptr([len(pairs) for pairs in closed]),
        closed_from=np.ascontiguousarray(times[:, 0]),
        closed_until=np.ascontiguousarray(times[:, 1]),
        reopening=np.unique(times[:, 1]),
        island_ptr=ptr(np.bincount(ordered).tolist()),
        island_node=np.argsort(ordered, kind="stable").astype(np.int32),
    )
