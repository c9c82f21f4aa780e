"""``stretto nextflow``: a Nextflow run as a task graph, and a configuration with what its processes need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.checks import check_target, refuse_without
from stretto.cli.console import Output, new_table, print_answer, print_json, remark, stdout
from stretto.cli.options import OutputOption
from stretto.core.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from stretto.api.nextflow import NextflowRun


def nextflow(
    context: typer.Context,
    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", help="The trace file written by nextflow run -with-trace.", show_default=False),
    ],
    work: Annotated[
        Path | None,
        typer.Option(
            "--work", metavar="DIR", help="The work directory, from which the edges are read.", show_default=False
        ),
    ] = None,
    dag: Annotated[
        Path | None,
        typer.Option(
            "--dag",
            metavar="FILE",
            help="Source of the edges in place of --work: WfFormat, or the process graph of -with-dag (.dot or .mmd).",
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            "--graph", metavar="FILE", help="Write the task graph to this file, for stretto plan.", show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Write a nextflow.config with the recommended requests.",
            show_default=False,
        ),
    ] = None,
    quantile: Annotated[
        float,
        typer.Option("--quantile", metavar="Q", help="Quantile for memory and time; never below the observed values."),
    ] = 0.95,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="CLUSTER",
            help="Nodes to choose from; their kind is the value of the directive. Also sets maxForks.",
            show_default=False,
        ),
    ] = None,
    directive: Annotated[
        str,
        typer.Option("--directive", metavar="NAME", help="The directive that selects a node: machineType or queue."),
    ] = "machineType",
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what the processes of a Nextflow run used and should request. Write its graph and a configuration."""
    from stretto.api import nextflow as read_run
    from stretto.api import save
    from stretto.errors import InvalidInput

    for target in (graph, config):
        if target is not None:
            check_target(target)
    if cluster is None:
        refuse_without(context, "--cluster", ("directive",))
    if graph is not None and work is None and dag is None:
        raise InvalidInput("needs --work DIR or --dag FILE: a trace alone has no edges", field="--graph")
    done = read_run(trace, work=work, dag=dag, quantile=quantile, cluster=cluster, directive=directive)
    if config is not None:
        done.save_config(config)
    if graph is not None and done.graph is not None:
        save(done.graph, graph)
    if output is Output.JSON:
        print_json(_document(done))
    elif output is Output.QUIET:
        print("\n".join(item.process for item in done.needs))
    else:
        _print(done, graph, config)


def _document(done: NextflowRun) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "answer": done.answer,
        "quantile": done.quantile,
        "processes": [asdict(item) for item in done.needs],
        "num_tasks": done.graph.num_tasks if done.graph is not None else None,
        "num_edges": done.graph.num_edges if done.graph is not None else None,
        "edges": done.edges,
    }


def _print(done: NextflowRun, graph: Path | None, config: Path | None) -> None:
    print_answer(done.answer)
    table = new_table()
    table.add_column("process", overflow="fold", min_width=16)
    for column in ("tasks", "CPUs", "memory", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    for item in done.needs:
        asked = f"{item.used_cpus:.1f} of {item.asked_cpus or 0:g}" if item.used_cpus is not None else "?"
        table.add_row(
            item.process,
            str(item.num_tasks),
            f"{asked} → {item.cpus if item.cpus is not None else '?'}",
            _change(item.peak_memory_bytes, item.memory_bytes, format_bytes),
            _change(item.longest_s, item.time_s, format_seconds),
        )
    stdout().print(table)
    remark(f"used → needed: the {done.quantile:.0%} quantile of the next task, never below what was observed")
    if done.graph is not None:
        remark(f"{format_count(done.graph.num_tasks, 'task')}, {done.graph.num_edges:,} edges, {done.edges}")
    for path in (graph, config):
        if path is not None:
            print(f"wrote {path}")


def _change(used: float | None, needed: float | None, form: Callable[[float], str]) -> str:
    return f"{form(used)} → {form(needed)}" if used is not None and needed is not None else "?"
