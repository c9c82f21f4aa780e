"""Who gains and who loses when one policy takes the place of another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats
from stretto.reports.queues.groups import Grouping
from stretto.reports.queues.outcomes import PolicyOutcome, Rows

#: A start that differs by less is the same.
SAME_S = 60.0
_MOST_JOBS = 10
_HOUR_S = 3600.0


@dataclass(frozen=True)
class GroupChange:
    """What changes for a group: jobs that start earlier and later, and the hours."""

    name: str
    num_jobs: int
    num_earlier: int
    num_later: int
    hours_saved: float
    hours_lost: float

    @property
    def net_hours(self) -> float:
        return self.hours_saved - self.hours_lost


@dataclass(frozen=True)
class JobChange:
    """One job that starts much earlier or later; ``saved_s`` is below zero where it starts later."""

    row: int
    before_s: float
    after_s: float

    @property
    def saved_s(self) -> float:
        return self.before_s - self.after_s


@dataclass(frozen=True, eq=False)
class PolicyChange:
    """From one policy to another."""

    before: str
    after: str
    total: GroupChange
    gainers: tuple[JobChange, ...]
    losers: tuple[JobChange, ...]
    saved_s: Floats  # [n]


def change_of(before: PolicyOutcome, after: PolicyOutcome, rows: Rows) -> PolicyChange:
    """Compare the waits of the same jobs."""
    saved: Floats = before.wait_s - after.wait_s
    order = np.argsort(-saved, kind="stable")
    gainers = [i for i in order[:_MOST_JOBS].tolist() if saved[i] > SAME_S]
    losers = [i for i in order[::-1][:_MOST_JOBS].tolist() if saved[i] < -SAME_S]

    def jobs(chosen: list[int]) -> tuple[JobChange, ...]:
        return tuple(JobChange(int(rows[i]), float(before.wait_s[i]), float(after.wait_s[i])) for i in chosen)

    return PolicyChange(before.name, after.name, _of("all jobs", saved), jobs(gainers), jobs(losers), saved)


def by_group(change: PolicyChange, grouping: Grouping) -> list[GroupChange]:
    """Return what changes for each group."""
    return [_of(group.name, change.saved_s[group.chosen]) for group in grouping.groups]


def _of(name: str, saved: Floats) -> GroupChange:
    earlier, later = saved > SAME_S, saved < -SAME_S
    return GroupChange(
        name,
        len(saved),
        int(np.count_nonzero(earlier)),
        int(np.count_nonzero(later)),
        float(saved[saved > 0].sum()) / _HOUR_S,
        float(-saved[saved < 0].sum()) / _HOUR_S,
    )
