"""What can be seen at an epoch of a queue and of all candidates, as one row of numbers per candidate.

Everything is relative to the default, so that a row means the same on every machine: what a candidate cost in its
shadow over all the past and lately, how sure that is, what kind of candidate it is, and what the look-ahead of the
portfolio expects of the present queue under the order that is nearest to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.live_order import PortfolioOrder
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import advantage
from stretto.queues.mars.parameters import MARS_PARAMETERS
from stretto.queues.portfolio import Forecast
from stretto.queues.view import QueueView

#: Numbers per candidate, and what they are.
NUM_INPUTS = 13
ALL, LATELY, LATEST, SURE, IS_FOLLOWED, IS_DEFAULT, IS_VARIANT, IS_PENALIZED, AHEAD, EXACT, COST, SEEN, WAITING = range(
    NUM_INPUTS
)
MOST = MARS_PARAMETERS.most_log_ratio
#: An estimate is exact if it is off by no more than this part.
_OFF = 0.05
#: Epochs that are "lately", and the latest.
_LATELY, _LATEST = 12, 4
#: More standard errors than this say no more.
_SUREST = 6.0
#: The orders that futures are worked off in, and which of them is nearest to a candidate, by the beginning of its name.
_ORDERS = ("saf-believed", "sjf-believed", "saf", "sjf", "fcfs", "f1", "f4", "expansion", "wfp3", "wfp3-believed")
_NEAREST = {
    "default-": "saf-believed",
    "saf-": "saf-believed",
    "sjf-": "sjf-believed",
    "f4-": "f4",
    "expansion-": "expansion",
    "wfp3-": "wfp3-believed",
}
#: Jobs that the look-ahead sees, and how many may wait before it would take too long.
_MOST_JOBS, _MOST_WAITING = 1500, 300
_FORECAST = Forecast(num_scenarios=4)


@dataclass(frozen=True, eq=False)
class Observation:
    """What is seen at an epoch; K candidates, the first of which is the default.

    Attributes
    ----------
    cost, epochs
        Per candidate, over all that counts and in each epoch of it; [K] and [K, E].
    chosen
        Who is followed.
    exactness
        The share of ended jobs that ran as long as was estimated.
    ahead
        What the look-ahead expects of orders, by name; empty where there is nothing to weigh.
    """

    cost: Floats
    epochs: Floats
    chosen: int
    num_seen: int
    num_waiting: int
    exactness: float
    ahead: Mapping[str, float]

    def rows(self, names: Sequence[str], penalized: NDArray[np.bool_], variants: NDArray[np.bool_]) -> Floats:
        """Return the numbers of every candidate; one that is not watched has NaN as cost; [K, NUM_INPUTS]."""
        num = len(names)
        x = np.zeros((num, NUM_INPUTS))
        gain, error = advantage(self.epochs, 0)
        x[:, ALL] = np.clip(np.log(self.cost / self.cost[0]), -MOST, MOST)
        ratios = np.clip(np.log(self.epochs) - np.log(self.epochs[0]), -MOST, MOST)
        x[:, LATELY] = ratios[:, -_LATELY:].mean(axis=1)
        x[:, LATEST] = ratios[:, -_LATEST:].mean(axis=1)
        x[:, SURE] = np.clip(gain / error, -_SUREST, _SUREST) / _SUREST
        x[self.chosen, IS_FOLLOWED] = 1.0
        x[0, IS_DEFAULT] = 1.0
        x[:, IS_VARIANT], x[:, IS_PENALIZED] = variants, penalized
        x[:, AHEAD] = [self._expected(name, names[0]) for name in names]
        x[:, EXACT] = self.exactness
        x[:, COST] = math.log(self.cost[0]) / 3.0
        x[:, SEEN] = math.log1p(self.num_seen) / 10.0
        x[:, WAITING] = math.log1p(self.num_waiting) / 5.0
        x[~np.isfinite(self.cost)] = np.nan
        return x

    def _expected(self, name: str, default: str) -> float:
        """Return the logarithm of what is expected of a candidate over what is expected of the default."""
        ours, theirs = self.ahead.get(nearest(name)), self.ahead.get(nearest(default))
        if ours is None or theirs is None or ours <= 0.0 or theirs <= 0.0:
            return 0.0
        return min(max(math.log(ours / theirs), -MOST), MOST)


def nearest(name: str) -> str:
    """Return the order of the look-ahead that is nearest to a candidate; its own name where there is none."""
    if name in _ORDERS:
        return name
    return next((order for beginning, order in _NEAREST.items() if name.startswith(beginning)), name)


def look_ahead(jobs: QueueArrays, start: Floats, num_arrived: int, now: float, num_procs: int) -> Mapping[str, float]:
    """Return what each order makes of the present queue in simulated futures, by what was known at that time."""
    first = max(0, num_arrived - _MOST_JOBS)
    part = slice(first, num_arrived)
    begin = start[part]
    waits = begin < 0
    if not 2 <= int(waits.sum()) <= _MOST_WAITING:
        return {}
    end = begin + jobs.run[part]
    view = QueueView(
        now,
        num_procs,
        np.arange(first, num_arrived),
        jobs.submit[part],
        np.maximum(jobs.estimate[part], 1.0),
        jobs.procs[part],
        jobs.user[part],
        np.where(waits, np.nan, begin),
        np.where(waits | (end > now), np.nan, end),
        np.ones(num_arrived - first, np.bool_),
    )
    return PortfolioOrder(_ORDERS, _FORECAST, budget_s=math.inf).decide(view).costs


def exactness_of(replays: CounterfactualReplays) -> float:
    """Return the share of jobs that have ended lately which ran as long as was estimated."""
    return float(np.mean(np.abs(np.array(replays.draws.ratios) - 1.0) <= _OFF))


def default_waits(replays: CounterfactualReplays, first: int, last: int) -> Floats:
    """Return how long some jobs wait under the default, until the last of them arrived at the most; [jobs]."""
    now, submit, begin = (
        float(replays.jobs.submit[last - 1]),
        replays.jobs.submit[first:last],
        replays.start[0, first:last],
    )
    return np.maximum(np.where(begin >= 0, np.minimum(begin, now), now) - submit, 0.0)
