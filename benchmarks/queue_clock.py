"""The least time of several runs: on a shared machine, what others do only adds to it."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Runs, and the seconds after which no further one is begun.
MOST_RUNS = 15
ENOUGH_S = 3.0


def least_cpu_s(work: Callable[[], object]) -> float:
    """Return the least CPU time of some calls; a first one should have been made already."""
    least = float("inf")
    begin = time.process_time()
    for _ in range(MOST_RUNS):
        before = time.process_time()
        work()
        least = min(least, time.process_time() - before)
        if time.process_time() - begin > ENOUGH_S:
            break
    return least
