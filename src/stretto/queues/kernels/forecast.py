"""What a scheduler may guess of run times from the jobs that have ended.

Every job belongs to a few kinds, from the narrowest (this user, this estimate, this width) to the widest (all
jobs). Each kind keeps discounted means, for the expectation, and a ring of its last jobs, for draws. A narrow kind
with a short past leans on the next wider one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.core.kernels.rng import below, uniform
from stretto.queues.parameters import PORTFOLIO_PARAMETERS as P

#: Seconds that a short job counts as in the bounded slowdown.
BOUND = P.bound_s
#: A job that is believed to run for more seconds than this is a long one.
LONG = P.long_s
#: With one in so many processors free, no job is held back for the sake of others.
PLENTY = P.free_share
#: Ended jobs of a kind that draws are made from.
RING = P.ring_jobs
#: How much of its weight a past job keeps when another one of its kind ends.
DISCOUNT = P.discount
#: A wider kind counts as so many jobs of the narrower one.
LEAN = P.lean_jobs
#: Before anything has ended: run time over estimate, on the whole and for the weight of a job.
FIRST_RATIO = P.first_ratio
FIRST_SHARP_RATIO = P.first_harmonic_ratio
#: What the harmonic mean counts in a belief; the rest is the arithmetic mean.
SHARPNESS = P.harmonic_share
#: Tries to draw a run time that a running job has not outlived yet.
TRIES = P.draw_tries


class Past(NamedTuple):
    """What has ended, by kind; C kinds."""

    weight: np.ndarray  # [C] discounted number of jobs
    ratio: np.ndarray  # [C] discounted sum of run time over estimate
    sharp: np.ndarray  # [C] discounted sum of estimate over run time, both at least the bound
    ring: np.ndarray  # [C, RING] run time over estimate
    num_ended: np.ndarray  # [C]


@njit(cache=True, nogil=True)
def need_with(procs, reserve, num_procs):
    """Return how many processors must be free for a long job that is to leave some to others.

    To hold back a wide job can leave half a machine idle, so where there is plenty it need not leave any.
    """
    return min(procs + reserve, max(procs, -(-num_procs // PLENTY)))


@njit(cache=True, nogil=True)
def new_past(num_kinds):
    """Return a past in which nothing has happened."""
    return Past(
        np.zeros(num_kinds),
        np.zeros(num_kinds),
        np.zeros(num_kinds),
        np.zeros((num_kinds, RING)),
        np.zeros(num_kinds, np.int64),
    )


@njit(cache=True, nogil=True)
def remember(past, kinds, run, estimate):
    """Add an ended job to its kinds."""
    remember_means(past, kinds, run, estimate)
    for kind in kinds:
        past.ring[kind, past.num_ended[kind] % RING] = run / estimate
        past.num_ended[kind] += 1


@njit(cache=True, nogil=True)
def remember_means(past, kinds, run, estimate):
    """Add an ended job to the means of its kinds."""
    ratio = run / estimate
    sharp = max(BOUND, estimate) / max(BOUND, run)
    for kind in kinds:
        past.weight[kind] = DISCOUNT * past.weight[kind] + 1.0
        past.ratio[kind] = DISCOUNT * past.ratio[kind] + ratio
        past.sharp[kind] = DISCOUNT * past.sharp[kind] + sharp


@njit(cache=True, nogil=True)
def believe(past, kinds, estimate):
    """Return what a job is believed to run: between the mean and the harmonic mean of its like, a second at least.

    Work is counted by the mean. The slowdown of a job is counted by one over its run time, and many jobs crash
    at once: the harmonic mean lets likely crashes start early.
    """
    ratio = FIRST_RATIO
    sharp = max(BOUND, estimate) / max(BOUND, FIRST_SHARP_RATIO * estimate)
    for at in range(len(kinds) - 1, -1, -1):
        kind = kinds[at]
        ratio = (past.ratio[kind] + LEAN * ratio) / (past.weight[kind] + LEAN)
        sharp = (past.sharp[kind] + LEAN * sharp) / (past.weight[kind] + LEAN)
    return max(1.0, (estimate * ratio) ** (1.0 - SHARPNESS) * (max(BOUND, estimate) / sharp) ** SHARPNESS)


@njit(cache=True, nogil=True)
def draw_run(past, kinds, estimate, state):
    """Draw a run time as one of the last like jobs would have it; never more than the estimate."""
    for at in range(len(kinds)):
        known = min(past.num_ended[kinds[at]], RING)
        if known > 0 and (at == len(kinds) - 1 or uniform(state) * (known + LEAN) < known):
            return past.ring[kinds[at], below(state, known)] * estimate
    return estimate * (0.5 + 0.5 * uniform(state))


@njit(cache=True, nogil=True)
def draw_rest(past, kinds, estimate, elapsed, state):
    """Draw the whole run time of a job that has run so long."""
    for _ in range(TRIES):
        run = draw_run(past, kinds, estimate, state)
        if run > elapsed:
            return run
    return elapsed + (estimate - elapsed) * uniform(state)
