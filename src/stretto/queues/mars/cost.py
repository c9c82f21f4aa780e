"""What a job costs the operator: its time by one of several measures, and the money for its processors.

Candidates are compared by means of these costs, and those by their logarithms, so that a cost is always positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.metrics import bounded

_HOUR_S = 3600.0


def _squared(wait_s: Floats, run_s: Floats) -> Floats:
    squared: Floats = bounded(wait_s, run_s) ** 2
    return squared


def _weighted(wait_s: Floats, run_s: Floats) -> Floats:
    weighted: Floats = np.log1p(run_s) * bounded(wait_s, run_s)
    return weighted


@dataclass(frozen=True)
class Measure:
    """One way to count the time of a job.

    Attributes
    ----------
    summary
        What a mean of it is called.
    of
        The measure of jobs that have waited and run so long.
    by_user
        Whether the jobs of a user together count as much as those of any other.
    """

    summary: str
    of: Callable[[Floats, Floats], Floats]
    by_user: bool = False


BOUNDED_SLOWDOWN, MARS_V1 = "bounded-slowdown", "mars-v1"
#: The square in ``tail`` makes one job with a slowdown of 100 as dear as a hundred with 10; a quantile would be no sum
#: over jobs. ``mars-v1`` is what the paper is said to use.
MEASURES: Mapping[str, Measure] = {
    BOUNDED_SLOWDOWN: Measure("mean bounded slowdown", bounded),
    "flow": Measure("mean hours from submission to end", lambda wait_s, run_s: (wait_s + run_s) / _HOUR_S),
    "tail": Measure("mean square of the bounded slowdown", _squared),
    "fairness": Measure("mean over users of their mean bounded slowdown", bounded, by_user=True),
    MARS_V1: Measure("mean of log(1 + run) x bounded slowdown", _weighted),
}


@dataclass(frozen=True)
class JobCost:
    """Weights of time and money, and what time means.

    Money is what the processors of a job cost for as long as it holds them. On one plain machine that is the same
    under every order: it cannot put one candidate before another, and only makes their costs more alike, so that the
    queue changes between them less readily. In pools it is what is paid for rented nodes, at the prices of the pools.

    Attributes
    ----------
    measure
        One of ``MEASURES``.
    time, money
        What one of the measure and one USD count.
    """

    measure: str = BOUNDED_SLOWDOWN
    time: float = 1.0
    money: float = 0.0
    price_usd_per_proc_hour: float = 0.05

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise UnknownName("measure", self.measure, MEASURES)
        if not 0 < self.time < math.inf:
            raise InvalidInput(f"{self.time} must be finite and positive", field="time")
        for name in ("money", "price_usd_per_proc_hour"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be finite and not negative", field=name)

    @property
    def summary(self) -> str:
        """Return what is compared, in a few words."""
        parts = [(self.time, MEASURES[self.measure].summary), (self.money, "USD")]
        return " + ".join(name if weight == 1.0 else f"{weight:g} x {name}" for weight, name in parts if weight)

    def of(self, wait_s: Floats, run_s: Floats, procs: Ints) -> Floats:
        """Return what each job costs by itself; all must run for some time."""
        cost = self.time * MEASURES[self.measure].of(wait_s, run_s)
        if self.money:
            cost += self.money * self.price_usd_per_proc_hour * procs * run_s / _HOUR_S
        return cost

    def mean(self, wait_s: Floats, run_s: Floats, procs: Ints, user: Ints) -> float:
        """Return what some jobs cost in the mean."""
        cost, shares = self.of(wait_s, run_s, procs), self.shares(user)
        return float(np.mean(cost if shares is None else cost * shares))

    def shares(self, user: Ints) -> Floats | None:
        """Return how much each of some jobs counts in a mean over them, None where all count the same.

        The means of users are weighed alike. Who has how many jobs is known when they have arrived.
        """
        if not MEASURES[self.measure].by_user:
            return None
        index = user - user.min()
        count = np.bincount(index)
        share: Floats = len(user) / (np.count_nonzero(count) * count[index])
        return share


#: What is compared unless the operator says otherwise.
USUAL = JobCost()
