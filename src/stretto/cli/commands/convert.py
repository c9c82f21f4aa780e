"""``stretto convert``: read a graph, a trace or a site in one format, write it in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.checks import check_target
from stretto.cli.completion import graph_sources
from stretto.cli.console import Output, print_json, remark
from stretto.cli.options import DimOption, OutputOption
from stretto.core.units import format_count

if TYPE_CHECKING:
    from stretto.api.convert import Converted


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|TRACE|SITE",
            help="A graph (file, FILE#MEMBER, workload:NAME), a trace (file, trace:NAME) or a site (slurm.conf, ...).",
            show_default=False,
            autocompletion=graph_sources,
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Format of the output.", show_default="by the ending"),
    ] = None,
    from_format: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Format of the input.", show_default="recognised by content"),
    ] = None,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a graph, a trace or a site from any readable format to a writable one."""
    from stretto.api import convert as convert_graph
    from stretto.api.inputs import with_dims
    from stretto.cli.progress import ProgressLine

    check_target(target)
    with ProgressLine(f"reading {source}"):
        done = convert_graph(with_dims(source, dim), target, format=format, from_format=from_format)
    key, size = _size(done)
    if output is Output.JSON:
        print_json({"path": str(target), f"num_{key}s": size, "lost": list(done.lost), "notes": list(done.notes)})
        return
    for what in done.lost:
        remark(f"this format cannot hold {what}")
    for note in done.notes:
        remark(f"note: {note}")
    print(target if output is Output.QUIET else f"wrote {target}: {format_count(size, key)}")


def _size(done: Converted) -> tuple[str, int]:
    """Return what was converted, and how many of it."""
    if done.trace is not None:
        return "job", done.trace.num_jobs
    if done.site is not None:
        return "node", len(done.site.nodes)
    assert done.graph is not None
    return "task", done.graph.num_tasks
