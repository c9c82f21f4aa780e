"""What a replay under recorded conditions knows beside the jobs, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: What the loop returns.
DONE = 0
STUCK = 1


class ConditionArrays(NamedTuple):
    """S steps of capacity, n jobs, G groups of jobs with a limit."""

    time: np.ndarray  # [S] seconds, ascending, the first at or before zero
    usable: np.ndarray  # [S] int64 processors that jobs may take from then on
    full: np.ndarray  # [S] int64 processors for a head that is wider than what is usable
    group: np.ndarray  # [n] int32, -1 = no limit
    limit: np.ndarray  # [G] int64 processors that a group may hold at once
    delay: float  # seconds from a submission to when the job can be considered
