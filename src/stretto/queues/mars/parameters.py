"""Every tuned number of MARS, with where it came from.

"Logs" are the sixteen public logs of ``benchmarks/mars.py`` (the first 60 % of each) and generated ones; the figures
behind each choice are in the laboratory notes of MARS. "Safety" bounds what a mistake can cost, "speed" trades nothing
but time, and "unchanged" is a first guess that was never varied. Compiled code reads these values when it is compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stretto.core.argument_checks import at_least, not_negative


@dataclass(frozen=True)
class Selection:
    """How to select a candidate; a caller may change these.

    Attributes
    ----------
    epoch_jobs
        Arrivals between two choices.
    lag_jobs
        The latest arrivals, which counterfactual replays leave out: few of them have ended.
    memory_jobs
        Arrivals after which a job counts a third of what the latest counts.
    least_jobs
        Until so many have been replayed, the present candidate is kept.
    least_gain
        The share of cost that another candidate must save, once much has been seen.
    certainty
        By how many standard errors another candidate must have been cheaper from epoch to epoch.
    early_gain
        What it must save in addition while no more than ``least_jobs`` have been seen; less and less later.
    variant_gain, variant_certainty
        ``least_gain`` and ``certainty`` for a variant of the default.
    network_gain
        A trained network, or an order that holds jobs back, counts as this share more costly than it was.
    guard
        The share by which the real queue may cost more than the default's counterfactual replay before the default
        takes over. It is large because such replays are optimistic: they guess run times of jobs that have not ended.
    drift
        Sum of unexpected increases, in logarithms of cost, at which the workload is taken to have changed.
    """

    epoch_jobs: int = 250  # logs
    lag_jobs: int = 100  # unchanged
    memory_jobs: int = 200_000  # logs
    least_jobs: int = 500  # unchanged
    least_gain: float = 0.3  # logs
    certainty: float = 3.0  # logs
    early_gain: float = 0.2  # logs
    variant_gain: float = 0.05  # logs
    variant_certainty: float = 1.5  # logs
    network_gain: float = 0.15  # logs
    guard: float = 1.0  # safety
    drift: float = 30.0  # logs

    def __post_init__(self) -> None:
        for name, least in (("epoch_jobs", 1), ("lag_jobs", 0), ("memory_jobs", 1), ("least_jobs", 0)):
            at_least(least, **{name: getattr(self, name)})
        gains = ("least_gain", "early_gain", "variant_gain", "network_gain")
        for name in (*gains, "certainty", "variant_certainty", "guard", "drift"):
            not_negative(**{name: getattr(self, name)})


@dataclass(frozen=True)
class MarsParameters:
    """The values that no caller changes."""

    # Selector (selector.py).
    whole_memory: int = 3  # speed: after so many times ``memory_jobs`` a job no longer counts
    grace_epochs: int = 2  # unchanged: epochs after a change that say nothing of the new candidate
    prior_epochs: float = 4.0  # unchanged: weight of what all candidates' replays missed, in epochs
    won_share: float = 0.99  # unchanged: an epoch is won by a share of cost, not by rounding
    unanimous_epochs: int = 5  # safety: so many epochs suffice if all were won ...
    unanimous_share: float = 0.2  # ... and the cost is no more than this share
    hopeless_ratio: float = 4.0  # speed: a candidate that has cost so many times the default ...
    hopeless_jobs: int = 10_000  # ... over so many jobs is no longer replayed
    variant_ratio: float = 1.5  # safety: a variant that has cost so many times the default ...
    variant_epochs: int = 4  # ... over so many epochs is left at once
    most_gain: float = 0.9  # safety: no required gain is larger
    light_load: float = 1.01  # logs: hardly any job waits below this ratio to the cost without waiting
    drift_slack: float = 0.5  # unchanged: Page-Hinkley: an increase that is expected
    drift_rate: float = 0.1  # unchanged: Page-Hinkley: rate of the running mean
    # Evidence (evidence.py).
    most_log_ratio: float = 2.0  # safety: no epoch counts more than a factor of seven
    least_stretches: int = 5  # statistics: fewer say nothing of their own error
    least_error: float = 0.05  # logs: the error of one stretch is not less, in logarithms
    # Change of workload (evidence.py).
    latest_jobs: int = 500  # logs: the latest jobs ...
    between_jobs: int = 250  # ... after so many that may be of either workload ...
    before_jobs: int = 2000  # ... are compared with so many before
    known_share: float = 0.01  # logs: most of the latest jobs that may be by known users
    other_share: float = 0.6  # logs: least part of them that has other sizes
    # Counterfactual replays (counterfactual.py).
    known_part: float = 0.75  # logs: replays go as far as this part of the jobs has ended ...
    known_stretch: int = 200  # ... of so many in a row
    first_share: float = 0.5  # unchanged: run time over estimate before anything has ended
    drawn_jobs: int = 2000  # unchanged: ended jobs that run times are drawn from
    drawn_user_jobs: int = 16  # unchanged: the same of one user
    draw_tries: int = 4  # unchanged: draws until a run time exceeds the elapsed time
    # The default order and the other untrained candidates (candidates.py).
    default_width: float = 0.7  # logs: weight of the width beside the length
    default_aging: float = 0.15  # logs and generated changes of workload: weight of the wait
    default_reserve: float = 0.05  # logs: share of the machine that long jobs leave free
    default_passes_s: float = 12 * 3600.0  # logs: longer jobs do not pass the head of the queue
    plain_reserve: float = 0.02  # logs: reserve share of the default order without the forecaster
    aging: float = 0.3  # logs: weight of the wait in an order that ages
    narrow_aging: float = 0.2  # generated logs: the same where only short jobs pass
    narrow_reserve: float = 0.1  # generated logs: reserve share where only short jobs pass
    narrow_passes_s: float = 3600.0  # logs: who may pass where only short jobs do
    num_hidden: int = 16  # logs: hidden units of a trained network
    # Scoring network (kernels/policy.py).
    clip: float = 4.0  # safety: the hidden layer sees no larger feature
    leak: float = 0.1  # unchanged: slope of hidden units below zero
    forecast_pause: float = 0.02  # speed: a job is forecast anew after it has waited for this part longer
    # Inputs of the forecaster (kernels/forecast.py); other values need another training.
    input_clip: float = 6.0  # safety: no input is larger
    chain_jobs: int = 16  # speed: jobs on a chain that are looked at
    chain_fade: float = math.exp(-1.0 / 4.0)  # logs: weight from one job of a chain to the next
    fresh_share: float = 0.4  # logs: weight of a user's latest job in the mean of his ended ones
    again_part: float = 0.25  # speed: running jobs are looked at again after this part of their time ...
    again_s: float = 60.0  # ... and no sooner than this
    long_ago: float = 16.0  # unchanged: logarithm of the seconds since an event that never was
    exact_spread: float = 0.3  # logs: below this spread of log ratios, estimates are trusted in part
    least_log_ratio: float = -12.0  # safety: no smaller logarithm of run time over estimate


MARS_PARAMETERS = MarsParameters()
