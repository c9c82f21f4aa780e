"""Discrete Bayesian networks with parameters: forward samples, exact enumeration, and their dependencies.

Small and plain: these are what the gradient estimators are checked on, and what belief propagation runs on in the
comparison with them. A node's table is a softmax over logits, so that every parameter moves probabilities smoothly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput

Samples = NDArray[np.int64]  # [S, V]


@dataclass(frozen=True, eq=False)
class Node:
    """A variable with ``logits[parent values..., own value]``."""

    name: str
    parents: tuple[int, ...]
    logits: Floats

    @property
    def size(self) -> int:
        return int(self.logits.shape[-1])

    @cached_property
    def table(self) -> Floats:
        """Probabilities given the parents; sums to one over the last axis."""
        shifted = np.exp(self.logits - self.logits.max(axis=-1, keepdims=True))
        table: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
        return table


@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """Nodes in an order in which parents come first."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        for place, node in enumerate(self.nodes):
            if any(parent >= place or parent < 0 for parent in node.parents):
                raise InvalidInput("parents must come before their children", field=node.name)
            shape = tuple(self.nodes[parent].size for parent in node.parents)
            if node.logits.shape[:-1] != shape:
                raise InvalidInput(f"logits have shape {node.logits.shape}, parents {shape}", field=node.name)

    def with_logits(self, place: int, logits: Floats) -> DiscreteNetwork:
        """Return the network with one node's parameters replaced."""
        nodes = list(self.nodes)
        nodes[place] = Node(nodes[place].name, nodes[place].parents, logits)
        return DiscreteNetwork(tuple(nodes))

    def sample(self, num: int, rng: np.random.Generator, clamp: Mapping[int, int] | None = None) -> Samples:
        """Draw forward samples; clamped nodes keep their value, which is right for nodes without parents.

        For a clamped node that has parents this is an intervention, not conditioning: :func:`given` selects instead.
        """
        values = np.empty((num, len(self.nodes)), np.int64)
        for place, node in enumerate(self.nodes):
            if clamp is not None and place in clamp:
                values[:, place] = clamp[place]
                continue
            rows = node.table[tuple(values[:, parent] for parent in node.parents)]
            rows = np.broadcast_to(rows, (num, node.size))
            drawn = rng.random((num, 1)) > np.cumsum(rows, axis=1)
            values[:, place] = np.minimum(drawn.sum(axis=1), node.size - 1)
        return values

    def states(self) -> Iterator[tuple[int, ...]]:
        """Go through all joint values."""
        return product(*(range(node.size) for node in self.nodes))

    def joint(self, state: Sequence[int]) -> float:
        """Return the probability of one joint value."""
        probability = 1.0
        for place, node in enumerate(self.nodes):
            probability *= float(node.table[(*(state[parent] for parent in node.parents), state[place])])
        return probability

    def probability(self, event: Mapping[int, int], given: Mapping[int, int] | None = None) -> float:
        """Return Pr(event | given) by enumeration."""
        given = given or {}
        both = below = 0.0
        for state in self.states():
            if all(state[place] == value for place, value in given.items()):
                weight = self.joint(state)
                below += weight
                if all(state[place] == value for place, value in event.items()):
                    both += weight
        return both / below

    def ancestors(self, place: int) -> set[int]:
        """Return all nodes from which there is a way to this one."""
        found: set[int] = set()
        open_nodes = list(self.nodes[place].parents)
        while open_nodes:
            node = open_nodes.pop()
            if node not in found:
                found.add(node)
                open_nodes.extend(self.nodes[node].parents)
        return found

    def is_separated(self, x: int, y: int, given: set[int]) -> bool:
        """Say whether two nodes are independent given others, by Bayes-ball."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for place, node in enumerate(self.nodes):
            for parent in node.parents:
                children[parent].append(place)
        seen: set[tuple[int, bool]] = set()
        balls = [(x, True)]  # (node, whether the ball comes from a child)
        while balls:
            at, is_from_child = balls.pop()
            if (at, is_from_child) in seen:
                continue
            seen.add((at, is_from_child))
            if at == y:
                return False
            if is_from_child and at not in given:
                balls += [(parent, True) for parent in self.nodes[at].parents]
                balls += [(child, False) for child in children[at]]
            elif not is_from_child:
                if at in given:
                    balls += [(parent, True) for parent in self.nodes[at].parents]
                else:
                    balls += [(child, False) for child in children[at]]
        return True

    def separator(self, places: Sequence[int], given: set[int]) -> set[int]:
        """Return a small set of ancestors that, with ``given``, makes the places mutually independent (N of Eq. 4).

        Ancestors are added nearest first until all pairs are separated. A place that stands above another one may be
        among them: given its own value, it is independent of everything.
        """
        chosen: set[int] = set()
        pairs = [(x, y) for index, x in enumerate(places) for y in places[index + 1 :]]
        above = sorted(set().union(*(self.ancestors(place) for place in places)) - given, reverse=True)
        for node in above:
            if all(self.is_separated(x, y, given | chosen) for x, y in pairs):
                break
            chosen.add(node)
        return chosen


def given(samples: Samples, values: Mapping[int, int]) -> Samples:
    """Return the samples in which the given nodes have the given values."""
    keep = np.ones(len(samples), np.bool_)
    for place, value in values.items():
        keep &= samples[:, place] == value
    return samples[keep]
