"""``stretto show``: a graph, a workload or a cluster at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.applicable import refuse_with
from stretto.cli.options import DimOption, OutputOption
from stretto.cli.terminal.console import Output, facts, new_table, print_json, print_notes, stdout
from stretto.core.units import format_bytes, format_count, format_seconds, format_seconds_alike

if TYPE_CHECKING:
    from stretto.cli.graph_facts import GraphFacts
    from stretto.core.graph import TaskGraph
    from stretto.core.workload import Workload

_MOST_ROWS = 20
_MOST_CATEGORIES = 8


def show(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|CLUSTER",
            help="A graph (file, FILE#MEMBER, workload:NAME) or a cluster (shorthand, .toml).",
            show_default=False,
        ),
    ],
    dim: DimOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Summarise a graph, a workload of several, or a cluster."""
    from stretto.cli.show_cluster import show_cluster
    from stretto.cli.sources import load_cluster, load_graph, with_dims
    from stretto.core.graph import TaskGraph

    if _is_cluster(source):
        refuse_with(context, source, ("dim",), "it is a cluster, and only ONNX models have open dimensions")
        show_cluster(load_cluster(source), output)
        return
    work = load_graph(with_dims(source, dim))
    if isinstance(work, TaskGraph):
        _show_graph(work, output)
    else:
        _show_workload(work, output)


def _is_cluster(source: str) -> bool:
    from stretto.cli.sources import KERNELS_PREFIX, WORKLOAD_PREFIX, split_path
    from stretto.core.cluster_shorthand import BARE_KINDS, intended
    from stretto.engines.workflow_file import is_workflow

    if source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)) or is_workflow(source):
        return False
    if Path(split_path(source)[0]).exists() or "/" in source.partition("@")[0]:
        return source.endswith(".toml")
    # A word such as gpu4 is no file, and means devices: the error about clusters says how to write them.
    means_devices = (intended(source) or source).partition(":")[0] in BARE_KINDS
    return means_devices or source.endswith(".toml") or any(sign in source for sign in ":,@")


def _show_graph(graph: TaskGraph, output: Output) -> None:
    from stretto.cli.graph_facts import graph_facts

    found = graph_facts(graph)
    if output is Output.JSON:
        print_json({"what": "graph"} | found.to_json())
    elif output is Output.QUIET:
        print(found.num_tasks)
    else:
        stdout().print(facts(graph.name, _graph_rows(found)))
        print_notes(found.notes)


def _graph_rows(found: GraphFacts) -> dict[str, str]:
    rows = {
        "tasks": f"{found.num_tasks:,}",
        "edges": f"{format_count(found.num_edges, 'read')} of {format_count(found.num_objects, 'object')}",
        "depth": f"{found.depth:,} on the longest path",
        "width": f"{found.width:,} at one depth, at most",
        "work": f"{format_seconds(found.work_s)} at speed 1",
        "critical path": f"{format_seconds(found.critical_path_s)} at speed 1, transfers free",
    }
    if found.transfer_unit == "bytes":
        rows["data"] = format_bytes(found.data)
        rows["CCR"] = f"{found.ccr:.3g} at {format_bytes(found.bandwidth)}/s"
    else:
        rows["data"] = f"{format_seconds(found.data)} of transfers (the source gives times)"
        rows["CCR"] = f"{found.ccr:.3g}"
    rows["durations"] = found.durations + (f"; for {', '.join(found.kinds)}" if found.kinds else "")
    if found.resources:
        rows["resources"] = ", ".join(found.resources)
    if found.categories:
        shown = list(found.categories.items())[:_MOST_CATEGORIES]
        rest = len(found.categories) - len(shown)
        rows["categories"] = ", ".join(f"{name or '-'} {count:,}" for name, count in shown) + (
            f", and {rest} more" if rest else ""
        )
    return rows


def _show_workload(work: Workload, output: Output) -> None:
    from stretto.cli.graph_facts import graph_facts

    found = [graph_facts(job.graph) for job in work.jobs]
    if output is Output.JSON:
        jobs = [f.to_json() | {"arrival_s": job.arrival_s} for f, job in zip(found, work.jobs, strict=True)]
        print_json({"what": "workload", "name": work.name, "num_tasks": work.num_tasks, "jobs": jobs})
        return
    if output is Output.QUIET:
        print(work.num_tasks)
        return
    table = new_table(f"{work.name}: {format_count(len(work), 'graph')}, {format_count(work.num_tasks, 'task')}")
    table.add_column("graph", overflow="fold")
    for name in ("arrives", "tasks", "edges", "depth", "width", "work"):
        table.add_column(name, justify="right", no_wrap=True)
    found = found[:_MOST_ROWS]
    arrivals = format_seconds_alike([job.arrival_s for job in work.jobs[:_MOST_ROWS]])
    for f, arrival, work_s in zip(found, arrivals, format_seconds_alike([f.work_s for f in found]), strict=True):
        table.add_row(
            f.name,
            arrival,
            f"{f.num_tasks:,}",
            f"{f.num_edges:,}",
            f"{f.depth:,}",
            f"{f.width:,}",
            work_s,
        )
    if len(work) > _MOST_ROWS:
        table.caption = f"and {len(work) - _MOST_ROWS:,} more; name one with FILE#GRAPH"
    stdout().print(table)
