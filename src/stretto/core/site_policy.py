"""How a site orders its queue: the weights of priorities, services (QOS), accounts, and when its scheduler looks."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import InvalidInput

DAY_S = 86400.0
#: The limits of a QOS that count something.
QOS_LIMITS = (
    *(f"max_{what}{scope}" for scope in ("_per_user", "_per_account", "") for what in ("jobs", "cpus", "gpus")),
    *("max_cpus_per_job", "max_gpus_per_job", "max_submitted_per_user", "max_submitted"),
)


@dataclass(frozen=True)
class PriorityFactors:
    """The weights of Slurm's multifactor priority; a factor of weight 0 plays no part.

    Attributes
    ----------
    max_age_s
        The wait at which the age factor is full.
    half_life_s
        Past usage counts half after this time; inf = it never fades.
    favors_small
        Whether small jobs, rather than large ones, have the higher size factor.
    """

    age: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    max_age_s: float = 7 * DAY_S
    half_life_s: float = 7 * DAY_S
    favors_small: bool = False

    def __post_init__(self) -> None:
        for name in ("age", "fair_share", "job_size", "partition", "qos"):
            value = getattr(self, name)
            if not 0 <= value <= 2**32:
                raise InvalidInput(f"weight {value} must lie between 0 and {2**32:,}", field=f"priority.{name}")
        for name in ("max_age_s", "half_life_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{getattr(self, name)} must be positive", field=f"priority.{name}")


@dataclass(frozen=True)
class Qos:
    """A quality of service: a priority and limits that jobs ask for by name; None = no limit.

    Attributes
    ----------
    max_time_s
        The longest time limit of a job.
    max_jobs_per_user, max_cpus_per_user, max_gpus_per_user
        What the running jobs of a user may have at once; the same per account, and for all jobs of the QOS.
    max_cpus_per_job, max_gpus_per_job
        What one job may ask for.
    max_submitted_per_user, max_submitted
        How many jobs may wait and run; further ones are refused when they are submitted.
    """

    name: str
    priority: int = 0
    max_time_s: float = float("inf")
    max_jobs_per_user: int | None = None
    max_cpus_per_user: int | None = None
    max_gpus_per_user: int | None = None
    max_jobs_per_account: int | None = None
    max_cpus_per_account: int | None = None
    max_gpus_per_account: int | None = None
    max_jobs: int | None = None
    max_cpus: int | None = None
    max_gpus: int | None = None
    max_cpus_per_job: int | None = None
    max_gpus_per_job: int | None = None
    max_submitted_per_user: int | None = None
    max_submitted: int | None = None

    def __post_init__(self) -> None:
        for name in QOS_LIMITS:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidInput(f"{name} {value} must not be negative", field=f"qos {self.name}")
        if not self.max_time_s > 0:
            raise InvalidInput(f"max_time_s {self.max_time_s} must be positive", field=f"qos {self.name}")


@dataclass(frozen=True)
class Account:
    """A node of the fair-share tree: an account, or a user within one.

    Attributes
    ----------
    parent
        The account above it; None = the root.
    user
        The user that this row is about; None = the account itself.
    """

    name: str
    parent: str | None = None
    shares: int = 1
    user: str | None = None

    def __post_init__(self) -> None:
        if self.shares < 0:
            raise InvalidInput(f"{self.shares} shares; they must not be negative", field=f"account {self.name}")


@dataclass(frozen=True)
class SchedulerTiming:
    """When Slurm's scheduler looks at the queue and how far, by the names of ``SchedulerParameters``.

    Attributes
    ----------
    has_backfill
        ``sched/backfill`` rather than ``sched/builtin``.
    queue_depth
        Jobs that the main scheduler tries after an event (``default_queue_depth``).
    sched_interval_s
        How often the main scheduler tries the whole queue.
    """

    has_backfill: bool = True
    bf_interval_s: float = 30.0
    bf_window_s: float = DAY_S
    bf_resolution_s: float = 60.0
    bf_max_job_test: int = 500
    bf_continue: bool = False
    queue_depth: int = 100
    sched_interval_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("bf_interval_s", "bf_window_s", "bf_resolution_s", "sched_interval_s"):
            if not 0 < getattr(self, name) <= 1e9:
                raise InvalidInput(f"{getattr(self, name)} must lie between 0 and 1e9", field=f"scheduler.{name}")
        for name in ("bf_max_job_test", "queue_depth"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=f"scheduler.{name}")


@dataclass(frozen=True)
class SitePolicy:
    """How a site orders its queue; None = its configuration does not say, and users of it fall back to defaults."""

    priority: PriorityFactors | None = None
    scheduler: SchedulerTiming | None = None
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Account, ...] = ()
