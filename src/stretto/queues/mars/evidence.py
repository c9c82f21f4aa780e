"""Whether one candidate is surely cheaper than another, from what both cost in the same epochs.

Slowdowns have heavy tails, so that a sum may be one bad week. Compared are logarithms, and no epoch counts more than a
factor of seven. But what is saved is saved in crowded weeks: an epoch weighs as the square root of its cost, between
a sum, which they alone decide, and a vote, in which they hardly matter. Epochs that follow one another have a backlog
in common, so they are taken together in stretches: what these differ by among themselves is the error of their mean.
Of a few stretches, or of many of which few weigh anything, that error is badly known, so more is asked of them
(Student's t).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from stretto.core.csr import Floats

#: What an epoch counts at most, in logarithms of cost.
MOST = 2.0
#: Fewer stretches say nothing about their own error.
_FEWEST = 5
#: The error of a single stretch is not less than this, in logarithms: costs are guesses in part.
_LEAST_ERROR = 0.05


def surely_cheaper(epochs: Floats, now: int, certainty: float) -> NDArray[np.bool_]:
    """Return who was cheaper than the present one, as surely as by so many standard errors of many stretches; [K].

    Parameters
    ----------
    epochs
        What each candidate cost in each epoch, infinite for one that is not watched; [K, E].
    certainty
        With 0 it is enough to have been no dearer.
    """
    mean, error, num_equal = _compared(epochs, now)
    if certainty == 0.0:
        return np.asarray(mean >= 0.0)
    return np.asarray(mean > _asked(num_equal, certainty) * error)


def standing(epochs: Floats, now: int, who: int, certainty: float) -> tuple[float, float, float]:
    """Return by what share one was cheaper than the present one, the error of that, and how many errors are asked.

    Shares are of the present one's cost; the error is infinite where too few stretches have been seen.
    """
    mean, error, num_equal = _compared(epochs[[now, who]], 0)
    share = float(np.exp(-mean[1]))
    return 1.0 - share, share * float(error[1]), float(_asked(num_equal, certainty)[1])


def _asked(num_equal: Floats, certainty: float) -> Floats:
    """Return how many errors of few stretches are as sure as so many of many."""
    return np.asarray(stdtrit(np.maximum(num_equal - 1.0, 1.0), ndtr(certainty)))


def advantage(epochs: Floats, now: int) -> tuple[Floats, Floats]:
    """Return by how much each was cheaper than the present one, in logarithms, and the error of that; both [K]."""
    mean, error, _ = _compared(epochs, now)
    return mean, error


def _compared(epochs: Floats, now: int) -> tuple[Floats, Floats, Floats]:
    """Return the mean gain of each, its error, and how many stretches of one weight would say as much; all [K]."""
    gain = np.clip(np.log(epochs[now]) - np.log(epochs), -MOST, MOST)
    weight = np.sqrt(np.sqrt(np.where(np.isfinite(epochs), epochs, 1.0) * epochs[now]))
    length = round(epochs.shape[1] ** (1 / 3))
    weights = means_of(weight, length)
    stretches = means_of(gain * weight, length) / weights
    weights /= weights.mean(axis=1, keepdims=True)
    mean: Floats = (weights * stretches).mean(axis=1)
    count = weights.shape[1]
    if count < _FEWEST:
        return mean, np.full(len(epochs), np.inf), np.ones(len(epochs))
    spread = np.sqrt(np.sum((weights * (stretches - mean[:, None])) ** 2, axis=1) / (count - 1))
    error: Floats = np.maximum(spread, _LEAST_ERROR) / np.sqrt(count)
    return mean, error, count**2 / np.sum(weights**2, axis=1)


def means_of(values: Floats, length: int) -> Floats:
    """Return the means over stretches of so many, the last one whole; what is left at the beginning is left out.

    Where there are fewer, they are one stretch.
    """
    length = min(length, values.shape[1])
    count = values.shape[1] // length
    means: Floats = values[:, -count * length :].reshape(len(values), count, length).mean(axis=2)
    return means
