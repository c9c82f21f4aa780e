"""One job on the spot market before a deadline that is certain.

The job has so much work, on one instance at a time. A spot instance is cheap, may be unavailable, and may be taken back
at any moment; an on-demand instance is always there. To start on either takes a changeover, in which no work is done.

The certified rule keeps a reserve: whenever the job is not on demand, the time to the deadline covers one changeover
and all work left. Within the reserve it takes the action of least expected cost. The expectation is a dynamic program
for each of some mean lengths of spells with and without spot (``kernels/spot_values.py``); which of them hold is
learned while the job runs. A spell that has lasted long is believed to last: spells have no single typical length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.graphs.rental.kernels.spot_hindsight import hindsight_cost
from stretto.graphs.rental.kernels.spot_run import (
    CERTIFIED,
    GREEDY,
    UNIFORM,
    certified_action,
    learn,
    run_windows,
    within_reserve,
)
from stretto.graphs.rental.kernels.spot_values import fill_values

#: Where a job may be, by the codes of the kernels.
MARKETS = ("idle", "spot", "on demand")
RULES = {"greedy": GREEDY, "uniform-progress": UNIFORM, "certified": CERTIFIED}


@dataclass(frozen=True)
class SpotParams:
    """What the certified rule believes before it has seen anything; chosen by ``benchmarks/spot_deadline.py``.

    Attributes
    ----------
    shortest_s, factor, num_lengths
        Mean lengths of spells that are considered: the shortest, and each so many times the one before.
    prior_spells, prior_slope
        The prior counts as so many spells; a length is as likely as its ``-prior_slope``-th power.
    num_ticks
        Steps of the dynamic program for the work; slack has half as many at most.
    """

    shortest_s: float = 720.0
    factor: float = 3.0
    num_lengths: int = 7
    prior_spells: float = 2.0
    prior_slope: float = 0.5
    num_ticks: int = 288

    @property
    def lengths_s(self) -> Floats:
        """Mean lengths of spells."""
        return self.shortest_s * self.factor ** np.arange(self.num_lengths, dtype=np.float64)

    @property
    def prior(self) -> Floats:
        """Spells of each length that count as seen."""
        weight = self.lengths_s**-self.prior_slope
        return np.asarray(self.prior_spells * weight / weight.sum())


@dataclass(frozen=True)
class SpotJob:
    """A job for the spot market.

    Attributes
    ----------
    work_s
        Time that it takes on an instance without changeovers.
    deadline_s
        Seconds from its start on.
    changeover_s
        From the decision to start an instance until work goes on: boot, restore, and what a loss undoes.
    price_ratio
        Price of spot relative to on demand.
    """

    work_s: float
    deadline_s: float
    changeover_s: float
    price_ratio: float

    def __post_init__(self) -> None:
        for name in ("work_s", "deadline_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be positive and finite", field=name)
        for name in ("changeover_s", "price_ratio"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must not be negative", field=name)
        if self.reserve_s < 0:
            raise Infeasible(
                f"{self.work_s:g} s of work and a changeover of {self.changeover_s:g} s do not fit before the "
                f"deadline of {self.deadline_s:g} s even on demand; give at least {self.work_s + self.changeover_s:g} s"
            )

    @property
    def reserve_s(self) -> float:
        """Time that may be lost before only on demand is left."""
        return self.deadline_s - self.work_s - self.changeover_s


@dataclass(frozen=True, eq=False)
class SpotRuns:
    """Runs of one job, from several moments on.

    Attributes
    ----------
    cost_s
        Cost, as seconds on demand.
    least_reserve_s
        The least time that was left over beyond what on demand would have taken; negative would be a broken promise.
    """

    cost_s: Floats
    end_s: Floats
    spot_s: Floats
    on_demand_s: Floats
    num_changeovers: Floats
    least_reserve_s: Floats


class SpotTables:
    """Expected costs for one job, by mean lengths of spells with and without spot."""

    def __init__(self, job: SpotJob, params: SpotParams | None = None) -> None:
        self.job = job
        self.params = params or SpotParams()
        slack = job.deadline_s - job.work_s
        self.tick_s = max(job.work_s / self.params.num_ticks, 2.0 * slack / self.params.num_ticks)
        self.ends = self.chances(self.tick_s)
        shape = (math.ceil(job.work_s / self.tick_s - 1e-9) + 1, math.ceil(slack / self.tick_s - 1e-9) + 1, 3, 2)
        self.values = np.empty((self.params.num_lengths**2, *shape))
        for k, lost in enumerate(self.ends):
            for q, found in enumerate(self.ends):
                pair = self.values[k * len(self.ends) + q]
                fill_values(pair, lost, found, job.changeover_s / self.tick_s, job.price_ratio)

    def chances(self, step_s: float) -> Floats:
        """Return the chance that a spell of each length ends within a step."""
        return np.asarray(1.0 - np.exp(-step_s / self.params.lengths_s))


class SpotDecider:
    """The certified rule for a job that really runs: ask it at equal steps, and whenever something changes.

    Examples
    --------
    >>> tables = SpotTables(SpotJob(work_s=7200.0, deadline_s=10800.0, changeover_s=120.0, price_ratio=0.3))
    >>> decider = SpotDecider(tables, step_s=600.0)
    >>> decider.decide(is_available=True, market="idle", work_left_s=7200.0, elapsed_s=0.0)
    'spot'
    """

    def __init__(self, tables: SpotTables, step_s: float) -> None:
        self.tables = tables
        self._ends = tables.chances(step_s)
        prior = tables.params.prior
        self._seen, self._now = np.stack((prior, prior)), prior / prior.sum()
        self._was: bool | None = None

    def decide(
        self, *, is_available: bool, market: str, work_left_s: float, elapsed_s: float, starting_s: float = 0.0
    ) -> str:
        """Return where to run for the next step: ``spot``, ``on demand`` or ``idle``.

        Who is told to be idle waits at most :meth:`may_wait_s`, and then starts on demand.

        Parameters
        ----------
        is_available
            Whether spot can be had now.
        market
            Where the job is now; a spot instance that was taken back leaves it ``idle``.
        starting_s
            What is left of the changeover of the present instance.
        """
        if market not in MARKETS:
            raise UnknownName("market", market, MARKETS)
        if self._was is not None:
            learn(self._seen, self._now, self._ends, self._was, is_available)
        self._was = is_available
        job, tick, m = self.tables.job, self.tables.tick_s, MARKETS.index(market)
        slack = job.deadline_s - elapsed_s - work_left_s
        action = certified_action(
            self.tables.values,
            self._seen,
            self._now,
            self.tables.ends,
            work_left_s / tick,
            (slack - starting_s) / tick,
            m,
            is_available,
            job.changeover_s / tick,
            job.price_ratio,
        )
        return MARKETS[within_reserve(action, m, slack, job.changeover_s)]

    def may_wait_s(self, work_left_s: float, elapsed_s: float) -> float:
        """Return how long the job may be idle before only the reserve is left."""
        job = self.tables.job
        return max(0.0, job.deadline_s - elapsed_s - work_left_s - job.changeover_s)


def run_spot(
    tables: SpotTables,
    available: NDArray[np.bool_],
    step_s: float,
    *,
    rule: str = "certified",
    starts: Sequence[int] = (0,),
) -> SpotRuns:
    """Run a job by a rule on a series of availability, from each of some steps on.

    Parameters
    ----------
    available
        For each step of ``step_s`` seconds, whether spot is available; after the last it never is.
    rule
        ``certified``, ``greedy`` or ``uniform-progress``; the reserve holds under each.
    """
    if rule not in RULES:
        raise UnknownName("spot rule", rule, RULES)
    if not step_s > 0:
        raise InvalidInput(f"{step_s} must be positive", field="step_s")
    job = tables.job
    out = np.empty((len(starts), 6))
    run_windows(
        RULES[rule],
        np.ascontiguousarray(available, dtype=np.bool_),
        np.asarray(starts, dtype=np.float64),
        step_s,
        job.work_s,
        job.deadline_s,
        job.changeover_s,
        job.price_ratio,
        tables.values,
        tables.params.prior,
        tables.chances(step_s),
        tables.ends,
        tables.tick_s,
        out,
    )
    return SpotRuns(*(np.ascontiguousarray(column) for column in out.T))


def hindsight(job: SpotJob, available: NDArray[np.bool_], step_s: float, unit_s: float) -> float:
    """Return the least cost with all availability known, as seconds on demand.

    Parameters
    ----------
    unit_s
        Resolution: work, deadline, changeover and step must be multiples of it.
    """
    counts = [value / unit_s for value in (job.work_s, job.deadline_s, job.changeover_s, step_s)]
    if any(abs(count - round(count)) > 1e-6 for count in counts):
        raise InvalidInput(f"{unit_s:g} s does not divide the work, deadline, changeover and step", field="unit_s")
    work, end, changeover, step = (round(count) for count in counts)
    known = np.zeros(end, dtype=np.bool_)
    seen = np.repeat(np.asarray(available, dtype=np.bool_), step)[:end]
    known[: len(seen)] = seen
    space = np.empty((2, end - work + 1, 3))
    return unit_s * float(hindsight_cost(known, work, changeover, job.price_ratio, space[0], space[1]))
