"""Which candidate to follow: what each would have made of the recent past, against the operator's default.

Every candidate plays all jobs on a machine of its own (``shadow.py``). At an epoch, its cost is the mean bounded
slowdown of the last jobs there, the latest counting most. The cheapest is followed, with three reservations: another
one is only turned to for a gain that is worth it; a network needs a larger one, for it was trained on other jobs; and
where the default is about as good, or little has been seen, the default it is. That is the guard.

When the followed candidate becomes more costly than its own past lets expect (Page-Hinkley on the logarithm), the
workload is taken to have changed, and only the latest jobs count until the memory has filled again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.domain.csr import Floats
from stretto.errors import InvalidInput


@dataclass(frozen=True)
class Selection:
    """How to select.

    Attributes
    ----------
    epoch_jobs
        Arrivals between two choices.
    lag_jobs
        The latest arrivals, which shadows do not play yet: few of them have ended.
    memory_jobs
        Arrivals after which a job counts a third of what the latest counts.
    least_jobs
        Before so many have been played, the default is followed.
    least_gain
        The share of cost that turning to another candidate must save.
    network_gain
        The same, for turning to a network from a classic order.
    drift
        Sum of surprises, in logarithms of cost, at which the workload is taken to have changed.
    """

    epoch_jobs: int = 250
    lag_jobs: int = 100
    memory_jobs: int = 20_000
    least_jobs: int = 500
    least_gain: float = 0.02
    network_gain: float = 0.03
    drift: float = 6.0

    def __post_init__(self) -> None:
        for name, least in (("epoch_jobs", 1), ("lag_jobs", 0), ("memory_jobs", 1), ("least_jobs", 0)):
            if getattr(self, name) < least:
                raise InvalidInput(f"{getattr(self, name)} must be at least {least}", field=name)
        for name in ("least_gain", "network_gain", "drift"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be finite and not negative", field=name)


@dataclass(frozen=True)
class Choice:
    """What was chosen at an epoch, and the estimates behind it.

    Attributes
    ----------
    job, time_s
        The number of jobs that had arrived, and when.
    cost
        Per candidate, the mean bounded slowdown in its shadow.
    """

    job: int
    time_s: float
    chosen: str
    is_fallback: bool
    has_drifted: bool
    cost: dict[str, float]


@dataclass(eq=False)
class Selector:
    """Chooses among candidates, the first of which is the default.

    Parameters
    ----------
    is_network
        Which candidates were trained.
    """

    names: Sequence[str]
    is_network: Sequence[bool]
    rules: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.is_network):
            raise InvalidInput("a selector needs candidates, and to know which are networks", field="names")
        self.chosen = 0
        self.since = 0  # the first job that counts
        self._mean = math.nan  # of the logarithm of the followed candidate's latest cost
        self._surprise = 0.0

    def weights(self, num_played: int) -> Floats:
        """Return what the jobs from ``since`` to the last one played count."""
        age = np.arange(num_played - 1 - self.since, -1, -1)
        weights: Floats = np.exp(-age / self.rules.memory_jobs)
        return weights

    def choose(self, cost: Floats, latest: Floats, num_played: int, job: int, time_s: float) -> Choice:
        """Decide whom to follow next.

        Parameters
        ----------
        cost, latest
            Per candidate, over all that counts and over the last epoch.
        """
        drifted = self._notice(float(latest[self.chosen]))
        if drifted:
            cost = latest
            self.since = max(self.since, num_played - self.rules.epoch_jobs)
        is_young = num_played - self.since < self.rules.least_jobs
        before = self.chosen
        if not (is_young and not drifted):
            self.chosen = self._best(cost)
        if before != self.chosen:
            self._mean, self._surprise = math.nan, 0.0
        named = dict(zip(self.names, cost.tolist(), strict=True))
        return Choice(job, time_s, self.names[self.chosen], self.chosen == 0, drifted, named)

    def _best(self, cost: Floats) -> int:
        """Return the cheapest candidate, the present one or the default where that saves too little."""
        needed = np.array([self.rules.network_gain if one else self.rules.least_gain for one in self.is_network])
        needed[0] = 0.0
        if self.chosen:
            needed = np.maximum(needed - needed[self.chosen], 0.0) + self.rules.least_gain
            needed[self.chosen] = 0.0
        asked = cost / (1.0 - np.minimum(needed, 0.99))
        best = int(np.argmin(asked))
        return 0 if cost[0] <= cost[best] else best

    def _notice(self, latest: float) -> bool:
        """Add up how much more costly than before the followed candidate is; say whether that is a change."""
        value = math.log(latest)
        if math.isnan(self._mean):
            self._mean = value
            return False
        self._surprise = max(0.0, self._surprise + value - self._mean - 0.5)
        self._mean += 0.1 * (value - self._mean)
        if self._surprise <= self.rules.drift:
            return False
        self._mean, self._surprise = value, 0.0
        return True

    def state(self) -> dict[str, Any]:
        """Return what the next choice depends on, as JSON."""
        mean = None if math.isnan(self._mean) else self._mean
        return {"chosen": self.chosen, "since": self.since, "mean": mean, "surprise": self._surprise}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what :meth:`state` returned."""
        self.chosen, self.since = int(state["chosen"]), int(state["since"])
        self._mean = math.nan if state["mean"] is None else float(state["mean"])
        self._surprise = float(state["surprise"])
