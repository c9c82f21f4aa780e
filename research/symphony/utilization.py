"""Utilization from counters as a network of sums, in two forms: forward samples, and belief propagation on a grid.

A machine's interconnect is a tree of sums (section 3, Fig. 5): devices into switches, switches into a root complex,
that and the cores into memory. Leaves are measured (Student-t), the rest follows. The sampled form draws readings and
adds them up, and gradients flow along the samples. The grid form holds a distribution over ``num_bins`` values per
node and adds by convolution: exact up to the grid, and differentiable as well, but all of it must be worked out at each
update. Occupancy leaves go through u = v ** (1 / (theta - 1)), where theta is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stretto.errors import InvalidInput


@dataclass(frozen=True)
class SumTree:
    """Leaves come first; ``sums[j]`` lists the nodes that node ``num_leaves + j`` adds up, with their weights."""

    num_leaves: int
    sums: tuple[tuple[tuple[int, float], ...], ...]
    occupancy: tuple[int, ...] = ()  # leaves that are read through theta
    ways: tuple[tuple[int, int], ...] = ()  # switch and memory that a transfer takes, by NIC

    def __post_init__(self) -> None:
        for place, parts in enumerate(self.sums):
            if not parts or any(not 0 <= node < self.num_leaves + place for node, _ in parts):
                raise InvalidInput("sums must add up nodes that come before them", field=f"sums[{place}]")

    @property
    def num_nodes(self) -> int:
        return self.num_leaves + len(self.sums)


def two_socket_tree() -> SumTree:
    """Return the interconnect of the two-NIC machine: per socket a GPU and a NIC, a switch, a root and memory."""
    leaves = 8  # per socket: gpu, nic, cores, occupancy of memory
    sums: list[tuple[tuple[int, float], ...]] = []
    for socket in (0, 1):
        gpu, nic, cores = (4 * socket + leaf for leaf in (0, 1, 2))
        switch = leaves + len(sums)
        sums.append(((gpu, 0.5), (nic, 0.5)))
        sums.append(((switch, 0.4),))
        sums.append(((switch + 1, 0.5), (cores, 0.3), (4 * socket + 3, 0.2)))
    return SumTree(leaves, tuple(sums), (3, 7), ((leaves, leaves + 2), (leaves + 3, leaves + 5)))


def server_tree(num_cores: int = 8) -> SumTree:
    """Return a dual-socket server about as large as the paper's example: 32 measured leaves with eight cores a socket.

    Per socket two switches with three devices each, a direct device, the cores, and the occupancy of memory.
    """
    per_socket = 8 + num_cores
    leaves = 2 * per_socket
    sums: list[tuple[tuple[int, float], ...]] = []
    ways = []
    for socket in (0, 1):
        base, first = socket * per_socket, leaves + len(sums)
        for switch in (0, 1):
            sums.append(tuple((base + 3 * switch + device, 1 / 3) for device in range(3)))
        sums.append(((first, 0.4), (first + 1, 0.4), (base + 6, 0.2)))
        sums.append(tuple((base + 7 + core, 1 / num_cores) for core in range(num_cores)))
        sums.append(((first + 2, 0.4), (first + 3, 0.3), (base + 7 + num_cores, 0.3)))
        ways.append((first, first + 4))
    return SumTree(leaves, tuple(sums), tuple(s * per_socket + 7 + num_cores for s in (0, 1)), tuple(ways))


def link(tree: SumTree, readings: Any, theta: Any) -> Any:
    """Return leaves from readings [..., L]: occupancy goes through its diffeomorphism, everything into (0, 1)."""
    inside = jnp.clip(readings, 0.01, 0.99)
    bent = inside ** (1.0 / (theta - 1.0))
    is_bent = np.isin(np.arange(tree.num_leaves), tree.occupancy)
    return jnp.where(is_bent, bent, inside)


def sampled_means(tree: SumTree, mean: Any, scale: Any, theta: Any, noise: Any) -> Any:
    """Return the mean of each node over forward samples; noise is Student-t, [S, L], and carries no gradient."""
    leaves = link(tree, mean + scale * noise, theta)
    nodes = [leaves[:, leaf] for leaf in range(tree.num_leaves)]
    for parts in tree.sums:
        nodes.append(sum(weight * nodes[node] for node, weight in parts))
    return jnp.stack([node.mean() for node in nodes])


def propagated_means(tree: SumTree, mean: Any, scale: Any, theta: Any, nu: float, num_bins: int) -> Any:
    """Return the mean of each node by sum-product on a grid over [0, 1]."""
    grid = jnp.linspace(0.01, 0.99, num_bins)
    raw = jnp.stack([grid] * tree.num_leaves, -1)  # [G, L] value of each leaf
    is_bent = np.isin(np.arange(tree.num_leaves), tree.occupancy)
    back = jnp.where(is_bent, raw ** (theta - 1.0), raw)  # the reading that gives this value
    steep = jnp.where(is_bent, (theta - 1.0) * raw ** (theta - 2.0), 1.0)
    gap = (back - mean) / scale
    density = steep * (1.0 + gap * gap / nu) ** (-(nu + 1.0) / 2.0)
    belief = density / density.sum(0)
    nodes = [belief[:, leaf] for leaf in range(tree.num_leaves)]
    for parts in tree.sums:
        nodes.append(_add(nodes, parts, grid))
    return jnp.stack([node @ grid for node in nodes])


def _add(nodes: list[Any], parts: tuple[tuple[int, float], ...], grid: Any) -> Any:
    """Return the distribution of a weighted sum: every pair of values, spread over the two nearest bins."""
    step = grid[1] - grid[0]
    num_bins = len(grid)
    total, values = nodes[parts[0][0]], parts[0][1] * grid
    for node, weight in parts[1:]:
        both = (total[:, None] * nodes[node][None]).ravel()
        place = (values[:, None] + weight * grid[None]).ravel()
        total, values = _bin(both, place, grid, step, num_bins), grid
    return _bin(total, values, grid, step, num_bins)


def _bin(weight: Any, place: Any, grid: Any, step: Any, num_bins: int) -> Any:
    where = jnp.clip((place - grid[0]) / step, 0.0, num_bins - 1.0)
    low = jnp.clip(jnp.floor(where).astype(jnp.int32), 0, num_bins - 2)
    part = where - low
    out = jnp.zeros(num_bins)
    return out.at[low].add(weight * (1.0 - part)).at[low + 1].add(weight * part)


def posterior_by_importance(
    tree: SumTree, mean: Any, scale: Any, theta: float, evidence: dict[int, tuple[float, float]], key: Any, num: int
) -> tuple[Any, Any]:
    """Return mean and spread of every node given Gaussian evidence on some, by weighting forward samples.

    This is the slow reference for inference; what decides at run time is the filter of ``racks/kernels/belief.py``.
    """
    noise = jax.random.t(key, 5.0, (num, tree.num_leaves))
    leaves = link(tree, mean + scale * noise, theta)
    nodes = [leaves[:, leaf] for leaf in range(tree.num_leaves)]
    for parts in tree.sums:
        nodes.append(sum(weight * nodes[node] for node, weight in parts))
    samples = jnp.stack(nodes, -1)
    log_weight = sum(-0.5 * ((samples[:, node] - value) / sd) ** 2 for node, (value, sd) in evidence.items())
    weight = jax.nn.softmax(jnp.broadcast_to(log_weight, (num,)))
    centre = weight @ samples
    return centre, jnp.sqrt(weight @ (samples - centre) ** 2)
