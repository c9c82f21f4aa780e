"""When the daemons of a Slurm do things: intervals, delays and phases that ``slurm.conf`` leaves open."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import InvalidInput


@dataclass(frozen=True)
class DaemonTiming:
    """How the controller keeps time, beside what :class:`~stretto.core.site_policy.SchedulerTiming` says.

    Attributes
    ----------
    has_epilog
        Whether nodes run an epilog after each job, as most sites have it: then every end of a job runs the main
        scheduler at once. Without one it waits for the background loop.
    batch_sched_delay_s
        Shortest time between two passes of the main scheduler (``batch_sched_delay``).
    tick_s, first_tick_s
        Period of the controller's background loop, which calls the main scheduler after submissions; and its first
        turn, in seconds of the replay; a turn before the replay is one in which the main scheduler ran.
    first_backfill_s, first_full_pass_s
        First turn of the backfill thread, and first pass of the main scheduler through the whole queue; None = one
        interval after the start.
    backfill_pass_s
        How long a backfill pass takes; the interval begins after it.
    launch_s, complete_s
        From the allocation to the job's first instruction; from its last one until its nodes accept other jobs.
    priority_period_s, first_priority_s
        How often priorities are computed again (``PriorityCalcPeriod``), and when for the first time.
    clock_s
        Unix time at second 0 of the replay. Slurm rounds times to slots of its clock.
    """

    has_epilog: bool = True
    batch_sched_delay_s: float = 3.0
    tick_s: float = 1.0
    first_tick_s: float = 0.5
    first_backfill_s: float | None = None
    first_full_pass_s: float | None = None
    backfill_pass_s: float = 0.0
    launch_s: float = 0.0
    complete_s: float = 0.0
    priority_period_s: float = 300.0
    first_priority_s: float = 300.0
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("tick_s", "priority_period_s"):
            if not 0 < getattr(self, name) <= 1e9:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=name)
        for name in ("batch_sched_delay_s", "backfill_pass_s", "launch_s", "complete_s", "clock_s"):
            if not 0 <= getattr(self, name) <= 1e12:
                raise InvalidInput(f"{getattr(self, name)} must not be negative", field=name)
