"""``stretto convert``: read a graph in one format, write it in another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.checks import check_target
from stretto.cli.console import Output, print_json, remark
from stretto.cli.options import DimOption, GraphArgument, OutputOption
from stretto.core.units import format_count


def convert(
    source: GraphArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Of the output.", show_default="by the ending"),
    ] = None,
    from_format: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Of the input.", show_default="recognised by content"),
    ] = None,
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a graph from any readable format to a writable one."""
    from stretto.api import convert as convert_graph
    from stretto.api.inputs import with_dims
    from stretto.cli.progress import ProgressLine

    check_target(target)
    with ProgressLine(f"reading {source}"):
        done = convert_graph(with_dims(source, dim), target, format=format, from_format=from_format)
    num_tasks = done.graph.num_tasks
    if output is Output.JSON:
        print_json({"path": str(target), "num_tasks": num_tasks, "lost": list(done.lost), "notes": list(done.notes)})
        return
    for what in done.lost:
        remark(f"this format cannot hold {what}")
    for note in done.notes:
        remark(f"note: {note}")
    print(target if output is Output.QUIET else f"wrote {target}: {format_count(num_tasks, 'task')}")
