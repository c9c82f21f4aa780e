"""Every tuned number of the forecasts, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ForecastParameters:
    """What forecasts are made with.

    Attributes
    ----------
    ring_jobs
        Ended jobs that a group of jobs remembers.
    least_s
        Run times and estimates below this count as this, as in the bounded slowdown.
    fade
        What an ended job counts beside the next later one of its group.
    lean_jobs
        The wider group counts as so many jobs of the narrower one.
    exact_memory, exact_spread
        Where the root mean square of log(run / estimate), over some hundred jobs, is below the spread, estimates are
        believed in part; where it is zero, entirely.
    inner_step, outer_step
        How far a quantile moves with every ended job, as a logarithm: those between the quartiles, and the others. The
        outer ones depend on few jobs and must follow what the site does; the inner ones are noisy when they do.
    largest_shift
        How far it may go.
    """

    ring_jobs: int = 16
    least_s: float = 10.0
    fade: float = 0.9
    lean_jobs: float = 1.0
    exact_memory: float = 0.99
    exact_spread: float = 0.05
    inner_step: float = 0.005
    outer_step: float = 0.05
    largest_shift: float = 4.0


FORECAST_PARAMETERS = ForecastParameters()
