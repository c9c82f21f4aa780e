"""Gradients of Pr(X = x | ancestors) by network parameters from forward samples, without inference (section 3.1).

Eq. 2 is a mean over samples with the ancestors at their values. Eq. 3 as printed weighs the gradient of a probability
by a marginal frequency; that is not an expectation of anything and stays wrong with any number of samples
(``literal_eq3`` is kept to show it). What is consistent is the score function: the mean of f times the gradient of the
*logarithm*. Where several parents depend on each other, they are taken apart by conditioning on a set N that separates
them (Eqs. 4 and 5). For continuous nodes, :func:`pathwise` follows the noise instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from research.symphony.bayes import DiscreteNetwork, Samples, given

from stretto.core.csr import Floats
from stretto.errors import InvalidInput


def table_slope(network: DiscreteNetwork, place: int, row: tuple[int, ...], value: int) -> Floats:
    """Return the derivative of Pr(value | row of parents) by all logits of the node."""
    node = network.nodes[place]
    slope = np.zeros_like(node.logits)
    p = node.table[row]
    slope[row] = -p[value] * p
    slope[(*row, value)] += p[value]
    return slope


def own_gradient(
    network: DiscreteNetwork, place: int, value: int, evidence: Mapping[int, int], samples: Samples
) -> Floats:
    """Return the derivative of Pr(X = value | evidence) by X's own logits (Eq. 2).

    The sum goes over *distinct* values of the parents, each with its share among the samples that have the evidence.
    """
    matching = _matching(samples, evidence)
    parents = network.nodes[place].parents
    rows, counts = np.unique(matching[:, list(parents)], axis=0, return_counts=True)
    total = np.zeros_like(network.nodes[place].logits)
    for row, count in zip(rows, counts, strict=True):
        key = tuple(int(one) for one in row)
        total += count / len(matching) * table_slope(network, place, key, value)
    return total


def score_gradient(
    network: DiscreteNetwork,
    place: int,
    value: int,
    other: int,
    evidence: Mapping[int, int],
    samples: Samples,
) -> Floats:
    """Return the derivative of Pr(X = value | evidence) by an ancestor's logits, as a score function (Eq. 3 put right).

    d E[f(parents)] is the covariance of f(parents) and d log p(ancestor). It holds for any number of parents and any
    loops, so long as the evidence does not stand below X.
    """
    matching = _matching(samples, evidence)
    node, target = network.nodes[other], network.nodes[place]
    f = target.table[(*(matching[:, parent] for parent in target.parents),)][..., value]
    f = np.broadcast_to(f, (len(matching),)) - np.mean(f)
    rows = tuple(matching[:, parent] for parent in node.parents)
    score = np.zeros_like(node.logits)
    np.add.at(score, (*rows, matching[:, other]), f)
    mass = np.zeros(node.logits.shape[:-1])
    np.add.at(mass, rows if rows else (), f if rows else f.sum())
    score -= mass[..., None] * node.table
    return score / len(matching)


def literal_eq3(
    network: DiscreteNetwork,
    place: int,
    value: int,
    parent_gradient: Callable[[int], Floats],
    samples: Samples,
) -> Floats:
    """Return what Eq. 3 gives as printed, for a node with one parent; biased, and kept as a warning only.

    Parameters
    ----------
    parent_gradient
        The gradient of Pr(parent = y | evidence) for each y.
    """
    node = network.nodes[place]
    if len(node.parents) != 1:
        raise InvalidInput("the printed form is for one parent", field=node.name)
    values, counts = np.unique(samples[:, node.parents[0]], return_counts=True)
    total: Any = 0.0
    for y, count in zip(values, counts, strict=True):
        total = total + count / len(samples) * node.table[int(y), value] * parent_gradient(int(y))
    return np.asarray(total)


def factored_gradient(
    network: DiscreteNetwork,
    place: int,
    value: int,
    other: int,
    evidence: Mapping[int, int],
    samples: Samples,
) -> Floats:
    """Return the same derivative for several parents, taken apart by a separating set N (Eqs. 4 and 5).

    Pr(parents | a) is a sum over values n of N of Pr(n | a) times a product of Pr(parent | n, a); the product rule
    gives a term per parent, each the score-function gradient of that parent alone, and one for Pr(n | a) itself.
    """
    matching = _matching(samples, evidence)
    node = network.nodes[place]
    parents = node.parents
    separating = sorted(network.separator(list(parents), set(evidence)))
    total = np.zeros_like(network.nodes[other].logits)
    cells, inverse = np.unique(matching[:, separating], axis=0, return_inverse=True)
    inverse = inverse.ravel()
    for index in range(len(cells)):
        cell = matching[inverse == index]
        share = len(cell) / len(matching)
        chances = [np.bincount(cell[:, parent], minlength=network.nodes[parent].size) / len(cell) for parent in parents]
        slopes = [_marginal_slopes(network, parent, other, cell) for parent in parents]
        reach = _indicator_slope(network, other, matching, inverse == index)
        for row in product(*(range(network.nodes[parent].size) for parent in parents)):
            f = float(node.table[(*row, value)])
            whole = float(np.prod([chances[j][y] for j, y in enumerate(row)]))
            total += f * whole * reach
            for j, y in enumerate(row):
                rest = float(np.prod([chances[i][z] for i, z in enumerate(row) if i != j]))
                total += share * f * rest * slopes[j][y]
    return total


def _marginal_slopes(network: DiscreteNetwork, parent: int, other: int, cell: Samples) -> list[Floats]:
    """Return the gradient of Pr(parent = y | cell) for each y: E[1{y} score] - Pr(y) E[score] within the cell."""
    size = network.nodes[parent].size
    if parent != other and other not in network.ancestors(parent):
        return [np.zeros_like(network.nodes[other].logits)] * size
    return [_indicator_slope(network, other, cell, cell[:, parent] == y) for y in range(size)]


def _indicator_slope(network: DiscreteNetwork, other: int, samples: Samples, is_in: np.ndarray) -> Floats:
    """Return the gradient of the chance of an event among samples, by the score of one node."""
    node = network.nodes[other]
    f = is_in.astype(np.float64) - is_in.mean()
    rows = tuple(samples[:, parent] for parent in node.parents)
    score = np.zeros_like(node.logits)
    np.add.at(score, (*rows, samples[:, other]), f)
    mass = np.zeros(node.logits.shape[:-1])
    np.add.at(mass, rows if rows else (), f if rows else f.sum())
    return (score - mass[..., None] * node.table) / len(samples)


def _matching(samples: Samples, evidence: Mapping[int, int]) -> Samples:
    found = given(samples, evidence)
    if len(found) == 0:
        raise InvalidInput(f"none of {len(samples)} samples has the evidence {dict(evidence)}", field="samples")
    return found


def pathwise(draw: Callable[[Any, Any], Any], params: Any, noise: Any) -> Any:
    """Return the mean over samples of d draw(params, noise) / d params, by automatic differentiation.

    ``draw`` maps parameters and noise that does not depend on them to samples; that is how Student-t readings and
    algebraic links are written, so their gradient needs no density at all.
    """
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda theta: jnp.mean(draw(theta, noise)))(params)
