"""What the network is trained to lower: the expected cost of its choice, were it drawn by the softmax of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.racks.kernels.policy_score import NetWeights


class Lessons(NamedTuple):
    """Decisions, and what their candidates cost."""

    inputs: Floats  # [n, C, NUM_INPUTS]
    cost: Floats  # [n, C] relative to the mean over the candidates
    is_there: NDArray[np.bool_]  # [n, C]

    @staticmethod
    def of(inputs: Floats, total_s: Floats, is_there: NDArray[np.bool_], *, most: float) -> Lessons:
        """Put sums of completion times in relation to their mean; what exceeds ``most`` is cut."""
        num = np.maximum(is_there.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_there, total_s, 0.0).sum(axis=1, keepdims=True) / num
        cost = np.where(is_there, np.clip(total_s / np.maximum(mean, 1e-9) - 1.0, -most, most), 0.0)
        return Lessons(inputs, cost, is_there)

    @staticmethod
    def joined(parts: Sequence[Lessons]) -> Lessons:
        return Lessons(*(np.concatenate(rows) for rows in zip(*parts, strict=True)))

    def taken(self, places: NDArray[np.int64]) -> Lessons:
        return Lessons(self.inputs[places], self.cost[places], self.is_there[places])


def scores(weights: NetWeights, inputs: Floats) -> tuple[Floats, Floats]:
    """Return scores and the hidden layer; as ``fill_scores`` of ``racks/kernels/policy_score.py``, for many."""
    hidden = np.maximum(inputs @ weights.hidden + weights.bias, 0.0)
    return hidden @ weights.out + inputs @ weights.direct, hidden


def expected_cost(weights: NetWeights, lessons: Lessons, sharpness: float) -> tuple[float, NetWeights]:
    """Return ``sharpness`` times the mean over decisions of the expected cost, and its gradient."""
    score, hidden = scores(weights, lessons.inputs)
    score = np.where(lessons.is_there, score, -np.inf)
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    cost = sharpness * lessons.cost
    mean = (chance * cost).sum(axis=1, keepdims=True)
    slope = chance * (cost - mean) / len(cost)  # [n, C] by score
    behind = slope[..., None] * weights.out * (hidden > 0)
    rows, flat_behind = lessons.inputs.reshape(-1, lessons.inputs.shape[2]), behind.reshape(-1, behind.shape[2])
    gradient = NetWeights(
        rows.T @ flat_behind, flat_behind.sum(axis=0), np.einsum("nc,nch->h", slope, hidden), rows.T @ slope.ravel()
    )
    return float(mean.mean()), gradient
