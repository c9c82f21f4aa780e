"""The shortest wait that a system gives: how long jobs wait that find an idle machine."""

from __future__ import annotations

import numpy as np

from stretto.core.trace import Trace
from stretto.queues.recorded.occupancy import known_waits, recorded_occupancy

_FLOOR_PERCENT = 10
_IDLE_SHARE = 0.5
_FEWEST_JOBS = 50


def floor_s(trace: Trace, num_procs: int) -> float:
    """Return what jobs waited that came to a machine at least half idle, with no other job waiting: a low percentile.

    Zero where there are few such jobs.
    """
    known = known_waits(trace)
    if trace.wait_s is None:
        return 0.0
    past = recorded_occupancy(trace)
    before = np.nextafter(trace.submit_s[known], -np.inf)
    is_idle = (past.procs.at(before) <= _IDLE_SHARE * num_procs) & (past.waiting.at(before) == 0)
    waits = trace.wait_s[known][is_idle]
    return float(np.percentile(waits, _FLOOR_PERCENT)) if len(waits) >= _FEWEST_JOBS else 0.0
