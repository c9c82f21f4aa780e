"""The forward pass of Symphony's network: a score per candidate from its inputs.

Twin in numpy: ``tests/racks/symphony/reference_network.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit

#: Units of the hidden layer.
HIDDEN = 16


class NetWeights(NamedTuple):
    """Weights, shared over processors, kernels and candidates."""

    hidden: np.ndarray  # [NUM_INPUTS, HIDDEN]
    bias: np.ndarray  # [HIDDEN]
    out: np.ndarray  # [HIDDEN]
    direct: np.ndarray  # [NUM_INPUTS]


@njit(cache=True, nogil=True)
def fill_scores(weights, x, num, scores):
    """Fill the score of each candidate."""
    num_inputs, num_hidden = weights.hidden.shape
    inner = np.empty(num_hidden)
    for c in range(num):
        total = 0.0
        inner[:] = weights.bias
        for v in range(num_inputs):
            if x[c, v] != 0.0:
                total += x[c, v] * weights.direct[v]
                for u in range(num_hidden):
                    inner[u] += x[c, v] * weights.hidden[v, u]
        for u in range(num_hidden):
            total += max(inner[u], 0.0) * weights.out[u]
        scores[c] = total
