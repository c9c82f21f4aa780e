"""What a replay under recorded conditions knows beside the jobs, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: What the loop returns.
DONE = 0
STUCK = 1


class ConditionArrays(NamedTuple):
    """S steps of capacity."""

    time: np.ndarray  # [S] seconds, ascending, the first at or before zero
    usable: np.ndarray  # [S] int64 processors that jobs may take from then on
    full: np.ndarray  # [S] int64 processors for a head that is wider than what is usable


class PolicyCode(NamedTuple):
    """The order of the queue, and whether later jobs may pass the head; weights are of the order ``multifactor``."""

    order: int  # of ``queues.kernels.keys``, or MULTIFACTOR
    is_easy: bool
    age: float = 0.0
    size: float = 0.0
    fair_share: float = 0.0
    max_age: float = 1.0
    half_life: float = 1.0
