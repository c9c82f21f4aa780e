"""Why a replay may differ from the record: what the log shows of capacity, outages, queues, limits and priorities.

Each reason is a number with a sentence, and is told only where the log shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import UNKNOWN, Trace
from stretto.core.units import format_count, format_percent, format_wait
from stretto.queues.recorded.capacity import outages_of, windowed_capacity
from stretto.queues.recorded.corrections import parts_of, user_limit
from stretto.queues.recorded.floor import floor_s
from stretto.queues.recorded.occupancy import Occupancy, known_waits, recorded_occupancy

_DAY_S = 86400.0
#: Below these shares nothing is told.
_LEAST_OVER = 0.001
_LEAST_DAYS = 0.1
_FULL = 0.95
_LEAST_PASSED = 0.05
_LEAST_PART = 0.01
#: Means of two queues differ where one is so many times the other, and more than a minute.
_TIMES = 3.0
_LEAST_S = 60.0
_LIMIT_SHARE = 0.9
#: By which figure a reason is compared with what the replay shows of it, and how many times more it must be.
_MEASURES = {
    "capacity": "reduced_days_share",
    "outages": "total_s",
    "partitions": "longest_mean_wait_s",
    "priorities": "passed_share",
}
_CLEARLY_MORE = 1.5
Finder = Callable[[Trace, Occupancy, int], Iterator["Reason"]]


@dataclass(frozen=True)
class Reason:
    """One thing that a plain replay does not know.

    Attributes
    ----------
    kind
        ``capacity``, ``outages``, ``partitions``, ``limits``, ``dependencies``, ``priorities``, ``held`` or ``delay``.
    figures
        What was measured, by name.
    """

    kind: str
    sentence: str
    figures: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "sentence": self.sentence, **self.figures}


def find_reasons(trace: Trace, num_procs: int, replayed_wait_s: Floats) -> tuple[Reason, ...]:
    """Return what the log shows clearly more of than the replay itself, in a fixed order.

    Backfilling, too, leaves processors idle while jobs wait, and lets jobs pass others.
    """
    finders = (
        _overload,
        _capacity,
        _outages,
        _queues,
        _limits,
        _dependencies,
        _priorities,
        _held,
        _delay,
    )
    compared = (_capacity, _outages, _queues, _priorities)
    there = _look_for_reasons(replace(trace, wait_s=replayed_wait_s), num_procs, compared)
    sizes = {_measure(reason): reason.figures[_MEASURES[reason.kind]] for reason in there if _measure(reason)}
    return tuple(
        reason
        for reason in _look_for_reasons(trace, num_procs, finders)
        if not _measure(reason)
        or reason.figures[_MEASURES[reason.kind]] > _CLEARLY_MORE * sizes.get(_measure(reason), 0.0)
    )


def _measure(reason: Reason) -> str:
    """Return by what a reason of the log is compared with the same one of the replay; empty where it is not."""
    name = _MEASURES.get(reason.kind, "")
    return f"{reason.kind} {name}" if name in reason.figures else ""


def _look_for_reasons(trace: Trace, num_procs: int, finders: Sequence[Finder]) -> tuple[Reason, ...]:
    past = recorded_occupancy(trace)
    return tuple(reason for finder in finders for reason in finder(trace, past, num_procs))


def _overload(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    lengths = np.diff(past.procs.time_s)
    share = float(np.sum(lengths[past.procs.value[:-1] > num_procs]) / max(float(np.sum(lengths)), 1.0))
    most = int(past.procs.value.max())
    if share >= _LEAST_OVER:
        sentence = (
            f"more processors were in use at once than the {num_procs:,} of the machine: up to {most:,}, "
            f"for {format_percent(share)} of the time"
        )
        yield Reason("capacity", sentence, {"most_procs": most, "over_share": share})


def _capacity(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    days = windowed_capacity(past, num_procs, _DAY_S)
    reduced = days.usable[days.usable < _FULL * num_procs]
    share = len(reduced) / len(days.usable)
    if share >= _LEAST_DAYS:
        median = float(np.median(reduced))
        sentence = (
            f"on {format_percent(share, decimals=0)} of the days jobs waited and yet no more than "
            f"{median:,.0f} processors (median) were in use at once: drained nodes, unfilled nodes, or limits"
        )
        yield Reason("capacity", sentence, {"reduced_days_share": share, "median_usable_procs": median})


def _outages(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    found = outages_of(trace, past, num_procs)
    if found:
        total = sum(one.end_s - one.begin_s for one in found)
        longest = max(one.end_s - one.begin_s for one in found)
        sentence = (
            f"in {format_count(len(found), 'stretch').replace('stretchs', 'stretches')} of an hour or more, "
            f"{format_wait(total)} in all (the longest {format_wait(longest)}), nothing started, although a waiting "
            "job would have fitted on the idle processors"
        )
        yield Reason("outages", sentence, {"num_outages": len(found), "total_s": total, "longest_s": longest})


def _queues(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    known = known_waits(trace)
    if trace.wait_s is None:
        return
    room = num_procs - past.procs.at(np.nextafter(trace.submit_s, -np.inf)) >= trace.num_procs
    for column in ("partition", "queue"):
        if getattr(trace, column) is None:
            continue
        means = _means(trace, column, known & room)
        if len(means) < 2:
            continue
        (short, shortest), (long, longest) = min(means, key=lambda m: m[1]), max(means, key=lambda m: m[1])
        if longest > _TIMES * shortest and longest - shortest > _LEAST_S:
            sentence = (
                f"jobs that arrived while the machine had room for them waited {format_wait(longest)} on average in "
                f"{column} {long} and {format_wait(shortest)} in {column} {short}: each has nodes or limits of its own"
            )
            yield Reason("partitions", sentence, {"longest_mean_wait_s": longest, "shortest_mean_wait_s": shortest})


def _means(trace: Trace, column: str, rows: NDArray[np.bool_]) -> list[tuple[str, float]]:
    """Return the mean wait by partition or queue, of those with many jobs."""
    assert trace.wait_s is not None
    names = trace.meta.get(f"{column}_names", ())
    found = []
    for part in parts_of(trace, column):
        number = int(getattr(trace, column)[part[0]])
        there = part[rows[part]]
        if number != UNKNOWN and len(there) >= max(10, _LEAST_PART * trace.num_jobs):
            name = str(names[number]) if number < len(names) else str(number)
            found.append((name, float(np.mean(trace.wait_s[there]))))
    return found


def _limits(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    most = user_limit(trace, known_waits(trace))
    if trace.user is not None and len(np.unique(trace.user)) > 1 and 0 < most <= _LIMIT_SHARE * num_procs:
        sentence = f"no user ever used more than {most:,} of the {num_procs:,} processors at once: there may be a limit"
        yield Reason("limits", sentence, {"most_procs_of_a_user": most})


def _dependencies(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    if trace.child is not None and len(trace.child):
        count = len(np.unique(trace.child))
        sentence = f"{format_count(count, 'job')} waited for other jobs to end"
        yield Reason("dependencies", sentence, {"num_jobs": count})


def _priorities(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    """Look at jobs of one width in one queue: by first come, first served, they start in order of submission."""
    known = known_waits(trace)
    if trace.wait_s is None:
        return
    part = trace.queue if trace.queue is not None else np.zeros(trace.num_jobs, np.int32)
    rows = np.flatnonzero(known)
    order = rows[np.lexsort((rows, trace.num_procs[rows], part[rows]))]
    start = trace.submit_s[order] + trace.wait_s[order]
    alike = (part[order][1:] == part[order][:-1]) & (trace.num_procs[order][1:] == trace.num_procs[order][:-1])
    waited = trace.wait_s[order][:-1] > 0
    pairs = int(np.count_nonzero(alike & waited))
    passed = int(np.count_nonzero(alike & waited & (start[1:] < start[:-1])))
    share = passed / pairs if pairs else 0.0
    if share >= _LEAST_PASSED:
        sentence = (
            f"{format_percent(share)} of the jobs that waited were passed by the next job of the same width and queue: "
            "the site did not serve in order of submission"
        )
        yield Reason("priorities", sentence, {"passed_share": share})


def _held(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    if trace.held_s is None:
        return
    held = trace.held_s[trace.held_s > 0]
    if len(held):
        mean = float(np.mean(held))
        sentence = (
            f"{format_count(len(held), 'job')} were held after their submission, {format_wait(mean)} on average; "
            "waits count from when they became eligible"
        )
        yield Reason("held", sentence, {"num_jobs": len(held), "mean_held_s": mean})


def _delay(trace: Trace, past: Occupancy, num_procs: int) -> Iterator[Reason]:
    floor = floor_s(trace, num_procs)
    if floor > 0:
        sentence = f"nine of ten jobs that arrived at a nearly idle machine waited {format_wait(floor)} or longer"
        yield Reason("delay", sentence, {"floor_s": floor})
