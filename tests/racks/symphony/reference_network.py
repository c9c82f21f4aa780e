"""The network's forward pass once more in numpy, as its equations read."""

from __future__ import annotations

import numpy as np

from stretto.racks.kernels.policy_inputs import NUM_INPUTS, NUM_KERNEL_INPUTS, split_action
from stretto.racks.kernels.policy_score import NUM_KINDS, NetGraph, NetWeights, fill_kernel_inputs
from stretto.racks.simulator import RackBatch


def reference_scores(
    batch: RackBatch, graph: NetGraph, weights: NetWeights, actions: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return the score of each candidate in the first rack of a batch."""
    arrays, belief = batch.model.arrays, batch.belief
    kind = np.eye(NUM_KINDS)[graph.part_kind]
    seen = np.stack([np.minimum(belief.pressure[0], 3.0), belief.load[0], np.minimum(belief.load_sd[0], 1.0)], axis=1)
    at_part = _layer(np.hstack([seen, kind]) @ weights.part_in, _mean(graph), weights.part_own, weights.part_near)
    features = np.zeros((len(arrays.duration_s), NUM_KERNEL_INPUTS))
    for k in range(len(features)):
        fill_kernel_inputs(arrays, batch.state, 0, k, features[k])
    at_kernel = _layer(features @ weights.kernel_in, graph.follows, weights.kernel_own, weights.kernel_next)
    rows = []
    for action, row in zip(actions, x, strict=True):
        k, p = split_action(arrays, action)
        around = np.zeros(3 * at_part.shape[1])
        if k >= 0:
            used = np.minimum(arrays.demand[k, p], 1.0) @ at_part
            own = at_part[graph.own[graph.own_ptr[p] : graph.own_ptr[p + 1]]].mean(axis=0)
            around = np.concatenate([used, own, at_kernel[k]])
        rows.append(np.concatenate([row[:NUM_INPUTS], around]))
    return x @ weights.direct + np.tanh(np.array(rows) @ weights.hidden + weights.bias) @ weights.out


def _layer(seen: np.ndarray, neighbors: np.ndarray, own: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return embeddings after one round of messages, added to what they were."""
    seen = np.tanh(seen)
    return seen + np.tanh(seen @ own + neighbors @ seen @ near)


def _mean(graph: NetGraph) -> np.ndarray:
    """Return the matrix that takes the mean over the neighbors of each part."""
    num = len(graph.part_kind)
    out = np.zeros((num, num))
    for r in range(num):
        near = graph.near[graph.near_ptr[r] : graph.near_ptr[r + 1]]
        out[r, near] = 1.0 / max(len(near), 1)
    return out
