"""What would have let a job start earlier, found by replaying the trace with only that job changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stretto.core.request import JobRequest, ResourceRequest, components_of
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.units import format_count, format_wait
from stretto.errors import StrettoError
from stretto.queues.explain.order import Rows
from stretto.queues.explain.stretches import JobWait
from stretto.queues.nodes.requests import asked_of
from stretto.queues.result import QueueResult

_MINUTE_S, _HOUR_S = 60.0, 3600.0
SAME_WORK = "the same work on fewer processors takes longer in proportion"

#: Replays a changed trace and returns the outcome, with the row of each job that was replayed.
Replayed = Callable[[Trace], tuple[QueueResult, Rows]]


@dataclass(frozen=True)
class JobAlternative:
    """One change of a job, and what came of it.

    Attributes
    ----------
    kind
        ``limit``, ``size`` or ``partition``.
    saved_s
        How much earlier the job started; below zero: later.
    ends_earlier_s
        How much earlier it ended.
    assumed
        What had to be assumed, in a sentence.
    reason
        Why the change could not be replayed; the times are NaN then.
    """

    kind: str
    change: str
    start_s: float
    end_s: float
    saved_s: float
    ends_earlier_s: float
    assumed: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Changed:
    """A trace in which one job differs."""

    kind: str
    change: str
    trace: Trace
    assumed: str | None = None


def alternatives_of(
    trace: Trace, wait: JobWait, result: QueueResult, machine: object, replayed: Replayed
) -> tuple[JobAlternative, ...]:
    """Replay each change of a job; the largest saving comes first."""
    if wait.wait_s <= 0:
        return ()
    if isinstance(machine, Site) and trace.request is None:  # what a replay on a site would work out by itself
        asked = asked_of(trace, machine)
        trace = replace(trace, request=asked.request, requests=asked.requests)
    found = [_outcome(changed, wait, replayed) for changed in changes_of(trace, wait, result, machine)]
    return tuple(sorted(found, key=lambda one: -one.saved_s if math.isfinite(one.saved_s) else math.inf))


def _outcome(changed: Changed, wait: JobWait, replayed: Replayed) -> JobAlternative:
    try:
        result, rows = replayed(changed.trace)
    except StrettoError as error:
        return _impossible(changed, str(error))
    at = int(np.searchsorted(rows, wait.row))
    if at == len(rows) or rows[at] != wait.row:
        return _impossible(changed, "; ".join(result.notes) or "the job cannot run like this")
    start, end = float(result.start_s[at]), float(result.end_s[at])
    return JobAlternative(
        changed.kind, changed.change, start, end, wait.start_s - start, wait.end_s - end, changed.assumed
    )


def _impossible(changed: Changed, reason: str) -> JobAlternative:
    nothing = float("nan")
    return JobAlternative(
        changed.kind, changed.change, nothing, nothing, nothing, nothing, assumed=changed.assumed, reason=reason
    )


def changes_of(trace: Trace, wait: JobWait, result: QueueResult, machine: object) -> Iterator[Changed]:
    """Yield the traces in which the job has a smaller limit, is smaller, or may use another partition."""
    yield from _limits(trace, wait, result)
    smaller = _smaller(trace, wait.row)
    if smaller is not None:
        yield smaller
    if isinstance(machine, Site):
        yield from _partitions(trace, wait.row, machine)


def _limits(trace: Trace, wait: JobWait, result: QueueResult) -> Iterator[Changed]:
    """Yield smaller limits that the job would have kept."""
    if result.spec.get("estimates") == "perfect" or result.spec.get("strategy") == "recorded":
        return
    limit, run = float(result.trace.estimate_s[wait.index]), float(trace.run_s[wait.row])
    if not (math.isfinite(limit) and math.isfinite(float(trace.estimate_s[wait.row]))):
        return
    told = {}
    if limit / 2 >= run:
        told[limit / 2] = "half the time limit"
    near = rounded_up(run)
    if near < limit:
        told[near] = "a time limit just above its run time"
    for seconds, what in told.items():
        column = trace.estimate_s.copy()
        column[wait.row] = seconds
        change = f"{what}: {format_wait(seconds)} instead of {format_wait(limit)}"
        yield Changed("limit", change, replace(trace, estimate_s=column))


def rounded_up(run_s: float) -> float:
    """Return a limit that a user could have given: the run time, rounded up to minutes, quarters or hours."""
    step = _MINUTE_S if run_s < 15 * _MINUTE_S else 15 * _MINUTE_S if run_s < 4 * _HOUR_S else _HOUR_S
    return math.ceil(run_s / step) * step


def _smaller(trace: Trace, row: int) -> Changed | None:
    """Return the job on half as many processors, taking longer in proportion."""
    before = _procs(trace, row)
    requests = _requests(trace, row, _halved)
    if before < 2 or requests is None:
        return None
    procs = (before + 1) // 2 if requests.request is None else _procs(requests, row)
    factor = before / procs
    columns = {name: getattr(trace, name).copy() for name in ("run_s", "estimate_s", "num_procs")}
    columns["run_s"][row] *= factor
    columns["estimate_s"][row] *= factor
    columns["num_procs"][row] = procs
    if trace.num_gpus is not None:
        columns["num_gpus"] = trace.num_gpus.copy()
        columns["num_gpus"][row] = (int(trace.num_gpus[row]) + 1) // 2
    change = f"half as many: {format_count(procs, 'processor')} instead of {before:,}"
    return Changed("size", change, replace(requests, **columns), SAME_WORK)


def _procs(trace: Trace, row: int) -> int:
    if trace.request is None:
        return int(trace.num_procs[row])
    return sum(part.num_cpus for part in components_of(trace.requests[int(trace.request[row])]))


def _halved(part: ResourceRequest) -> ResourceRequest:
    least = (part.min_nodes + 1) // 2
    most = None if part.max_nodes is None else max(least, (part.max_nodes + 1) // 2)
    if part.num_tasks > 1:
        return replace(part, num_tasks=(part.num_tasks + 1) // 2, min_nodes=least, max_nodes=most)
    return replace(part, cpus_per_task=(part.cpus_per_task + 1) // 2)


def _requests(trace: Trace, row: int, change: Callable[[ResourceRequest], ResourceRequest]) -> Trace | None:
    """Return the trace with a changed request of one job, as it is where it has no requests; None = no change."""
    if trace.request is None:
        return trace
    before = trace.requests[int(trace.request[row])]
    parts = tuple(change(part) for part in components_of(before))
    after: JobRequest = parts if isinstance(before, tuple) else parts[0]
    if after == before:
        return None
    column = trace.request.copy()
    column[row] = len(trace.requests)
    return replace(trace, request=column, requests=(*trace.requests, after))


def _moved(names: tuple[str, ...], part: ResourceRequest) -> ResourceRequest:
    return replace(part, partitions=names)


def _partitions(trace: Trace, row: int, site: Site) -> Iterator[Changed]:
    """Yield the job in each other partition alone, and in any of them."""
    if trace.request is None:
        return
    own = components_of(trace.requests[int(trace.request[row])])[0].partitions or (site.default_partition.name,)
    others = [part.name for part in site.partitions if part.name not in own]
    for names in [(name,) for name in others] + ([(*own, *others)] if others else []):
        changed = _requests(trace, row, partial(_moved, names))
        if changed is not None:
            where = f"partition {names[0]}" if len(names) == 1 else "any partition"
            yield Changed("partition", f"{where} instead of {' or '.join(own)}", changed)
