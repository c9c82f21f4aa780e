"""Numbers of the look-ahead portfolio, and of the means of past run times that it shares with MARS.

Each has a line on where it came from. "Logs" are those of ``benchmarks/portfolio.py`` and ``benchmarks/mars.py``;
"unchanged" means a first guess that was never varied. Compiled code reads these values when it is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PortfolioParameters:
    """The values that were chosen, not derived; see ``Forecast`` for those that a caller may set."""

    # Forecasts from the means of like jobs (kernels/forecast.py).
    bound_s: float = 10.0  # definition of the bounded slowdown (Feitelson)
    long_s: float = 3600.0  # logs: a forecast above one hour makes a job long
    free_share: int = 3  # safety bound: with a third of the machine free, no job is held back
    ring_jobs: int = 16  # unchanged: ended jobs of a kind that draws are made from
    discount: float = 0.95  # logs: weight that a past job keeps when another of its kind ends
    lean_jobs: float = 2.0  # logs: a wider kind counts as so many jobs of the narrower one
    first_ratio: float = 0.6  # logs: run time over estimate before anything has ended
    first_harmonic_ratio: float = 0.5  # logs: the same for the harmonic mean
    harmonic_share: float = 0.25  # logs: weight of the harmonic mean in a forecast
    draw_tries: int = 8  # unchanged: draws until a run time exceeds the elapsed time
    # Choice by look-ahead (kernels/portfolio.py).
    first_heat: int = 6  # logs: from so many scenarios on, choices that do worse than the base are dropped
    # Review of the reserve share (kernels/leader.py).
    review_growth: float = 0.25  # unchanged: the next review comes when the past has grown by this part
    review_jobs: int = 10_000  # time limit: the last arrivals that a review replays
    review_margin: float = 0.25  # logs: part of its own cost by which the base must be beaten
    review_stretch: int = 200  # unchanged: three in four of so many jobs must have ended


PORTFOLIO_PARAMETERS = PortfolioParameters()
