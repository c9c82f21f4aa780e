"""Reading what the user names, with a line of progress, and telling what was left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stretto.cli.console import remark
from stretto.core.units import format_count, is_count
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.cli.options import MachineFlags
    from stretto.core.graph import TaskGraph
    from stretto.core.pool import Pool
    from stretto.core.problem import Problem
    from stretto.core.site import Site
    from stretto.core.trace import Trace
    from stretto.core.workload import Workload

#: Invalid rows that are told one by one.
_TOLD = 3


def load_graph(source: str, *, format: str | None = None) -> TaskGraph | Workload:
    """Read a graph, or make a built-in one."""
    from stretto.api.inputs import load
    from stretto.cli.progress import ProgressLine

    with ProgressLine(f"reading {source}"):
        return load(source, format=format)


def load_problem(graph: str, cluster: str | None) -> Problem:
    """Read a graph and a cluster; only projects can do without a cluster."""
    from stretto.api.inputs import named_problem
    from stretto.cli.progress import ProgressLine

    with ProgressLine(f"reading {graph}"):
        return named_problem(graph, cluster)


def load_queue(source: str, *, strict: bool = False) -> Trace:
    """Read a trace, or make one, and say which rows were left out."""
    from stretto.api.inputs import load_trace
    from stretto.cli.progress import ProgressLine

    with ProgressLine(f"reading {source}"):
        trace = load_trace(source, strict=strict)
    count = skipped_rows(trace)
    if count:
        listed = trace.meta.get("skipped", ())
        told = "; ".join(f"line {line}: {reason}" for line, reason in listed[:_TOLD])
        more = f"; and {count - _TOLD:,} more" if count > _TOLD else ""
        remark(f"{source}: left out {format_count(count, 'row')}: {told}{more}")
    return trace


def skipped_rows(trace: Trace) -> int:
    """Return how many rows of the source are not in the trace."""
    return int(trace.meta.get("num_skipped", 0))


def tell_notes(notes: Iterable[str]) -> None:
    """Say on stderr what a replay leaves out."""
    for note in notes:
        remark(f"note: {note}")


def machine_named(trace: Trace, machine: MachineFlags) -> int | tuple[Pool, ...] | Site:
    """Return the machine that the options name, or the one that was recorded."""
    from stretto.api.inputs import load_site, machine_of

    given = [f"--{name}" for name, value in vars(machine).items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(f"cannot be combined with {given[1]}: give one machine", field=given[0])
    named = load_site(machine.site) if machine.site is not None else machine.pools
    return machine_of(trace, machine.procs if machine.procs is not None else named, how="--procs N or --site FILE")


def parse_window(text: str | None) -> tuple[int, int] | None:
    """Return the first job and the number of jobs of ``START:COUNT``."""
    if text is None:
        return None
    start, colon, count = text.partition(":")
    if not (colon and is_count(start) and is_count(count)) or int(count) < 1:
        raise InvalidInput(f"{text!r} is not START:COUNT, such as 1000:5000", field="--window")
    return int(start), int(count)
