"""Learn from predicted and real starts: which prediction to believe, and how wide an interval must be.

Everything is in logarithms of the wait. Three predictions compete: the replay by estimates, the median of the futures,
and a ridge regression that corrects the median by what the futures and the queue look like; the one with the least
recent error is believed. Intervals are conformal: an error is measured in what the futures themselves are spread to
that side, and an interval reaches as far as the given share of recent errors did. A queue without outcomes begins with
those of other queues. An outcome is used once it is known, never before.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.when.parameters import WHEN_PARAMETERS, WhenParameters

#: Levels of the futures that the regression looks at; the third is the median.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
#: The predictions that compete.
REPLAY, MEDIAN, REGRESSION = 0, 1, 2
_HOUR = math.log(3600.0)
#: What rounding may do to a logarithm.
_SAME = 1e-9


@dataclass(frozen=True)
class WhenParts:
    """What a learner uses; each can be left out, to see what it contributes."""

    futures: bool = True
    regression: bool = True
    spread: bool = True
    prior: bool = True


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known when a start is predicted.

    Attributes
    ----------
    by_estimates_s
        The wait from the moment on, if all run for their estimates and nobody comes.
    futures_s
        The waits of the simulated futures.
    procs_share
        Of the machine, that the job takes.
    waiting_share
        Processors that all waiting jobs take, over those of the machine.
    """

    moment_s: float
    by_estimates_s: float
    futures_s: Floats
    procs_share: float
    estimate_s: float
    waiting_share: float


@dataclass(frozen=True, eq=False)
class StartInterval:
    """A predicted wait, in seconds from the moment of the outlook on.

    Attributes
    ----------
    believed
        Which of the competing predictions ``likely_s`` is.
    """

    low_s: float
    likely_s: float
    high_s: float
    believed: int
    outlook: Outlook
    candidates: Floats  # [3] logarithms
    below: float  # what errors to either side are measured in
    above: float
    weight: float
    inputs: Floats


class _FadingRidge:
    """A regression whose past fades."""

    def __init__(self, size: int, p: WhenParameters) -> None:
        self._prior, self._forget = p.ridge * np.eye(size), p.forget
        self._squares, self._products = self._prior.copy(), np.zeros(size)
        self.weights: Floats = np.zeros(size)

    def learn(self, inputs: Floats, value: float, weight: float) -> None:
        keep = self._forget
        self._squares = keep * self._squares + (1 - keep) * self._prior + weight * np.outer(inputs, inputs)
        self._products = keep * self._products + weight * value * inputs
        self.weights = np.asarray(np.linalg.solve(self._squares, self._products), np.float64)


class StartLearner:
    """Predicts waits and learns from what became of them.

    Parameters
    ----------
    coverage
        The share of starts that shall lie in the intervals.
    """

    def __init__(
        self, coverage: float = 0.9, parts: WhenParts | None = None, parameters: WhenParameters = WHEN_PARAMETERS
    ) -> None:
        self.coverage, self.parts, self.p = coverage, parts or WhenParts(), parameters
        self._correction = _FadingRidge(10, parameters)
        self.scores: deque[tuple[float, float]] = deque(maxlen=parameters.recent_scores)  # with weights
        # The first is believed where nothing is known: the median, or without futures the replay.
        self._loss = np.array([_SAME, 0.0, _SAME]) if self.parts.futures else np.array([0.0, np.inf, np.inf])
        if not self.parts.regression:
            self._loss[REGRESSION] = np.inf
        self._last_s, self._in_burst = -math.inf, 0
        self._reach = self._new_reach()

    @property
    def num_outcomes(self) -> int:
        return len(self.scores)

    def predict(self, outlook: Outlook) -> StartInterval:
        """Return an interval; tell :meth:`learn` later what became of it."""
        p = self.p
        quantile = np.log(p.offset_s + np.quantile(outlook.futures_s, LEVELS))
        median, replayed = float(quantile[2]), math.log(p.offset_s + outlook.by_estimates_s)
        inputs = self._inputs(outlook, quantile, replayed)
        correction = float(np.clip(inputs @ self._correction.weights, -p.largest_correction, p.largest_correction))
        corrected = max(math.log(p.offset_s), median + correction)
        candidates = np.array([replayed, median, corrected])
        believed = int(np.argmin(self._loss))
        middle = float(candidates[believed])
        below, above = self._units(quantile)
        low, high = self._reach
        return StartInterval(
            low_s=max(0.0, math.exp(middle + below * low) - p.offset_s),
            likely_s=max(0.0, math.exp(middle) - p.offset_s),
            high_s=max(0.0, math.exp(middle + above * high) - p.offset_s),
            believed=believed,
            outlook=outlook,
            candidates=candidates,
            below=below,
            above=above,
            weight=self._weight(outlook.moment_s),
            inputs=inputs,
        )

    def learn(self, said: StartInterval, wait_s: float) -> None:
        """Learn how long a job really waited from the moment of its prediction on."""
        p, weight = self.p, said.weight
        actual = math.log(p.offset_s + max(0.0, wait_s))
        error = actual - float(said.candidates[said.believed])
        far = abs(actual - float(said.candidates[REGRESSION]))
        if self.parts.regression:
            pull = weight * min(1.0, p.largest_error / max(far, _SAME))
            self._correction.learn(said.inputs, actual - float(said.candidates[MEDIAN]), pull)
        self._loss = p.choice_memory**weight * self._loss
        self._loss += weight * np.minimum(p.choice_cap, np.abs(actual - said.candidates))
        self.scores.append((error / (said.below if error < 0 else said.above), weight))
        self._reach = self._new_reach()

    def _inputs(self, outlook: Outlook, quantile: Floats, replayed: float) -> Floats:
        """Return what the regression looks at; all are of the order of one."""
        median = quantile[2]
        others = np.delete(quantile, 2) - median
        rest = (
            median - _HOUR,
            math.log(outlook.procs_share) / 4.0,
            math.log(outlook.estimate_s / 3600.0) / 2.0,
            math.log1p(outlook.waiting_share),
        )
        return np.array([1.0, replayed - median, *others, *rest])

    def _units(self, quantile: Floats) -> tuple[float, float]:
        """Return what errors are measured in: how far the futures are spread below and above their median."""
        if not self.parts.spread:
            return 1.0, 1.0
        least, median = self.p.least_spread, quantile[2]
        return least + float(median - quantile[0]), least + float(quantile[-1] - median)

    def _new_reach(self) -> tuple[float, float]:
        """Return how far an interval reaches below and above what is likely: quantiles of recent errors."""
        prior = [(score, 1.0) for score in self.p.prior] if self.parts.prior else []
        known = [*prior, *self.scores]
        if not known:
            return -1.0, 1.0
        score, weight = np.array(known).T
        order = np.argsort(score, kind="stable")
        score, weight = score[order], weight[order]
        share = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
        tail = (1.0 - self.coverage) / 2.0
        low, high = np.interp([tail, 1.0 - tail], share, score)
        return min(0.0, float(low)), max(0.0, float(high))

    def _weight(self, moment_s: float) -> float:
        """Return what the outcome of a prediction at a moment will count."""
        self._in_burst = self._in_burst + 1 if moment_s - self._last_s <= self.p.burst_s else 1
        self._last_s = moment_s
        return float(self._in_burst**-self.p.burst_power)
