"""Durations the way Paragon guesses them: few profiled pairs of kernel and processor, the rest by matrix completion."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.racks.machine_work import RackModel

_RANK = 2
_ROUNDS = 30
_RIDGE = 0.1


def paragon_durations(model: RackModel, seed: int, *, profiled: float = 0.4, noise: float = 0.1) -> Floats:
    """Return an estimate of each kernel's duration on each processor.

    Kernels are profiled on a random part of the processors that can run them, at least two, with some error; a matrix
    of low rank is fitted to the logarithms by alternating least squares.
    """
    rng = np.random.default_rng(seed)
    true = model.arrays.duration_s
    able = np.isfinite(true)
    known = able & (rng.random(true.shape) < profiled)
    for k in range(len(true)):
        places = np.flatnonzero(able[k])
        known[k, rng.choice(places, min(2, len(places)), replace=False)] = True
    seen = np.where(known, np.log(np.where(able, true, 1.0)) + noise * rng.standard_normal(true.shape), 0.0)
    mean = seen[known].mean()
    rank = min(_RANK, *true.shape)
    left = 0.1 * rng.standard_normal((true.shape[0], rank))
    right = 0.1 * rng.standard_normal((true.shape[1], rank))
    for _ in range(_ROUNDS):
        left = _solve(right, seen - mean, known)
        right = _solve(left, (seen - mean).T, known.T)
    guess = np.exp(np.where(known, seen, left @ right.T + mean))
    return np.where(able, guess, np.inf)


def _solve(factor: Floats, values: Floats, known: np.ndarray) -> Floats:
    """Return the other factor by ridge regression on what is known of each row."""
    out = np.zeros((len(values), factor.shape[1]))
    for row in range(len(values)):
        here = factor[known[row]]
        square = here.T @ here + _RIDGE * np.eye(factor.shape[1])
        out[row] = np.linalg.solve(square, here.T @ values[row, known[row]])
    return out
