"""Split a job's wait into stretches, from the outcome of a replay and the rules alone: no simulator runs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.explain.order import KeyAt, Rows
from stretto.queues.explain.stretches import Cause, JobWait, ResourceHolder, WaitStretch
from stretto.queues.result import QueueResult

#: Holders that a stretch lists, and those that the whole wait lists.
_OF_STRETCH, _OF_WAIT, _USERS = 5, 10, 5


class Lack(NamedTuple):
    """What kept a job from fitting at a moment."""

    cause: Cause
    resources: tuple[str, ...] = ()
    needed: int | None = None
    free: int | None = None
    names: tuple[str, ...] = ()


class MachineView(Protocol):
    """What a machine tells of one job's wait."""

    @property
    def needs(self) -> str:
        """What the job asks for, in words."""
        ...

    @property
    def rivals(self) -> Rows:
        """The jobs that stand in the same queue, this one among them."""
        ...

    @property
    def tier(self) -> Floats:
        """The tier of every job: a higher one comes first, whatever the order."""
        ...

    def moments(self, begin_s: float, end_s: float) -> Sequence[float]:
        """Return when something changes beside starts and ends of jobs."""
        ...

    def lack(self, now: float) -> Lack | None:
        """Return what keeps the job from fitting after the pass at a moment; None = it would fit."""
        ...

    def held(self, begin_s: float, end_s: float, resources: tuple[str, ...]) -> tuple[Rows, Floats]:
        """Return the jobs that held a resource, and how much of it for how long (amount times seconds)."""
        ...

    def reserved(self, head: int, now: float) -> float | None:
        """Return the start that is reserved for a waiting job, as far as it can be told."""
        ...


@dataclass(frozen=True)
class _Part:
    """What is known of the time between two moments."""

    begin_s: float
    end_s: float
    lack: Lack
    head: int | None

    def same(self, other: _Part, job: int) -> bool:
        mine, theirs = self.lack, other.lack
        return (mine.cause, mine.resources, mine.names, self.head == job) == (
            theirs.cause,
            theirs.resources,
            theirs.names,
            other.head == job,
        )


def wait_of(result: QueueResult, index: int, rows: Rows, view: MachineView, key: KeyAt | None) -> JobWait:
    """Return why a job waited.

    Parameters
    ----------
    index
        The job, among those that were replayed.
    rows
        The row of each replayed job in the trace as it was given.
    key
        The order of the queue; None = not known.
    """
    submit, ready, start = (float(column[index]) for column in (result.trace.submit_s, result.ready_s, result.start_s))
    parts = _parts(result, index, view, key) if start > ready else []
    stretches = [_stretch(result, index, rows, view, group, key) for group in _grouped(parts, index)]
    if ready > submit:
        stretches.insert(0, _dependency(result, index, rows))
    amounts = np.zeros(result.trace.num_jobs)
    for one in stretches:
        if one.cause is Cause.RESOURCE:
            jobs, amount = view.held(one.begin_s, one.end_s, one.resources)
            np.add.at(amounts, jobs, amount)
    some = np.flatnonzero(amounts > 0)
    return JobWait(
        row=int(rows[index]),
        index=index,
        submit_s=submit,
        ready_s=ready,
        start_s=start,
        end_s=float(result.end_s[index]),
        needs=view.needs,
        is_order_known=key is not None,
        head_since_s=_head_since(parts, index),
        stretches=tuple(stretches),
        holders=_holders(result, index, rows, some, amounts[some])[:_OF_WAIT],
        users=_users(result, some, amounts[some]),
    )


def _parts(result: QueueResult, index: int, view: MachineView, key: KeyAt | None) -> list[_Part]:
    begin, end = float(result.ready_s[index]), float(result.start_s[index])
    columns = [result.start_s, result.end_s, *([] if key is None else [result.ready_s])]
    inside = [column[(column > begin) & (column < end)] for column in columns]
    times = np.unique(np.concatenate([[begin, end], *inside, np.array(view.moments(begin, end), dtype=np.float64)]))
    rivals = view.rivals
    rivals = rivals[(result.ready_s[rivals] < end) & (result.start_s[rivals] > begin)]
    rule = str(result.spec.get("backfill", "easy"))
    found: list[_Part] = []
    for now, then in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        head = None if key is None else _head(result, rivals, view.tier, key, now)
        lack = view.lack(now) or Lack(_why_not(index, head, rule, str(result.spec.get("strategy", ""))))
        found.append(_Part(now, then, lack, head))
    return found


def _head(result: QueueResult, rivals: Rows, tier: Floats, key: KeyAt, now: float) -> int:
    waiting = rivals[(result.ready_s[rivals] <= now) & (result.start_s[rivals] > now)]
    order = np.lexsort((waiting, key(waiting, now), -tier[waiting]))
    return int(waiting[order[0]])


def _why_not(index: int, head: int | None, backfill: str, strategy: str) -> Cause:
    """Return why a job that fits did not start: by the rules there is one reason, given who was first."""
    if strategy == "recorded" or head == index:
        return Cause.UNKNOWN
    return Cause.ORDER if backfill == "none" else Cause.RESERVATION


def _grouped(parts: list[_Part], index: int) -> list[list[_Part]]:
    groups: list[list[_Part]] = []
    for part in parts:
        if groups and groups[-1][-1].same(part, index):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _stretch(
    result: QueueResult, index: int, rows: Rows, view: MachineView, group: list[_Part], key: KeyAt | None
) -> WaitStretch:
    first, begin, end = group[0], group[0].begin_s, group[-1].end_s
    cause, resources = first.lack.cause, first.lack.resources
    holders: tuple[ResourceHolder, ...] = ()
    ahead: list[int] = []
    reserved = None
    if cause is Cause.RESOURCE:
        holders = _holders(result, index, rows, *view.held(begin, end, resources))
    elif cause in (Cause.RESERVATION, Cause.ORDER):
        ahead = [head for head in dict.fromkeys(part.head for part in group) if head is not None]
        if ahead and cause is Cause.RESERVATION:
            reserved = view.reserved(ahead[0], begin)
    free = [part.lack.free for part in group if part.lack.free is not None]
    return WaitStretch(
        begin_s=begin,
        end_s=end,
        cause=cause,
        resources=resources,
        needed=first.lack.needed,
        free_least=min(free, default=None),
        free_most=max(free, default=None),
        is_head=None if key is None else first.head == index,
        holders=holders[:_OF_STRETCH],
        num_holders=len(holders),
        ahead=tuple(int(rows[job]) for job in ahead),
        reserved_s=reserved,
        names=first.lack.names,
    )


def _dependency(result: QueueResult, index: int, rows: Rows) -> WaitStretch:
    trace = result.trace
    parents: Rows = np.zeros(0, np.intp)
    if trace.parent is not None and trace.child is not None:
        parents = trace.parent[trace.child == index].astype(np.intp)
    last_first = parents[np.argsort(-result.end_s[parents], kind="stable")]
    begin, end = float(trace.submit_s[index]), float(result.ready_s[index])
    open_then = [int(rows[job]) for job in last_first.tolist() if result.end_s[job] > begin]
    return WaitStretch(begin, end, Cause.DEPENDENCY, ahead=tuple(open_then))


def _holders(result: QueueResult, index: int, rows: Rows, jobs: Rows, amount: Floats) -> tuple[ResourceHolder, ...]:
    total = float(amount.sum())
    if total <= 0:
        return ()
    ready = float(result.ready_s[index])
    order = np.lexsort((jobs, -amount))

    def how(job: int) -> str:
        if result.start_s[job] <= ready:
            return "running"
        return "before" if job < index else "after"

    return tuple(
        ResourceHolder(int(rows[jobs[i]]), float(amount[i]) / total, how(int(jobs[i]))) for i in order.tolist()
    )


def _users(result: QueueResult, jobs: Rows, amount: Floats) -> tuple[tuple[int, float], ...]:
    if result.trace.user is None or not len(jobs):
        return ()
    users, at = np.unique(result.trace.user[jobs], return_inverse=True)
    share = np.bincount(at, weights=amount) / float(amount.sum())
    order = np.lexsort((users, -share))[:_USERS]
    return tuple((int(users[i]), float(share[i])) for i in order)


def _head_since(parts: list[_Part], index: int) -> float | None:
    since = None
    for part in reversed(parts):
        if part.head != index:
            break
        since = part.begin_s
    return since
