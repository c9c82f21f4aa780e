"""What counterfactual replays prove: is a candidate surely cheaper, by how much, and is this still the same workload?

Slowdowns have heavy tails, so that a sum may be one bad week. Compared are logarithms, and no epoch counts more than a
factor of seven. But what is saved is saved in crowded weeks: an epoch weighs as the square root of its cost, between
a sum, which they alone decide, and a vote, in which they hardly matter. Neighboring epochs share a backlog, so they are
grouped into stretches: what these differ by among themselves is the error of their mean. Of a few stretches, or of many
of which few weigh anything, that error is badly known, so more is required of them (Student's t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.mars.parameters import MARS_PARAMETERS as P


def surely_cheaper(epochs: Floats, now: int, certainty: float) -> NDArray[np.bool_]:
    """Return which candidates were cheaper than the present one, as surely as by so many standard errors; [K].

    Parameters
    ----------
    epochs
        What each candidate cost in each epoch, infinite for one that is not replayed any more; [K, E].
    certainty
        With 0 it is enough to have cost no more.
    """
    mean, error, num_equal = _compared(epochs, now)
    if certainty == 0.0:
        return np.asarray(mean >= 0.0)
    return np.asarray(mean > _required(num_equal, certainty) * error)


def standing(epochs: Floats, now: int, candidate: int, certainty: float) -> tuple[float, float, float]:
    """Return by what share a candidate was cheaper than the present one, the error of that, and the errors required.

    Shares are of the present one's cost; the error is infinite where too few stretches have been seen.
    """
    mean, error, num_equal = _compared(epochs[[now, candidate]], 0)
    share = float(np.exp(-mean[1]))
    return 1.0 - share, share * float(error[1]), float(_required(num_equal, certainty)[1])


def sureness(epochs: Floats, now: int, candidate: int) -> float:
    """Return how likely it is that a candidate is cheaper than the present one; NaN where too few epochs tell."""
    mean, error, num_equal = _compared(epochs[[now, candidate]], 0)
    if not math.isfinite(error[1]):
        return math.nan
    return float(stdtr(max(float(num_equal[1]) - 1.0, 1.0), float(mean[1] / error[1])))


def _required(num_equal: Floats, certainty: float) -> Floats:
    """Return how many errors of few stretches are as sure as so many of many."""
    return np.asarray(stdtrit(np.maximum(num_equal - 1.0, 1.0), ndtr(certainty)))


def advantage(epochs: Floats, now: int) -> tuple[Floats, Floats]:
    """Return by how much each was cheaper than the present one, in logarithms, and the error of that; both [K]."""
    mean, error, _ = _compared(epochs, now)
    return mean, error


def _compared(epochs: Floats, now: int) -> tuple[Floats, Floats, Floats]:
    """Return the mean gain of each, its error, and how many stretches of one weight would say as much; all [K]."""
    gain = np.clip(np.log(epochs[now]) - np.log(epochs), -P.most_log_ratio, P.most_log_ratio)
    weight = np.sqrt(np.sqrt(np.where(np.isfinite(epochs), epochs, 1.0) * epochs[now]))
    length = round(epochs.shape[1] ** (1 / 3))
    weights = means_of(weight, length)
    stretches = means_of(gain * weight, length) / weights
    weights /= weights.mean(axis=1, keepdims=True)
    mean: Floats = (weights * stretches).mean(axis=1)
    count = weights.shape[1]
    if count < P.least_stretches:
        return mean, np.full(len(epochs), np.inf), np.ones(len(epochs))
    spread = np.sqrt(np.sum((weights * (stretches - mean[:, None])) ** 2, axis=1) / (count - 1))
    error: Floats = np.maximum(spread, P.least_error) / np.sqrt(count)
    return mean, error, count**2 / np.sum(weights**2, axis=1)


def means_of(values: Floats, length: int) -> Floats:
    """Return the means over stretches of so many, the last one whole; what is left at the beginning is left out.

    Where there are fewer, they are one stretch.
    """
    length = min(length, values.shape[1])
    count = values.shape[1] // length
    means: Floats = values[:, -count * length :].reshape(len(values), count, length).mean(axis=2)
    return means


@dataclass(frozen=True)
class Rival:
    """The candidate that has cost least of those that are not followed.

    Attributes
    ----------
    against
        The candidate that it is compared with: the followed one; for a variant of the default, the default.
    saves
        The share of that one's cost, after every penalty (``network_gain``, and how optimistic replays have been).
    needed
        The least share at which it would be followed.
    gain, error
        By what share it was cheaper from epoch to epoch, and the standard error of that; infinite where epochs are
        too few to tell.
    needed_errors
        How many standard errors the gain must be.
    obstacle
        Why it may not be followed whatever it saves; empty where it may.
    """

    name: str
    against: str
    saves: float
    needed: float
    gain: float
    error: float
    needed_errors: float
    obstacle: str = ""

    @property
    def saves_enough(self) -> bool:
        return self.saves > self.needed

    @property
    def is_sure(self) -> bool:
        return self.gain > self.needed_errors * self.error if math.isfinite(self.error) else False

    def words(self) -> str:
        """Say what it would save, how surely, and which of the thresholds it missed."""
        if self.obstacle:
            return f"{self.name} has cost less, but {self.obstacle}"
        saving = f"{self.name} would save {self.saves:.0%} of what {self.against} costs"
        saving += f" ({self.needed:.0%} required)" if self.saves_enough else f", below the required {self.needed:.0%}"
        if not math.isfinite(self.error):
            return f"{saving}; too few epochs have been compared to be sure"
        errors = f"{self.needed_errors:.1f} standard errors"
        sure = f"from epoch to epoch it was {self.gain:.0%} ± {self.error:.0%} cheaper"
        return f"{saving}; {sure}" + (f" ({errors} required)" if self.is_sure else f", below the required {errors}")


def is_new_workload(jobs: QueueArrays, num_arrived: int) -> bool:
    """Say whether the latest jobs have next to nothing in common with those before them.

    Costs show that late, and not at all where the new workload is cheaper. Users and sizes vary from day to day on any
    machine; that hardly any user is known *and* most jobs have other sizes is rare.
    """
    first = num_arrived - P.latest_jobs - P.between_jobs - P.before_jobs
    if first < 0:
        return False
    old, new = slice(first, first + P.before_jobs), slice(num_arrived - P.latest_jobs, num_arrived)
    if np.mean(np.isin(jobs.user[new], jobs.user[old])) > P.known_share:
        return False
    before, after = _sizes(jobs, old), _sizes(jobs, new)
    count = int(max(before.max(), after.max())) + 1
    shares = np.bincount(before, minlength=count) / P.before_jobs - np.bincount(after, minlength=count) / P.latest_jobs
    return bool(0.5 * np.abs(shares).sum() >= P.other_share)


def _sizes(jobs: QueueArrays, part: slice) -> NDArray[np.int64]:
    """Return a number for the length and width of each job, both by powers of two."""
    length = np.floor(np.log2(np.maximum(jobs.estimate[part], 1.0))).astype(np.int64)
    width = np.ceil(np.log2(jobs.procs[part])).astype(np.int64)
    return length * 64 + width
