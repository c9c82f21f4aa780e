"""Waits of a replay beside the site's baseline and the record: in total, by group, and of the longest-waiting jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Floats
from stretto.core.units import format_percent, format_wait
from stretto.queues.explain.names import JobNames
from stretto.queues.metrics import Spread, bounded
from stretto.queues.replay import replay
from stretto.queues.result import QueueResult
from stretto.reports.page.tables import Table
from stretto.reports.page.view_types import WaitsJson
from stretto.reports.queues.groups import groupings
from stretto.reports.replay import same_jobs
from stretto.runlog.record import Json

#: What a site is taken to run when nothing else is known: first come, first served with EASY backfilling.
BASELINE: dict[str, Json] = {"strategy": "fcfs", "backfill": "easy"}
#: Jobs of a trace whose baseline is replayed while a page waits.
_MAX_JOBS = 200_000
_NUM_LONGEST = 10
_Column = tuple[str, Floats | None]


def waits_json(result: QueueResult, *, is_on_site: bool = False) -> WaitsJson | None:
    """Return what a page tells of waits, None for a replay without jobs.

    Parameters
    ----------
    is_on_site
        Whether nodes and partitions were replayed; a log does not hold them, so that there is no baseline.
    """
    if not result.trace.num_jobs:
        return None
    own = str(result.spec.get("strategy", "this replay"))
    base = None if is_on_site else _baseline(result)
    recorded = result.trace.wait_s
    if recorded is not None and _spread(recorded) is None:  # a log may have the column and no values
        recorded = None
    columns: list[_Column] = [(own, result.wait_s), ("baseline", base), ("recorded", recorded)]
    known = [(name, waits) for name, waits in columns if waits is not None]
    tables = [_total(result, known), *_groups(result, known), _longest(result, known)]
    notes = [] if base is None else ["Assumed baseline: fcfs with EASY backfilling on the same machine."]
    if recorded is not None:
        notes.append("Recorded: the waits in the trace, on the machine and under the rules of that time.")
    return {"tables": [table.to_json() for table in tables], "notes": notes, "promises": _promises(result)}


def _baseline(result: QueueResult) -> Floats | None:
    """Return the waits of the baseline; None where this is the baseline, or replaying it would take too long."""
    is_same = all(result.spec.get(name) == value for name, value in BASELINE.items())
    if is_same or result.trace.num_jobs > _MAX_JOBS or result.site is not None:
        return None
    trace, machine = same_jobs(result)
    kept: dict[str, Json] = {
        name: result.spec[name] for name in ("estimates", "kill", "tie", "pool_rule") if name in result.spec
    }
    found = replay(trace, machine, **BASELINE, **kept)
    return found.wait_s if found.trace.num_jobs == result.trace.num_jobs else None


def _spread(waits: Floats) -> Spread | None:
    known = waits[np.isfinite(waits) & (waits >= 0)]
    return Spread.of(known) if len(known) else None


def _total(result: QueueResult, columns: Sequence[_Column]) -> Table:
    rows, means, slow = [], [], []
    for name, waits in columns:
        assert waits is not None
        found = _spread(waits)
        known = np.isfinite(waits) & (waits >= 0)
        if found is None:
            continue
        slow.append(float(np.mean(bounded(waits[known], result.run_s[known]))))
        means.append(found.mean)
        told = (format_wait(value) for value in (found.mean, found.p50, found.p95, found.max))
        rows.append((name, f"{slow[-1]:,.1f}", *told))
    heads = ("", "mean bounded slowdown", "mean wait", "median", "p95", "longest")
    best = {(int(np.argmin(slow)), 1), (int(np.argmin(means)), 2)}
    return Table("Slowdown and wait", "", heads, tuple(rows), frozenset(best) if len(rows) > 1 else frozenset())


def _groups(result: QueueResult, columns: Sequence[_Column]) -> list[Table]:
    tables = []
    for one in groupings(result.trace, np.arange(result.trace.num_jobs)):
        rows = []
        for group in one.groups:
            found = [_spread(waits[group.chosen]) for _, waits in columns if waits is not None]
            p95 = "-" if found[0] is None else format_wait(found[0].p95)
            means = ("-" if it is None else format_wait(it.mean) for it in found)
            rows.append((group.name, f"{group.count:,}", *means, p95))
        key = "processors" if one.key == "size" else one.key
        heads = (key, "jobs", *(name for name, _ in columns), f"p95, {columns[0][0]}")
        tables.append(Table(f"Mean wait {_lower(one.title)}", "", heads, tuple(rows)))
    return tables


def _lower(title: str) -> str:
    return f"of {title[0].lower()}{title[1:]}" if title.startswith("The") else title[0].lower() + title[1:]


def _longest(result: QueueResult, columns: Sequence[_Column]) -> Table:
    names = JobNames(result.trace)
    order = np.argsort(-result.wait_s, kind="stable")[:_NUM_LONGEST].tolist()
    rows = []
    for row in order:
        who = f"{names.of(row)}" if names.has_ids else f"row {row}"
        user = names.user(row)
        waits = (waits[row] for _, waits in columns if waits is not None)
        told = (format_wait(float(wait)) if np.isfinite(wait) and wait >= 0 else "-" for wait in waits)
        rows.append((f"{who} ({user})" if user else who, f"{int(result.trace.num_procs[row]):,}", *told))
    heads = ("job", "processors", *(name for name, _ in columns))
    return Table("Longest waits", "", heads, tuple(rows))


def _promises(result: QueueResult) -> str | None:
    """Say how many promised starts were kept, None where nothing was promised."""
    if result.due_s is None or not np.any(np.isfinite(result.due_s)):
        return None
    given = np.isfinite(result.due_s)
    margin = result.due_s - result.start_s if result.margin_s is None else result.margin_s
    num_kept, total = int(np.count_nonzero(margin[given] >= -1e-6)), int(np.count_nonzero(given))
    return f"{num_kept:,} of {total:,} promised starts were kept ({format_percent(num_kept / total)})."
