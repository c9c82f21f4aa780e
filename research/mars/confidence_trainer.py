"""Fit, calibrate and judge the confidence of the ensemble.

An example is what is seen at an epoch of a queue that goes by the default order, with replays of the members beside it
as in any replay of MARS, and whether a member is then cheaper over the next jobs: each on its own machine, with the run
times that turn out to be true. Logs count alike, whatever their length. Examples of one log hang together, so a model
is judged on other logs than those that it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from research.mars.confidence import INPUTS, Confidence, observe, sigmoid
from research.mars.epochs import each_epoch, starts_of
from research.mars.observation import MOST, default_waits

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import means_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.parameters import Selection
from stretto.queues.metrics import bounded
from stretto.queues.portfolio import kinds_of

#: Jobs over which it turns out who is cheaper, and the share of cost by which.
AHEAD_JOBS, _LEAST_GAIN = 2000, 0.01
#: What large weights cost: logs are few, so that little can be learned.
_RIDGE = 0.02
#: Thresholds that are tried, and the share of followed epochs that must turn out to be cheaper.
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_HITS = 0.8
#: Nobody is as sure.
NEVER = 2.0


@dataclass(frozen=True, eq=False)
class Examples:
    """What was seen of members, and what came of it."""

    x: Floats  # [N, F]
    log_ratio: Floats  # [N] of the cost ahead, member over default
    member: NDArray[np.int64]  # [N]
    log: NDArray[np.int64]  # [N]

    @property
    def is_cheaper(self) -> NDArray[np.bool_]:
        return np.asarray(self.log_ratio < np.log(1.0 - _LEAST_GAIN))

    @property
    def weight(self) -> Floats:
        """Return what each counts: all logs alike, one in the sum."""
        counts = np.bincount(self.log)
        weight: Floats = 1.0 / (counts[self.log] * np.count_nonzero(counts))
        return weight


def gather(trace: Trace, num_procs: int, nets: Sequence[MarsNet], *, log: int = 0) -> Examples:
    """Return the examples of one log, whose jobs must all fit; the first network is the default."""
    jobs = trace.arrays()
    truth = np.stack([starts_of(jobs, num_procs, net) for net in nets])
    total = np.cumsum(bounded(truth - jobs.submit, jobs.run), axis=1)
    replays = CounterfactualReplays(jobs, kinds_of(jobs), num_procs, nets, shipped())
    rows, ratios = [], []
    for seen in each_epoch(jobs, replays, truth[0]):
        if seen.num_arrived >= trace.num_jobs - AHEAD_JOBS:
            break
        epochs = means_of(seen.costs, Selection().epoch_jobs)
        wait = default_waits(replays, 0, seen.num_played)
        rows.append(observe(epochs, wait, replays.jobs, seen.num_played, num_procs)[1:])
        ahead = np.log(total[:, seen.num_arrived + AHEAD_JOBS - 1] - total[:, seen.num_arrived - 1])
        ratios.append(ahead[1:] - ahead[0])
    count, num_members = len(rows), len(nets) - 1
    return Examples(
        np.array(rows).reshape(count * num_members, len(INPUTS)),
        np.array(ratios).reshape(count * num_members),
        np.tile(np.arange(num_members), count),
        np.full(count * num_members, log),
    )


def join(parts: Sequence[Examples]) -> Examples:
    """Return all examples of some logs."""
    if not parts:
        raise InvalidInput("no examples to learn from", field="examples")
    names = ("x", "log_ratio", "member", "log")
    return Examples(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))


def fit(examples: Examples) -> Confidence:
    """Return the logistic regression of some examples, not calibrated yet."""
    mean, scale = examples.x.mean(axis=0), np.maximum(examples.x.std(axis=0), 1e-6)
    x = np.c_[(examples.x - mean) / scale, np.ones(len(examples.x))]
    weight = logistic(x, examples.is_cheaper.astype(np.float64), examples.weight, _RIDGE)
    return Confidence(mean, scale, weight[:-1], float(weight[-1]))


def logistic(x: Floats, hit: Floats, weight: Floats, ridge: float, steps: int = 50) -> Floats:
    """Return the weights of a logistic regression, by Newton's method; the last one, the constant, costs nothing.

    Parameters
    ----------
    hit
        What share of each example is true, between 0 and 1.
    """
    found = np.zeros(x.shape[1])
    costs = np.full(x.shape[1], ridge)
    costs[-1] = 1e-9
    for _ in range(steps):
        p = sigmoid(x @ found)
        gradient = x.T @ (weight * (p - hit)) + costs * found
        curvature = (x * (weight * np.maximum(p * (1.0 - p), 1e-6))[:, None]).T @ x + np.diag(costs)
        step = np.linalg.solve(curvature, gradient)
        found = found - step / max(1.0, float(np.abs(step).max()))  # no further than one at a time
        if np.abs(step).max() < 1e-8:
            break
    return found


def calibrate(model: Confidence, examples: Examples) -> Confidence:
    """Return the model with probabilities as they are on other logs (Platt 1999), and its threshold chosen there."""
    hit, weight = examples.is_cheaper.astype(np.float64), examples.weight
    # Platt's targets: as if one example of each kind had been seen more.
    yes, no = hit.sum(), len(hit) - hit.sum()
    target = np.where(hit > 0.5, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    slope, shift = logistic(np.c_[model.score(examples.x), np.ones(len(hit))], target, weight, 0.0).tolist()
    found = replace(model, slope=slope, shift=shift)
    return replace(found, threshold=threshold_of(found.probability(examples.x), examples))


def threshold_of(probability: Floats, examples: Examples) -> float:
    """Return the least threshold from which on most that are followed are cheaper, and cheaper on the whole."""
    gain = -np.clip(examples.log_ratio, -MOST, MOST)
    for threshold in THRESHOLDS:
        weight = np.where(probability >= threshold, examples.weight, 0.0)
        if weight.sum() > 0.0 and weight @ examples.is_cheaper >= _HITS * weight.sum() and weight @ gain > 0.0:
            return threshold
    return NEVER


@dataclass(frozen=True)
class Bin:
    """Examples of which about the same was said."""

    low: float
    high: float
    share: float  # of all examples
    said: float
    came_true: float


@dataclass(frozen=True)
class Report:
    """How much a model can be believed.

    Attributes
    ----------
    came_true
        Share of examples in which a member was cheaper.
    brier, brier_of_mean
        Mean squared error of the probabilities, and that of always saying the share that came true.
    calibration_error
        Mean distance between what was said and what came true, over bins.
    followed, hits, gain
        Share of examples above the threshold; of those, the share that came true, and the mean logarithm of cost saved;
        not a number where there are none.
    """

    came_true: float
    brier: float
    brier_of_mean: float
    calibration_error: float
    bins: tuple[Bin, ...]
    followed: float
    hits: float
    gain: float


def judge(model: Confidence, examples: Examples, *, num_bins: int = 10) -> Report:
    """Compare what a model says with what came of it; logs count alike."""
    said, hit, weight = model.probability(examples.x), examples.is_cheaper.astype(np.float64), examples.weight
    base = float(weight @ hit)
    place = np.minimum((said * num_bins).astype(np.int64), num_bins - 1)
    bins = []
    for k in range(num_bins):
        part = np.where(place == k, weight, 0.0)
        share = float(part.sum())
        if share > 0.0:
            true = float(part @ hit) / share
            bins.append(Bin(k / num_bins, (k + 1) / num_bins, share, float(part @ said) / share, true))
    followed = np.where(said >= model.threshold, weight, 0.0)
    total = float(followed.sum())
    gain = -np.clip(examples.log_ratio, -MOST, MOST)
    return Report(
        base,
        float(weight @ (said - hit) ** 2),
        base * (1.0 - base),
        sum(one.share * abs(one.said - one.came_true) for one in bins),
        tuple(bins),
        total,
        float(followed @ hit) / total if total else float("nan"),
        float(followed @ gain) / total if total else float("nan"),
    )
