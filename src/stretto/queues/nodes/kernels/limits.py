"""Limits on what may run at once: of arrays, and of users, accounts and all jobs of a QOS."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.nodes.kernels.arrays import INNER


@njit(**INNER)
def is_limited(q, job):
    """Say whether any limit counts a job."""
    return q.limit_ptr[job] < q.limit_ptr[job + 1]


@njit(**INNER)
def is_throttled(q, s, job):
    """Say whether a job would exceed one of its limits now."""
    for i in range(q.limit_ptr[job], q.limit_ptr[job + 1]):
        limit = q.limit_of[i]
        if s.limit_used[limit] + q.limit_amount[i] > q.limit_most[limit]:
            return True
    return False


@njit(**INNER)
def count_limits(q, s, job, sign):
    """Count a job that starts (+1) or has ended (-1)."""
    for i in range(q.limit_ptr[job], q.limit_ptr[job + 1]):
        s.limit_used[q.limit_of[i]] += sign * q.limit_amount[i]
