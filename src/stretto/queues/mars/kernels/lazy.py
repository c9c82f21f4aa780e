"""Passes over long queues without scoring everybody: the same starts, for a fraction of the time.

Most orders score a job by what does not change while it waits and by the logarithm of its wait. Such a score only
grows, and ever more slowly: since it was last computed, by no more than its slope then times the time since. Whoever
cannot have caught up with the highest score by that bound need not be scored anew.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.queues.mars.kernels.policy import (
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

#: Scores that differ by less, relative to their size, may be equal but for rounding.
_ROUNDING = 1e-9


@njit(cache=True, nogil=True)
def goes_by_beliefs(net):
    """Say whether forecasts of run times can make a difference."""
    found = net.bias.shape[0] > 0 or net.trust[0] > 0.0 or net.reserve[0] > 0.0 or net.foresight[0] > 0.0
    for feature in (LOG_BELIEVED, F4_BELIEVED, LOG_SHARP):
        found |= net.skip[feature] != 0.0 or net.gate[feature] != 0.0
    return found


@njit(cache=True, nogil=True)
def is_lazy(net):
    """Say whether scores grow with the logarithm of the wait alone, and who may pass does not depend on the moment."""
    found = net.bias.shape[0] == 0 and np.isinf(net.patience[0]) and net.skip[LOG_WAIT] >= 0.0
    for feature in (LOG_EXPANSION, FITS, WAIT_DAYS):
        found &= net.skip[feature] == 0.0
    for f in range(NUM_STATIC, NUM_STATIC + NUM_DYNAMIC + NUM_QUEUE):
        found &= net.gate[f] == 0.0
    return found


@njit(cache=True, nogil=True)
def rate(s, net, k, now):
    """Compute the score of one job, as ``fill_scores`` does, and how fast it grows at most from now on."""
    wait = now - s.submit[k]
    s.top[k] = s.base[k] + net.skip[LOG_WAIT] * (0.5 * np.log(1.0 + wait))
    s.slope[k] = net.skip[LOG_WAIT] * 0.5 / (1.0 + wait)
    s.rated[k] = now


@njit(cache=True, nogil=True)
def leader(s, net, now):
    """Return the place of the highest score, the lower job where equal; -1 where all have started."""
    most = -np.inf
    for k in range(s.size[0]):
        if s.top[k] > most:
            most = s.top[k]
    if most == -np.inf:
        return -1
    line = most - _ROUNDING * (1.0 + abs(most))
    best = -1
    for k in range(s.size[0]):
        if s.top[k] + s.slope[k] * (now - s.rated[k]) >= line:
            best = better(s, net, k, best, now)
    return best


@njit(cache=True, nogil=True)
def follower(s, net, head, free, now, shadow, extra):
    """Return the best job that fits, would not delay the head and may pass it; -1 where there is none."""
    best = -1
    for k in range(s.size[0]):
        if (
            s.need[k] <= free
            and k != head
            and s.gate[k] > 0.0
            and s.top[k] > -np.inf
            and (now + s.length[k] <= shadow or s.procs[k] <= extra)
        ):
            best = better(s, net, k, best, now)
    return best


@njit(cache=True, nogil=True)
def better(s, net, k, best, now):
    """Return which of two places has the higher score now, the lower job where equal; the second one is rated."""
    if s.rated[k] != now:
        rate(s, net, k, now)
    if best < 0 or s.top[k] > s.top[best] or (s.top[k] == s.top[best] and s.job[k] < s.job[best]):
        return k
    return best
