"""``stretto convert``: read a graph in one format, write it in another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.files import check_target
from stretto.cli.options import DimOption, GraphArgument, OutputOption
from stretto.cli.terminal.console import Output, print_json, remark
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
    from stretto.cli.sources import load_graph, with_dims
    from stretto.core.notes import graph_notes
    from stretto.core.workload import Workload
    from stretto.files.load import save

    check_target(target)
    graph = load_graph(with_dims(source, dim), format=from_format)
    if isinstance(graph, Workload) and len(graph) == 1:
        graph = graph.jobs[0].graph  # a file that could hold several but holds one
    graphs = [job.graph for job in graph.jobs] if isinstance(graph, Workload) else [graph]
    notes = list(dict.fromkeys(note for one in graphs for note in graph_notes(one)))
    lost = save(graph, target, format=format)
    if output is Output.JSON:
        print_json({"path": str(target), "num_tasks": graph.num_tasks, "lost": list(lost), "notes": notes})
        return
    for what in lost:
        remark(f"this format cannot hold {what}")
    for note in notes:
        remark(f"note: {note}")
    print(target if output is Output.QUIET else f"wrote {target}: {format_count(graph.num_tasks, 'task')}")
