"""What a replay leaves behind, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ReplayOutcome(NamedTuple):
    """n jobs, K pools."""

    start: np.ndarray  # [n] of the attempt that ended the job
    end: np.ndarray  # [n]
    ready: np.ndarray  # [n] arrival: submitted, and parents ended
    pool: np.ndarray  # [n]
    killed: np.ndarray  # [n] bool
    interruptions: np.ndarray  # [n]
    node_s: np.ndarray  # [K] billed
    usd: np.ndarray  # [K]
    due: np.ndarray  # [n] promised latest start, inf = none
    margin: np.ndarray  # [n] in pools: least time between a start and its promise, inf = none


def new_outcome(num_jobs: int, num_pools: int) -> ReplayOutcome:
    """Return room for an outcome."""
    return ReplayOutcome(
        np.full(num_jobs, -1.0),
        np.full(num_jobs, -1.0),
        np.full(num_jobs, -1.0),
        np.zeros(num_jobs, np.int32),
        np.zeros(num_jobs, np.bool_),
        np.zeros(num_jobs, np.int32),
        np.zeros(num_pools),
        np.zeros(num_pools),
        np.full(num_jobs, np.inf),
        np.full(num_jobs, np.inf),
    )
