"""Replay policies on a trace and write the page that compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stretto.api.inputs import MachineLike, TraceLike, machine_of, trace_of
from stretto.api.options import split_names
from stretto.api.options.policy import PolicyReportOptions
from stretto.api.report import WrittenReport
from stretto.core.trace import Trace
from stretto.core.units import format_count
from stretto.errors import InvalidInput
from stretto.files.load import write_atomically
from stretto.queues.replay import Machine, check_rules, replay
from stretto.queues.result import QueueResult
from stretto.queues.setup import procs_of
from stretto.reports.queues.outcomes import PolicyComparison, compared
from stretto.reports.queues.page import policy_page

#: What is compared where nobody says: the present policy of most queues, and two orders that are known to help.
DEFAULT_STRATEGIES = ("fcfs", "sjf", "saf")


def write_policy_report(
    trace: TraceLike,
    path: Path,
    machine: MachineLike | None,
    strategies: Sequence[str] | str | None,
    options: PolicyReportOptions,
    title: str | None,
) -> WrittenReport:
    """Replay each policy, the present one first, and write the page."""
    found = compare_policies(trace, machine, strategies, options)
    page = policy_page(found, title, options.command)
    write_atomically(path, page.content)
    return WrittenReport(path, 0, len(page.content), answer=page.answer, comparison=found)


def compare_policies(
    trace: TraceLike,
    machine: MachineLike | None,
    strategies: Sequence[str] | str | None,
    options: PolicyReportOptions,
    on_policy: Callable[[str], None] | None = None,
) -> PolicyComparison:
    """Replay each policy on the same jobs and gather what they did."""
    names = policy_names(strategies)
    for name in names:
        check_rules(name, backfill=options.backfill)
    given = trace_of(trace)
    place = machine_of(given, machine)
    tagged = replace(given, job_id=np.arange(given.num_jobs, dtype=np.int32))
    results = []
    for name in names:
        results.append((name, replay(tagged, place, strategy=name, backfill=options.backfill, seed=options.seed)))
        if on_policy is not None:
            on_policy(name)
    energy, said = _energies(given, place, [result for _, result in results], options)
    notes = dict.fromkeys(note for _, result in results for note in result.notes)
    return compared(
        given,
        results,
        machine=_machine_name(place),
        rank_by=options.rank_by,
        energy=energy,
        notes=[f"backfilling: {options.backfill}", *notes, *said],
    )


def policy_names(strategies: Sequence[str] | str | None) -> list[str]:
    """Return the policies that are meant, each once, the present one first."""
    if strategies is None:
        return list(DEFAULT_STRATEGIES)
    names = split_names(strategies, "strategies") if isinstance(strategies, str) else list(dict.fromkeys(strategies))
    if not names:
        raise InvalidInput("names no policy", field="strategies")
    return [name for name in names if name != "recorded"] or list(DEFAULT_STRATEGIES[:1])


def _energies(
    trace: Trace, machine: Machine, results: list[QueueResult], options: PolicyReportOptions
) -> tuple[list[dict[str, float]], list[str]]:
    """Return the energy of each replay up to the same end, where power is known."""
    meter = options.meter()
    if not meter.applies(machine):
        return [], []
    first = None
    if trace.origin_unix_s is not None and results[0].trace.job_id is not None:
        first = trace.origin_unix_s + float(trace.submit_s[results[0].trace.job_id[0]])
    each = [meter.measure(result, machine, first) for result in results]
    until = max(one.until_s for one in each)
    found = [one.until(until) for one in each]
    notes = list(dict.fromkeys(note for one in found for note in one.notes))
    notes.append("energy counts idle and busy nodes up to the end of the last job of the slowest policy")
    if meter.carbon is not None:
        notes.append(f"carbon by column {meter.carbon.column!r} of {meter.carbon.source}")
    return [one.figures() for one in found], notes


def _machine_name(place: Machine) -> str:
    return format_count(procs_of(place), "processor") + ("" if isinstance(place, int) else f" ({_kind(place)})")


def _kind(place: Machine) -> str:
    name = getattr(place, "name", None)
    return f"site {name}" if name is not None else "pools"
