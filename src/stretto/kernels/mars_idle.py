"""Passes that need not be made: which changes nothing in what happens, and saves most of the time of long queues.

An order that lets only some jobs pass can have thousands of jobs that fit and wait all the same. That none of them
starts is often plain without scores: none may pass, and somebody who does not fit comes before all of them.
"""

from __future__ import annotations

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.mars_policy import (
    F4_BELIEVED,
    FITS,
    LOG_BELIEVED,
    LOG_EXPANSION,
    LOG_SHARP,
    LOG_WAIT,
    NUM_DYNAMIC,
    NUM_QUEUE,
    NUM_STATIC,
    WAIT_DAYS,
)

#: The place of ``State.num`` that is used here.
LEADER = 5
#: Scores that differ by less, relative to their size, may be equal but for rounding.
_ROUNDING = 1e-12


@njit(cache=True, nogil=True)
def goes_by_beliefs(net):
    """Say whether what is believed of run times can make a difference."""
    found = net.bias.shape[0] > 0 or net.trust[0] > 0.0 or net.spare[0] > 0.0 or net.foresight[0] > 0.0
    for feature in (LOG_BELIEVED, F4_BELIEVED, LOG_SHARP):
        found |= net.skip[feature] != 0.0 or net.gate[feature] != 0.0
    return found


@njit(cache=True, nogil=True)
def can_tell(net):
    """Say whether :func:`nobody_starts` can tell anything: who may pass is known beforehand, and ageing is simple."""
    is_plain = net.bias.shape[0] == 0 and np.isinf(net.patience[0]) and net.skip[LOG_WAIT] >= 0.0
    is_plain &= net.skip[LOG_EXPANSION] == 0.0 and net.skip[WAIT_DAYS] == 0.0
    for f in range(NUM_STATIC, NUM_STATIC + NUM_DYNAMIC + NUM_QUEUE):
        is_plain &= net.gate[f] == 0.0
    keeps_back = False
    for f in range(NUM_STATIC):
        keeps_back |= net.gate[f] != 0.0
    return is_plain and keeps_back


@njit(cache=True, nogil=True)
def aged(net, base, wait, fits):
    """Return the score of a job that has waited so long."""
    return base + net.skip[LOG_WAIT] * (0.5 * np.log(1.0 + wait)) + net.skip[FITS] * fits


@njit(cache=True, nogil=True)
def nobody_starts(s, net, now, free, num):
    """Say whether it is certain that a pass would start nobody; if it is not, the pass itself will tell.

    Parameters
    ----------
    num
        Counters, among them the place of whoever was found to come before all who fit: mostly it is the same again.
    """
    most = -np.inf
    first = now
    for k in range(s.size[0] - 1, -1, -1):  # who has come last is the likeliest to pass
        if s.need[k] <= free:
            if s.gate[k] > 0.0:
                return False
            most = max(most, s.base[k])
            first = min(first, s.submit[k])
    bound = aged(net, most, now - first, 1.0)
    bound += _ROUNDING * (1.0 + abs(bound))
    k = num[LEADER]
    if k < s.size[0] and s.need[k] > free and aged(net, s.base[k], now - s.submit[k], 0.0) > bound:
        return True
    for k in range(s.size[0]):
        if s.need[k] > free and aged(net, s.base[k], now - s.submit[k], 0.0) > bound:
            num[LEADER] = k
            return True
    return False
