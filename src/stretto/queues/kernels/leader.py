"""What long jobs should have left to short ones so far: the past is played again with more, with less, and narrowly.

What suits one machine is too much on another, and too little on a third. What has been submitted until now is
replayed from an empty machine under the base and under every candidate of the same order that keeps another share free,
or lets only short jobs pass, with the run times of jobs that have ended and beliefs of the others; what counts is the
bounded slowdown until then. The base is replaced when another rule would have cost clearly less. (Other orders are not
tried: between those, the past of a few thousand jobs says little about the next ones, and much that is chance.)

Of the latest jobs the short ones have ended and the long ones have not, and a belief knows no tails: whoever counted
these would find every order good. So a review goes only as far as most jobs have ended.
"""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.queues.kernels.forecast import BOUND
from stretto.queues.kernels.lookahead import RESERVE, work_off
from stretto.queues.parameters import PORTFOLIO_PARAMETERS as P

#: Reviews come when the past has grown by this part of itself.
GROWTH = P.review_growth
#: The last arrivals that a review goes back to.
REACH = P.review_jobs
#: By what part of its own cost the base must be beaten.
MARGIN = P.review_margin


@njit(cache=True, nogil=True)
def next_review(arrived, least):
    """Return after how many arrivals the past is to be reviewed again, a least number after the present ones."""
    return arrived + max(least, int(GROWTH * min(arrived, REACH)))


#: A review goes as far as three in four jobs have ended, of so many in a row, or of a quarter of the past.
STRETCH = P.review_stretch


@njit(cache=True, nogil=True)
def last_settled(ended, first, arrived):
    """Return how far, from the last arrival back, most jobs have ended; ``first`` where they never have."""
    stretch = max(1, min(STRETCH, (arrived - first) // 4))
    num = 0
    for job in range(arrived - stretch, arrived):
        num += ended[job]
    last = arrived
    while 4 * num < 3 * stretch and last - stretch > first:
        last -= 1
        num += int(ended[last - stretch]) - int(ended[last])
    return last if 4 * num >= 3 * stretch else first


@njit(cache=True, nogil=True)
def settle_runs(s, first, arrived, now):
    """Set the run times of the past as far as they are known by now."""
    b = s.b
    for job in range(first, arrived):
        if s.ended[job]:
            b.run[job] = s.q.run[job]
        elif s.start[job] >= 0.0:
            b.run[job] = max(b.believed[job], now - s.start[job])
        else:
            b.run[job] = b.believed[job]


@njit(cache=True, nogil=True)
def past_cost(s, trial, code, num_procs, first, arrived, now):
    """Return the bounded slowdown, less one each, that an order would have let the past have until now."""
    b = s.b
    trial.running.size[0] = 0
    work_off(b, trial, code, num_procs, 0, b.submit[first], num_procs, first, arrived)
    cost = 0.0
    for job in range(first, arrived):
        began = min(b.expected[job] - b.estimate[job], now)
        cost += max(0.0, began - b.submit[job]) / max(BOUND, b.run[job])
    return cost


@njit(cache=True, nogil=True)
def leader(s, trial, codes, base, num_procs, arrived, now):
    """Return the candidate to continue with: the base, or its order with other rules for long jobs if far cheaper."""
    first = max(0, arrived - REACH)
    settle_runs(s, first, arrived, now)
    last = last_settled(s.ended, first, arrived)
    if last == first:
        return base
    arrived, now = last, s.b.submit[last - 1]
    best = base
    least = past_cost(s, trial, codes[base], num_procs, first, arrived, now) * (1.0 - MARGIN)
    for c in range(codes.shape[0]):
        if c != base and codes[c] % RESERVE == codes[base] % RESERVE:
            cost = past_cost(s, trial, codes[c], num_procs, first, arrived, now)
            if cost < least:
                least = cost
                best = c
    return best
