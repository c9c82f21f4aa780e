"""Orders of a waiting queue, as numbers: the job with the lowest key comes first.

Some keys never change while a job waits; the queue then stays sorted by insertion. The others
depend on how long it has waited and are computed anew at each pass.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit

FCFS = 0
SHORTEST = 1
LONGEST = 2
SMALLEST_AREA = 3
LARGEST_AREA = 4
FEWEST_PROCS = 5
MOST_PROCS = 6
F1 = 7
F2 = 8
F3 = 9
F4 = 10
DEADLINE = 11
#: From here on keys change with time.
FIRST_DYNAMIC = 20
EXPANSION = 20
WFP3 = 21
UNICEP = 22


@njit(cache=True, nogil=True)
def static_key(code, index, submit, estimate, procs, deadline):
    """Return the key of a job that does not depend on the time."""
    if code == SHORTEST:
        return estimate
    if code == LONGEST:
        return -estimate
    if code == SMALLEST_AREA:
        return estimate * procs
    if code == LARGEST_AREA:
        return -estimate * procs
    if code == FEWEST_PROCS:
        return float(procs)
    if code == MOST_PROCS:
        return -float(procs)
    if code == DEADLINE:
        return deadline
    if code >= F1 and code <= F4:
        # Carastan-Santos & de Camargo 2017; s counts from the start of the trace.
        s = np.log10(max(1.0, submit))
        if code == F1:
            return np.log10(max(1.0, estimate)) * procs + 870.0 * s
        if code == F2:
            return np.sqrt(estimate) * procs + 25600.0 * s
        if code == F3:
            return estimate * procs + 6.86e6 * s
        return estimate * np.sqrt(procs) + 5.3e5 * s
    return float(index)


@njit(cache=True, nogil=True)
def dynamic_key(code, now, submit, estimate, procs):
    """Return the key of a job at a moment; zero wait gives the highest key there is."""
    wait = now - submit
    estimate = max(1.0, estimate)
    if code == EXPANSION:
        return -(wait + estimate) / estimate
    if code == WFP3:
        ratio = wait / estimate
        return -ratio * ratio * ratio * procs
    # One processor has no logarithm to divide by: serial jobs come before all others that have waited.
    return -wait / (max(1e-12, np.log2(procs)) * estimate)
