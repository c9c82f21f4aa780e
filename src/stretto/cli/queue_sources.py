"""What the user names in commands about queues: traces, machines, windows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.completion import estimate_names, pool_rule_names
from stretto.cli.sources import WORKLOAD_PREFIX, load_graph, parse_params
from stretto.cli.terminal.console import remark
from stretto.core.units import format_count
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.pool import Pool
    from stretto.core.trace import Trace

TRACE_PREFIX = "trace:"
#: Rows at fault that are told one by one.
_TOLD = 3

TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A file (SWF, sacct, Parquet, CSV), a workflow, or trace:lublin?num_jobs=1000&seed=1.",
        show_default=False,
    ),
]
ProcsOption = Annotated[
    int | None,
    typer.Option("--procs", metavar="N", help="Processors of the machine.", show_default="as recorded"),
]
PoolsOption = Annotated[
    str | None,
    typer.Option(
        "--pools",
        metavar="POOLS",
        help="Instead of --procs: a TOML file, or shorthand such as own:128*16,cloud:0-64*8@0.40~90s.",
        show_default=False,
    ),
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", metavar="START:COUNT", help="Only these jobs, counted from 0.", show_default="all"),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row at fault; otherwise such rows are left out and told.")
]
EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        metavar="NAME",
        help="What is believed of run times; see stretto list estimates.",
        autocompletion=estimate_names,
    ),
]
KillOption = Annotated[bool, typer.Option("--kill", help="Jobs end at their wall limit, the user's estimate.")]
PoolRuleOption = Annotated[
    str,
    typer.Option(
        "--pool-rule",
        metavar="NAME",
        help="Which pool a job prefers; see stretto list pool-rules.",
        autocompletion=pool_rule_names,
    ),
]
PlotOption = Annotated[
    str | None,
    typer.Option("--plot", metavar="DIR", help="Write pictures (PNG and SVG) into this directory.", show_default=False),
]


def load_queue(source: str, *, strict: bool = False) -> Trace:
    """Read a trace from a file, or make one; a workflow becomes jobs that wait for each other."""
    from stretto.cli.terminal.progress import ProgressLine

    with ProgressLine(f"reading {source}"):
        trace = _load(source, strict)
    _tell_skipped(trace, source)
    return trace


def _load(source: str, strict: bool) -> Trace:
    if source.startswith(TRACE_PREFIX):
        return _generate(source.removeprefix(TRACE_PREFIX))
    if source.startswith(WORKLOAD_PREFIX):
        return _of_graph(source)
    from stretto.files.traces.load import load_trace

    try:
        return load_trace(source, strict=strict)
    except InvalidInput:
        if _is_graph(source):
            return _of_graph(source)
        raise


def _generate(text: str) -> Trace:
    from stretto import catalog
    from stretto.registry import lookup

    name, _, query = text.partition("?")
    make = lookup("trace generator", name, catalog.TRACE_GENERATORS)
    params: dict[str, Any] = {"num_jobs": 1000, "seed": 0}
    params |= parse_params([pair for pair in query.split("&") if pair], field=TRACE_PREFIX + name)
    if isinstance(params.get("trace"), str):
        params["trace"] = load_queue(params["trace"])
    try:
        made: Trace = make(**params)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(str(error), field=TRACE_PREFIX + name) from None
    return made


def is_trace(source: str) -> bool:
    """Say whether a source is a recorded or generated queue rather than a graph; never raises."""
    if source.startswith(TRACE_PREFIX):
        return True
    return _matches(source, "TRACES") and not _matches(source, "FORMATS")


def _is_graph(source: str) -> bool:
    return not _matches(source, "TRACES") and _matches(source, "FORMATS")


def _matches(source: str, table: str) -> bool:
    """Say whether the content of a file looks like some format of a table."""
    from stretto import catalog
    from stretto.errors import StrettoError
    from stretto.files.document import read_document
    from stretto.files.traces.load import MAX_TRACE_BYTES
    from stretto.registry import resolve

    if not os.path.isfile(source):
        return False
    try:
        document = read_document(source, max_bytes=MAX_TRACE_BYTES)
        return any(resolve(target).matches(document) for target in getattr(catalog, table).values())
    except StrettoError:
        return False


def _of_graph(source: str) -> Trace:
    from stretto.core.graph import TaskGraph
    from stretto.files.traces.workflow import trace_of_graph

    graph = load_graph(source)
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("a workload of several graphs is not a trace", source=source)
    return trace_of_graph(graph)


def skipped_rows(trace: Trace) -> int:
    """Return how many rows of the source are not in the trace."""
    return int(trace.meta.get("num_skipped", 0))


def _tell_skipped(trace: Trace, source: str) -> None:
    count = skipped_rows(trace)
    if count:
        listed = trace.meta.get("skipped", ())
        told = "; ".join(f"line {line}: {reason}" for line, reason in listed[:_TOLD])
        more = f"; and {count - _TOLD:,} more" if count > _TOLD else ""
        remark(f"{source}: left out {format_count(count, 'row')}: {told}{more}")


def tell_notes(notes: Iterable[str]) -> None:
    """Say on stderr what a replay passes over."""
    for note in notes:
        remark(f"note: {note}")


def machine_of(trace: Trace, procs: int | None, pools: str | None) -> int | tuple[Pool, ...]:
    """Return the machine that the options name, or the one that was recorded."""
    if procs is not None and pools is not None:
        raise InvalidInput("say either --procs or --pools", field="--procs")
    if pools is not None:
        return load_pools(pools)
    if procs is not None:
        if procs < 1:
            raise InvalidInput(f"{procs} processors; a machine needs at least one", field="--procs")
        return procs
    return trace.recorded_procs("--procs N")


def load_pools(source: str) -> tuple[Pool, ...]:
    """Read pools from a file or from shorthand."""
    from stretto.files.clusters.pool_toml import parse_pools, read_pools
    from stretto.files.document import read_document
    from stretto.files.near_file import file_hint

    if os.path.isfile(source) or source.lower().endswith((".toml", ".json")):
        return read_pools(read_document(source))
    try:
        return parse_pools(source)
    except InvalidInput as error:
        raise InvalidInput(error.message + ("" if ":" in source else file_hint(source)), field=error.field) from None


def machine_name(machine: int | tuple[Pool, ...]) -> str:
    """Return the machine in a few words."""
    if isinstance(machine, int):
        return format_count(machine, "processor")
    return ", ".join(f"{pool.name} ({format_count(pool.num_procs, 'processor')})" for pool in machine)


def cut_window(trace: Trace, window: str | None) -> Trace:
    """Return the jobs of ``START:COUNT``."""
    if window is None:
        return trace
    start, colon, count = window.partition(":")
    if not (colon and start.isdecimal() and count.isdecimal()) or int(count) < 1:
        raise InvalidInput(f"{window!r} is not START:COUNT, such as 1000:5000", field="--window")
    if int(start) >= trace.num_jobs:
        raise InvalidInput(f"job {start} is not one of {trace.num_jobs:,} jobs", field="--window")
    return trace.window(int(start), int(count))


def check_folder(path: str | None) -> None:
    """Make the folder of pictures, or say why there cannot be one."""
    if path is None:
        return
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"cannot make this directory: {reason}", source=path) from None
