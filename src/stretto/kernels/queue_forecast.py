"""What a scheduler may guess from the jobs that have ended: run times, and the jobs that come next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.kernels.compile import njit
from stretto.kernels.rng import below

#: Ended jobs that are remembered per user; the last row is for all users.
WINDOW = 32


class Past(NamedTuple):
    """Rings of ended jobs, U users and all."""

    ratio: np.ndarray  # [U+1, WINDOW] run time over estimate
    estimate: np.ndarray  # [U+1, WINDOW]
    num_ended: np.ndarray  # [U+1]


@njit(cache=True, nogil=True)
def new_past(num_users):
    """Return a past in which nothing has happened."""
    rows = num_users + 1
    return Past(np.zeros((rows, WINDOW)), np.zeros((rows, WINDOW)), np.zeros(rows, np.int64))


@njit(cache=True, nogil=True)
def remember(past, user, run, estimate):
    """Add an ended job to its user's ring and to everybody's."""
    everybody = past.num_ended.shape[0] - 1
    for step in range(2):
        row = user if step == 0 else everybody
        at = past.num_ended[row] % WINDOW
        past.ratio[row, at] = run / estimate if estimate > 0.0 else 1.0
        past.estimate[row, at] = estimate
        past.num_ended[row] += 1


@njit(cache=True, nogil=True)
def row_of(past, user):
    """Return the ring to ask about a user: the user's own, or everybody's where that is empty."""
    return user if past.num_ended[user] > 0 else past.num_ended.shape[0] - 1


@njit(cache=True, nogil=True)
def num_alike(past, row, estimate):
    """Return how many remembered jobs had this very estimate: people submit the same thing again."""
    found = 0
    for k in range(min(past.num_ended[row], WINDOW)):
        found += past.estimate[row, k] == estimate
    return found


@njit(cache=True, nogil=True)
def expected_run(past, user, estimate):
    """Return the mean run time of a job by its user's past; the estimate where there is none."""
    row = row_of(past, user)
    size = min(past.num_ended[row], WINDOW)
    if size == 0:
        return estimate
    alike = num_alike(past, row, estimate)
    total = 0.0
    for k in range(size):
        if alike == 0 or past.estimate[row, k] == estimate:
            total += past.ratio[row, k]
    return estimate * total / (alike if alike > 0 else size)


@njit(cache=True, nogil=True)
def draw_run(past, user, estimate, elapsed, state):
    """Draw a run time as one of the user's past jobs would have it, given that it has run so long.

    Where the past knows no job that would have lasted, half of what is left of the estimate is.
    """
    row = row_of(past, user)
    size = min(past.num_ended[row], WINDOW)
    alike = num_alike(past, row, estimate)
    fitting = 0
    for k in range(size):
        if (alike == 0 or past.estimate[row, k] == estimate) and past.ratio[row, k] * estimate > elapsed:
            fitting += 1
    if fitting == 0:
        return estimate if elapsed == 0.0 else (elapsed + estimate) / 2.0
    skip = below(state, fitting)
    for k in range(size):
        if (alike == 0 or past.estimate[row, k] == estimate) and past.ratio[row, k] * estimate > elapsed:
            if skip == 0:
                return past.ratio[row, k] * estimate
            skip -= 1
    return estimate
