"""Whether one candidate is surely cheaper than another, from what both cost in the same epochs.

Slowdowns have heavy tails, so that a sum may be one bad week. Compared are logarithms, and no epoch counts more than a
factor of seven. Epochs that follow one another have a backlog in common, so they are taken together in stretches: what
these differ by among themselves is the error of their mean. Of a few stretches that error is badly known, so more is
asked of them (Student's t).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from stretto.domain.csr import Floats

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
    gain = np.clip(np.log(epochs[now]) - np.log(epochs), -MOST, MOST)
    if certainty == 0.0:
        return np.asarray(gain.mean(axis=1) >= 0.0)
    stretches = means_of(gain, round(epochs.shape[1] ** (1 / 3)))
    count = stretches.shape[1]
    if count < _FEWEST:
        return np.zeros(len(epochs), np.bool_)
    error = np.maximum(stretches.std(axis=1, ddof=1), _LEAST_ERROR) / np.sqrt(count)
    return np.asarray(stretches.mean(axis=1) > stdtrit(count - 1, ndtr(certainty)) * error)


def means_of(values: Floats, length: int) -> Floats:
    """Return the means over stretches of so many, the last one whole; what is left at the beginning is left out.

    Where there are fewer, they are one stretch.
    """
    length = min(length, values.shape[1])
    count = values.shape[1] // length
    means: Floats = values[:, -count * length :].reshape(len(values), count, length).mean(axis=2)
    return means
