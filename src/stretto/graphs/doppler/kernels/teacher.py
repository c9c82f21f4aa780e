"""The randomised critical-path heuristic: Doppler's baseline and first teacher."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below
from stretto.core.kernels.shapes import Arrays, Floats, Ints, Words
from stretto.graphs.kernels.simulate.arrival import ready_everywhere


@njit(cache=True, nogil=True)
def append_by_start_at_random(p: Arrays, order: Ints, state: Words) -> tuple[Ints, Floats, Floats]:
    """Give each task, in order, a device on which it starts first; equal ones are drawn at random.

    Parameters
    ----------
    state
        State of the random generator, which advances.
    """
    n = order.shape[0]
    m = p.device_class.shape[0]
    assign = np.empty(n, dtype=np.int32)
    start = np.empty(n)
    finish = np.empty(n)
    free = np.zeros(m)
    row = np.empty(m)
    for i in range(n):
        v = order[i]
        ready_everywhere(p, assign, finish, v, row)
        best = np.inf
        device = -1
        ties = 0
        for d in range(m):
            if p.duration[v, p.device_class[d]] == np.inf:
                continue
            at = max(row[d], free[d])
            if at < best:
                best, device, ties = at, d, 1
            elif at == best:
                ties += 1
                # The t-th of equal devices takes over with chance 1/t: all end up equally likely.
                if below(state, ties) == 0:
                    device = d
        assign[v] = device
        start[v] = best
        finish[v] = best + p.duration[v, p.device_class[device]]
        free[device] = finish[v]
    return assign, start, finish
