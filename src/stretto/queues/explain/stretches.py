"""The stretches of a job's wait, each with one cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Cause(StrEnum):
    """Why a job did not start in a stretch of its wait."""

    #: A job that it waits for had not ended.
    DEPENDENCY = "dependency"
    #: As many jobs of its group ran as may run at once.
    LIMIT = "limit"
    #: Less of a resource was free than it needs.
    RESOURCE = "resource"
    #: Nodes were reserved for maintenance or for others.
    MAINTENANCE = "maintenance"
    #: It would have fitted, and would have delayed the reserved start of a job before it.
    RESERVATION = "reservation"
    #: It would have fitted, and without backfilling no job starts before the head of the queue.
    ORDER = "order"
    #: It would have fitted, and a job before it had to wait for an elastic pool or a better price.
    POOL = "pool"
    #: It would have fitted, and what held it back is not known.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ResourceHolder:
    """A job that held what another one needed.

    Attributes
    ----------
    row
        In the trace as it was given.
    share
        Its part of what all jobs held of the resource during the stretch or wait, by amount and time.
    how
        ``running`` when the other became eligible, submitted ``before`` it, or submitted ``after`` it and started
        before it.
    """

    row: int
    share: float
    how: str


@dataclass(frozen=True)
class WaitStretch:
    """A time in which a job waited for one thing.

    Attributes
    ----------
    begin_s, end_s
        In the time of the replay.
    resources
        What was short, such as ``processors`` or ``memory``; more than one where only their lack together kept the job
        from starting. Empty for causes other than a resource.
    needed, free_least, free_most
        Of the first of these resources, where it is counted as a whole; None on nodes.
    is_head
        Whether the job was first in the queue; None where the order is not known.
    holders
        Who held the resource, the largest share first; the first few.
    num_holders
        How many there were.
    ahead
        Rows of the jobs that it waited for: parents, or those at the head of the queue, in order of time.
    reserved_s
        The start that was reserved for the first of them at the beginning of the stretch; None = not known.
    """

    begin_s: float
    end_s: float
    cause: Cause
    resources: tuple[str, ...] = ()
    needed: int | None = None
    free_least: int | None = None
    free_most: int | None = None
    is_head: bool | None = None
    holders: tuple[ResourceHolder, ...] = ()
    num_holders: int = 0
    ahead: tuple[int, ...] = ()
    reserved_s: float | None = None
    names: tuple[str, ...] = field(default=())

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class JobWait:
    """A job's wait in a replay.

    Attributes
    ----------
    row, index
        The job in the trace as it was given, and among the jobs that were replayed.
    submit_s, ready_s, start_s, end_s
        In the time of the replay, which begins with the first submission.
    needs
        What the job asks for, in words.
    head_since_s
        Since when the job was first in the queue until it started; None where it never was, or the order is not known.
    stretches
        From submission to start, without gaps.
    holders
        Over all stretches in which a resource was short.
    users
        The same by user number.
    """

    row: int
    index: int
    submit_s: float
    ready_s: float
    start_s: float
    end_s: float
    needs: str
    is_order_known: bool
    head_since_s: float | None
    stretches: tuple[WaitStretch, ...]
    holders: tuple[ResourceHolder, ...]
    users: tuple[tuple[int, float], ...]

    @property
    def wait_s(self) -> float:
        return self.start_s - self.submit_s
