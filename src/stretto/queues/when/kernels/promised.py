"""Play a future with promises, or with an order that changes with time, until the wanted jobs have started."""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.promises.kernels.loop import can_start, happen, next_event
from stretto.queues.promises.kernels.starts import fill_keys, propose, settle


@njit(cache=True, nogil=True)
def play_promised(q, num_procs, s, order, f, wanted):
    """Go from event to event until all wanted jobs have started, or nothing happens any more.

    Parameters
    ----------
    q, s, order, f
        As for ``promises.kernels.loop.advance``.
    wanted
        Jobs, as indices of ``q``.
    """
    fill_keys(q, s, order)
    first = 0
    while first < wanted.shape[0] and s.start[wanted[first]] >= 0.0:
        first += 1
    then = next_event(q, s)
    while first < wanted.shape[0] and then < np.inf:
        happen(q, s, order, f, then)
        if can_start(q, s):
            propose(q, num_procs, s, order)
            settle(q, s)
        while first < wanted.shape[0] and s.start[wanted[first]] >= 0.0:
            first += 1
        then = next_event(q, s)
