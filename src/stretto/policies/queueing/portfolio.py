"""A portfolio of orders with look-ahead: try each on the present queue, follow the one that promises most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.catalog import STRATEGIES
from stretto.domain.csr import Floats
from stretto.domain.queue_rules import Strategy
from stretto.domain.trace import Trace
from stretto.errors import InvalidInput
from stretto.kernels.queue_portfolio import Look, run_portfolio
from stretto.kernels.rng import seeded
from stretto.registry import lookup

#: The orders that need nothing but submission, estimate and processors; the first is the base.
CLASSICS = (
    "saf",
    "fcfs",
    "sjf",
    "ljf",
    "laf",
    "smallest",
    "largest",
    "f1",
    "f2",
    "f3",
    "f4",
    "expansion",
    "wfp3",
    "unicep",
)


@dataclass(frozen=True)
class Forecast:
    """What the look-ahead imagines.

    Attributes
    ----------
    num_scenarios
        Draws of run times and arrivals over which an order is judged.
    num_arrivals
        Jobs that arrive in each; none means that the queue is worked off undisturbed.
    memory
        The last arrivals, from which those are drawn.
    margin
        An order replaces the base only if it promises to wait less by this share.
    depth
        With queues longer than this, epochs become rarer by the square of the ratio.
    """

    num_scenarios: int = 4
    num_arrivals: int = 0
    memory: int = 256
    margin: float = 0.05
    depth: int = 64

    def __post_init__(self) -> None:
        for name, least in (("num_scenarios", 1), ("num_arrivals", 0), ("memory", 1), ("depth", 1)):
            value = getattr(self, name)
            if value < least:
                raise InvalidInput(f"{value} must be at least {least}", field=f"forecast.{name}")
        if not 0.0 <= self.margin < 1.0:
            raise InvalidInput(f"{self.margin} must be in [0, 1)", field="forecast.margin")


@dataclass(frozen=True, eq=False)
class PortfolioReplay:
    """What a portfolio did with a trace.

    Attributes
    ----------
    trace
        The jobs that were replayed, the first submitted at zero, with the estimates that were used.
    chosen
        Per job, the index in ``strategies`` of the order in force when it started.
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
    strategies: Sequence[str] = CLASSICS,
    interval_s: float = 0.0,
    forecast: Forecast | None = None,
    seed: int = 0,
) -> PortfolioReplay:
    """Replay a trace under EASY with user estimates, choosing the order of the queue by look-ahead.

    Parameters
    ----------
    strategies
        Candidates of the catalog, the first of which is the base; ``multifactor`` cannot be one.
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
    look = Look(interval_s, how.num_scenarios, how.num_arrivals, how.memory, how.margin, how.depth)
    num_epochs = run_portfolio(kept.arrays(), num_procs, codes, look, seeded(seed), start, chosen)
    place = {int(code): k for k, code in enumerate(codes)}
    index = np.array([place[int(code)] for code in chosen], np.int64)
    return PortfolioReplay(kept, tuple(strategies), start, index, int(num_epochs), num_dropped)


def _codes(strategies: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of the candidates."""
    if not strategies:
        raise InvalidInput("a portfolio needs a strategy", field="strategies")
    codes = []
    for name in strategies:
        found: Strategy = lookup("strategy", name, STRATEGIES)
        if found.uses_weights:
            raise InvalidInput(f"{name!r} has weights and cannot be part of a portfolio", field="strategies")
        if found.code in codes:
            raise InvalidInput(f"{name!r} is named twice", field="strategies")
        codes.append(found.code)
    return np.array(codes, np.int64)
