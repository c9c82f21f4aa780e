"""A portfolio of orders with look-ahead: try each on the present queue, follow the one that promises most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.portfolio import LookaheadRules, run_portfolio
from stretto.queues.strategies import MEMBERS, member_code


@dataclass(frozen=True)
class Forecast:
    """What the look-ahead imagines.

    Attributes
    ----------
    num_scenarios
        Draws of run times and arrivals over which a choice is judged, at most; bad ones are given up sooner.
    num_arrivals
        Jobs that arrive in each; none means that the queue is worked off undisturbed.
    memory
        The last arrivals, from which those are drawn.
    confidence
        The base is left only for a mean gain of more than so many standard errors.
    depth
        With queues longer than this, epochs become rarer by the square of the ratio.
    review
        Arrivals after which the base first gives way to a candidate of its own order that leaves another share of the
        machine to short jobs, and would have done clearly better so far; with 0 it never does.
    """

    num_scenarios: int = 16
    num_arrivals: int = 30
    memory: int = 1000
    confidence: float = 4.0
    depth: int = 8
    review: int = 250

    def __post_init__(self) -> None:
        for name, least in (("num_scenarios", 1), ("num_arrivals", 0), ("memory", 1), ("depth", 1), ("review", 0)):
            value = getattr(self, name)
            if value < least:
                raise InvalidInput(f"{value} must be at least {least}", field=f"forecast.{name}")
        if not 0.0 <= self.confidence < math.inf:
            raise InvalidInput(f"{self.confidence} must be finite and not negative", field="forecast.confidence")


@dataclass(frozen=True, eq=False)
class PortfolioReplay:
    """What a portfolio did with a trace.

    Attributes
    ----------
    trace
        The jobs that were replayed, the first submitted at zero, with the estimates that were used.
    chosen
        Per job, the index in ``strategies`` of the order that started it.
    num_epochs
        How often the orders disagreed and were compared.
    num_dropped
        Jobs of the given trace that do not fit, or never ran.
    """

    trace: Trace
    strategies: tuple[str, ...]
    start_s: Floats  # [n]
    chosen: NDArray[np.int64]  # [n]
    num_epochs: int
    num_dropped: int


def portfolio_replay(
    trace: Trace,
    num_procs: int,
    *,
    strategies: Sequence[str] = MEMBERS,
    interval_s: float = 0.0,
    forecast: Forecast | None = None,
    seed: int = 0,
) -> PortfolioReplay:
    """Replay a trace under EASY with user estimates, choosing the order of the queue by look-ahead.

    Parameters
    ----------
    strategies
        Candidates, as :func:`member_code` knows them, the first of which is the base that goes on after a choice.
    interval_s
        Least time between two choices; zero = at every event.
    seed
        For the scenarios.
    """
    codes = _codes(strategies)
    if not (interval_s >= 0.0 and math.isfinite(interval_s)):
        raise InvalidInput(f"{interval_s} must be finite and not negative", field="interval_s")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput("the portfolio replays jobs without dependencies only", field="dependencies")
    kept, num_dropped = trace.fitting(num_procs)
    start = np.empty(kept.num_jobs)
    chosen = np.zeros(kept.num_jobs, np.int64)
    how = forecast if forecast is not None else Forecast()
    look = LookaheadRules(
        interval_s, how.num_scenarios, how.num_arrivals, how.memory, how.confidence, how.depth, how.review
    )
    jobs = kept.arrays()
    num_epochs = run_portfolio(jobs, kinds_of(jobs), num_procs, codes, look, seeded(seed), start, chosen)
    return PortfolioReplay(kept, tuple(strategies), start, chosen, int(num_epochs), num_dropped)


def kinds_of(jobs: QueueArrays) -> NDArray[np.int64]:
    """Return the kinds of each job, narrowest first; a kind is what jobs have in common when they are submitted."""
    length = np.floor(np.log2(np.maximum(jobs.estimate, 1.0)))
    width = np.ceil(np.log2(jobs.procs))
    columns = []
    num_kinds = 0
    for parts in (
        (jobs.user, jobs.estimate, jobs.procs),
        (jobs.user, jobs.estimate),
        (jobs.user,),
        (length, width),
        (np.zeros(len(jobs.user)),),
    ):
        kind = np.zeros(len(jobs.user), np.int64)
        for part in parts:  # numbered one after the other: to compare whole rows takes ten times as long
            number = np.unique(part, return_inverse=True)[1]
            kind = np.unique(kind * (int(number.max()) + 1) + number, return_inverse=True)[1]
        columns.append(kind + num_kinds)
        num_kinds += int(kind.max()) + 1
    return np.stack(columns, axis=1).astype(np.int64)


def _codes(strategies: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of the candidates."""
    if not strategies:
        raise InvalidInput("a portfolio needs a strategy", field="strategies")
    codes: list[int] = []
    for name in strategies:
        code = member_code(name)
        if code in codes:
            raise InvalidInput(f"{name!r} is named twice", field="strategies")
        codes.append(code)
    return np.array(codes, np.int64)
