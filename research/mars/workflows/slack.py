"""When each task of a workflow has to end, so that the whole ends in time: what is left over is slack.

A task off the critical path may wait for an owned node while its siblings run; only what holds up the workflow is worth
a rented one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from research.mars.workflows.grouping import workflows

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput


def path_lengths(trace: Trace) -> tuple[Floats, Floats]:
    """Return the longest path down to the end of each task, and the longest one after it, by estimates."""
    length = trace.estimate_s.astype(np.float64)
    if trace.parent is None or trace.child is None:
        return length, np.zeros(trace.num_jobs)
    above = _grown(length, trace.parent, trace.child)
    below = _grown(length, trace.child, trace.parent)
    return above, below - length


def sub_deadlines(trace: Trace, stretch: float) -> Floats:
    """Return when each task should end.

    Parameters
    ----------
    stretch
        The whole workflow is to take so many times its longest path, and every task its part of that; infinity leaves
        only the deadlines of the trace, less what comes after the task.
    """
    if not stretch >= 1.0:
        raise InvalidInput(f"{stretch} must be at least 1", field="stretch")
    above, below = path_lengths(trace)
    given = np.full(trace.num_jobs, math.inf) if trace.deadline_s is None else trace.deadline_s
    if math.isinf(stretch):
        due: Floats = given - below
        return due
    number = workflows(trace)
    begin = np.full(int(number.max()) + 1, math.inf)
    np.minimum.at(begin, number, trace.submit_s)
    whole = np.zeros(len(begin))
    np.maximum.at(whole, number, above)
    due = np.minimum(begin[number] + stretch * (whole[number] - below), given - below)
    return due


def _grown(length: Floats, begin: NDArray[np.int32], end: NDArray[np.int32]) -> Floats:
    """Return the longest path that ends with each task, along edges; it grows edge by edge until none gets longer."""
    path = length
    while True:
        longer = path.copy()
        np.maximum.at(longer, end, path[begin] + length[end])
        if np.array_equal(longer, path):
            return path
        path = longer
