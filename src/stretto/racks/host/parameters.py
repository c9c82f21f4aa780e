"""What is assumed about a host before anything has run on it."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import InvalidInput


@dataclass(frozen=True)
class HostParams:
    """Priors and time constants of the contention law and of foreign load.

    They are stated, not fitted: each says what a host of which nothing is known may be like, and what it ran soon
    counts for more.

    Attributes
    ----------
    core_coupling, core_coupling_sd
        Slowdown by a busy sibling thread, or by all other cores together: 0.3 lies between separate cores (0) and two
        threads of one core (0.6 to 1).
    memory_demand, memory_demand_sd
        Of a category that never ran; two tasks with demand d slow each other down by d squared.
    scale_sd
        Standard deviation of the logarithm of true over stated duration, where durations are not measured.
    measured_scale_sd
        The same where they were measured on this host.
    noise_sd
        Scatter of log durations under equal conditions.
    foreign_memory_sd, foreign_memory_s
        Demand of foreign programs for memory bandwidth, and how long it lasts.
    forget_s
        After this time without evidence, what was learned has lost most of its weight, so that it is tried again.
    load_s
        Averaging time of a core's load: a few ticks of the kernel's clock, which counts in steps of 10 ms.
    lasting_s, mean_load_s
        How long foreign load lasts until that is seen, and the averaging time of its long-run mean.
    max_age_s
        Readings older than this are stale.
    window
        Waiting tasks that a look-ahead plays to their end.
    """

    core_coupling: float = 0.3
    core_coupling_sd: float = 0.4
    memory_demand: float = 0.4
    memory_demand_sd: float = 0.5
    scale_sd: float = 0.7
    measured_scale_sd: float = 0.05
    noise_sd: float = 0.15
    foreign_memory_sd: float = 0.5
    foreign_memory_s: float = 5.0
    forget_s: float = 900.0
    load_s: float = 0.15
    lasting_s: float = 5.0
    mean_load_s: float = 60.0
    max_age_s: float = 2.0
    window: int = 48

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise InvalidInput(f"{value} must be positive", field=name)
