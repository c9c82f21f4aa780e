"""Every chosen number of predicted starts, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WhenParameters:
    """What predictions of starts are made with; ``benchmarks/when.py`` shows what each part contributes.

    Attributes
    ----------
    num_futures
        Simulated futures per answer.
    max_arrivals
        Arrivals that a future holds at most; later ones hardly delay a job that waits already.
    memory_days
        How many days back a stretch of the past may begin that is told once more as arrivals.
    site_jobs
        On a site, all futures of an answer together hold so many waiting jobs at most, and three are always played: the
        answer shall not take longer than half a second.
    promised_waiting
        With more waiting jobs, futures do not check promises, and orders that change with time get fewer of them.
    offset_s
        Logarithms are taken of the wait plus this: errors below a minute do not matter.
    ridge, forget
        Of the regression: its prior counts as so many jobs, and what an outcome counts beside the next one.
    largest_error
        Outcomes that are further off, as a logarithm, pull at the regression no stronger than one that is so far off.
    largest_correction
        The regression may move the median of the futures so far, as a logarithm.
    choice_memory, choice_cap
        Of the choice between replay by estimates, median of the futures and regression: what an outcome counts beside
        the next one, and the error, as a logarithm, above which all are equally bad.
    recent_scores
        Outcomes from which intervals are made.
    least_scores
        With fewer outcomes, intervals are those of the futures, widened by ``first_margin`` as a logarithm.
    step
        How far the logarithm of a bound's distance moves with each outcome.
    least_growth, most_growth
        Between which it stays: without an end, one unforeseen batch would make all later intervals useless.
    burst_s, burst_power
        The k-th job of those that were submitted within so many seconds of each other counts k to the minus so much: a
        batch is hardly more evidence than a job.
    """

    num_futures: int = 30
    max_arrivals: int = 4000
    memory_days: int = 28
    site_jobs: int = 10_000
    promised_waiting: int = 100
    offset_s: float = 60.0
    ridge: float = 20.0
    forget: float = 0.998
    largest_error: float = 0.3
    largest_correction: float = 1.0
    choice_memory: float = 0.99
    choice_cap: float = 0.3
    recent_scores: int = 600
    least_scores: int = 30
    first_margin: float = 0.5
    step: float = 0.1
    least_growth: float = -0.7
    most_growth: float = 1.5
    burst_s: float = 60.0
    burst_power: float = 0.5


WHEN_PARAMETERS = WhenParameters()
