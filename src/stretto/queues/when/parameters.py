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
    least_spread
        Added to the spread of the futures, as a logarithm: where all futures agree, errors are measured in this.
    recent_scores
        Outcomes from which intervals are made.
    prior
        Errors of other queues with which every queue begins, each as one outcome: the quantiles at 2.5, 7.5 ... 97.5 %
        of those of the logs that ``benchmarks/when.py`` plays, all logs alike. Judged are logs by those of the others.
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
    least_spread: float = 0.03
    recent_scores: int = 1500
    prior: tuple[float, ...] = (
        *(-1.55, -0.84, -0.57, -0.38, -0.24, -0.13, -0.04, 0.0, 0.0, 0.0),
        *(0.0, 0.0, 0.03, 0.15, 0.27, 0.42, 0.57, 0.75, 0.95, 1.41),
    )
    burst_s: float = 60.0
    burst_power: float = 0.5


WHEN_PARAMETERS = WhenParameters()
