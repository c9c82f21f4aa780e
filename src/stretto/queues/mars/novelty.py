"""Has the workload been replaced by another one? Costs say so late, and not at all where the new one is cheaper.

The latest jobs are held against those before them: by who submits them, and by how long and wide they are. Both vary
from day to day on any machine; that hardly anybody is known *and* most jobs are of other sizes is rare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.core.trace import QueueArrays

#: The latest jobs, and those before them that they are compared with; between the two, either may come from either.
LATEST, BETWEEN, BEFORE = 500, 250, 2000
#: Most of the latest jobs that may be by users who are known, and the least part of them that has other sizes.
_KNOWN, _OTHER = 0.01, 0.6


def is_new_workload(jobs: QueueArrays, num_arrived: int) -> bool:
    """Say whether the latest jobs have next to nothing in common with those before them."""
    first = num_arrived - LATEST - BETWEEN - BEFORE
    if first < 0:
        return False
    old, new = slice(first, first + BEFORE), slice(num_arrived - LATEST, num_arrived)
    if np.mean(np.isin(jobs.user[new], jobs.user[old])) > _KNOWN:
        return False
    before, after = _sizes(jobs, old), _sizes(jobs, new)
    count = int(max(before.max(), after.max())) + 1
    shares = np.bincount(before, minlength=count) / BEFORE - np.bincount(after, minlength=count) / LATEST
    return bool(0.5 * np.abs(shares).sum() >= _OTHER)


def _sizes(jobs: QueueArrays, part: slice) -> NDArray[np.int64]:
    """Return a number for the length and width of each job, both by powers of two."""
    length = np.floor(np.log2(np.maximum(jobs.estimate[part], 1.0))).astype(np.int64)
    width = np.ceil(np.log2(jobs.procs[part])).astype(np.int64)
    return length * 64 + width
