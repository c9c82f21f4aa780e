"""How likely a candidate is to be cheaper than the default over the next epochs, from what can be seen of the past.

A logistic model of a handful of numbers: what the replays of both have cost so far, and what the queue is like. It is
fitted on some logs and calibrated (Platt) on others; on those its threshold is chosen, too, below which a trained
network is not followed, whatever its shadow says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from research.mars.observation import MOST

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput

#: What is seen of a candidate beside the default, then of the queue.
INPUTS = (
    "gain lately",  # mean logarithm of the default's cost over the candidate's
    "won",  # share of all epochs
    "load",
    "exactness of estimates",
    "spread of lengths",
    "spread of widths",
    "waiting jobs",
)
#: Epochs that are lately, and jobs by which a queue is described.
_LATELY, _LATEST_JOBS = 8, 2000
#: An epoch is won by this share of cost.
_WON = 0.99


@dataclass(frozen=True, eq=False)
class Confidence:
    """A calibrated model.

    Attributes
    ----------
    mean, scale, weight
        Of each input; [F].
    bias, slope, shift
        The score is the weighted sum and the bias; the probability that of ``slope * score + shift``.
    threshold
        Who is less likely to be cheaper is not followed; above one, nobody is.
    """

    mean: Floats
    scale: Floats
    weight: Floats
    bias: float = 0.0
    slope: float = 1.0
    shift: float = 0.0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        for name in ("mean", "scale", "weight"):
            array = getattr(self, name)
            if array.shape != (len(INPUTS),):
                raise InvalidInput(f"{name} has shape {array.shape}, expected {(len(INPUTS),)}", field=name)
        for name in ("mean", "scale", "weight", "bias", "slope", "shift", "threshold"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise InvalidInput(f"{name} holds a value that is not finite", field=name)
        if np.any(self.scale <= 0.0):
            raise InvalidInput("a scale must be positive", field="scale")

    def score(self, x: Floats) -> Floats:
        """Return the score of some inputs, before calibration; [..., F] -> [...]."""
        found: Floats = (x - self.mean) / self.scale @ self.weight + self.bias
        return found

    def probability(self, x: Floats) -> Floats:
        """Return how likely it is that the candidate will be cheaper; [..., F] -> [...]."""
        found: Floats = sigmoid(self.slope * self.score(x) + self.shift)
        return found

    def is_sure(self, x: Floats) -> NDArray[np.bool_]:
        """Say who is likely enough to be cheaper; [..., F] -> [...]."""
        return np.asarray(self.probability(x) >= self.threshold)


def sigmoid(z: Floats) -> Floats:
    """Return the logistic function."""
    found: Floats = 0.5 * (1.0 + np.tanh(0.5 * z))
    return found


def observe(epochs: Floats, wait: Floats, jobs: QueueArrays, num_played: int, num_procs: int) -> Floats:
    """Return what is seen of each candidate; [K, F].

    Parameters
    ----------
    epochs
        What each has cost in each epoch so far, the default first; all finite; [K, E].
    wait
        How long each job has waited under the default, the latest job that was played last; [jobs].
    jobs
        With run times as far as they are known, and guesses.
    """
    x = np.empty((len(epochs), len(INPUTS)))
    gain = np.clip(np.log(epochs[0]) - np.log(epochs), -MOST, MOST)
    x[:, 0] = gain[:, -_LATELY:].mean(axis=1)
    x[:, 1] = (epochs < _WON * epochs[0]).mean(axis=1)
    x[:, 2:] = _queue(wait[-_LATEST_JOBS:], jobs, num_played, num_procs)
    return x


def _queue(wait: Floats, jobs: QueueArrays, num_played: int, num_procs: int) -> Floats:
    """Return what the latest jobs say of a queue under the default order."""
    part = slice(num_played - len(wait), num_played)
    run, procs = np.maximum(jobs.run[part], 1.0), jobs.procs[part]
    span = max(float(jobs.submit[num_played - 1] - jobs.submit[part.start]), 1.0)
    return np.array(
        [
            np.clip(np.log(float(run @ procs) / (span * num_procs)), -MOST, MOST),
            np.mean(np.log(np.maximum(jobs.estimate[part], 1.0) / run)),
            np.std(np.log(run)),
            np.std(np.log(procs)),
            np.log1p(float(wait.sum()) / span),
        ]
    )
