"""The network's forward pass once more in numpy, as its equations read."""

from __future__ import annotations

import numpy as np

from stretto.racks.kernels.policy_score import NetWeights


def reference_scores(weights: NetWeights, x: np.ndarray) -> np.ndarray:
    """Return the score of each candidate."""
    return x @ weights.direct + np.maximum(x @ weights.hidden + weights.bias, 0.0) @ weights.out
