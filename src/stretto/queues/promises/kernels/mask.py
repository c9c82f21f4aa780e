"""Which waiting jobs may start now."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.promises.kernels.plan import find_plan, fits_now


@njit(cache=True, nogil=True)
def fill_allowed(q, s, max_tests, mask):
    """Say of each waiting job whether it fits now and every promise could be met with it running."""
    m = s.moment[0]
    num_tests = 0
    for i in range(m.num_waiting):
        job = s.waiting[i]
        mask[i] = False
        if q.procs[job] > m.free:
            continue
        mask[i] = fits_now(q, s, job)
        if not mask[i] and num_tests < max_tests:
            num_tests += 1
            mask[i] = find_plan(q, s, job, m.now)
