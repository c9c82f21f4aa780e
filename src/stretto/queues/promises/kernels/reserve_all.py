"""Reserving room for thousands of jobs one after the other, without looking at the whole profile for each."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.profile import ProcsProfile, reserve_from

#: Classes of jobs that share what is known: by processors, and by span.
_PROCS_CLASSES, _SPAN_CLASSES = 16, 48


def reserve_all(profile: ProcsProfile, procs: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Take processors for jobs in this order, each as early as possible; return when they start."""
    start = np.empty(len(procs))
    if len(procs):
        _reserve_all(profile, procs, span, _edges(procs, _PROCS_CLASSES), _edges(span, _SPAN_CLASSES), start)
    return start


def _edges(values: np.ndarray, most: int) -> np.ndarray:
    """Return lower edges of classes: the values themselves where they are few, else quantiles of them."""
    found = np.unique(values)
    if len(found) <= most:
        return found
    return np.unique(np.quantile(values, np.arange(most) / most, method="lower"))


@njit(cache=True, nogil=True)
def _reserve_all(profile, procs, span, procs_edge, span_edge, start):
    """Begin each search where jobs that need no more found room last.

    Proof. Reservations only take, so the earliest start for some processors and span never comes down, and it is
    no later for fewer processors or a shorter span. ``known[a, b]`` is the latest start of a job that needs no more
    than the lower edges of its classes a and b: no job of these classes can start before.
    """
    known = np.full((len(procs_edge), len(span_edge)), -np.inf)
    for i in range(len(procs)):
        a = np.searchsorted(procs_edge, procs[i], side="right") - 1
        b = np.searchsorted(span_edge, span[i], side="right") - 1
        first = np.searchsorted(profile.begin[: profile.size[0]], known[a, b], side="right") - 1
        start[i] = reserve_from(profile, procs[i], span[i], max(first, 0))
        b = np.searchsorted(span_edge, span[i])
        for row in range(np.searchsorted(procs_edge, procs[i]), len(procs_edge)):
            column = b
            while column < len(span_edge) and known[row, column] < start[i]:
                known[row, column] = start[i]
                column += 1
            if column == b:
                break
