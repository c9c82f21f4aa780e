"""``stretto report``: runs, plans and comparisons, or policies on a trace, as one offline page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import split_names
from stretto.api.options.policy import PolicyReportOptions
from stretto.cli.checks import check_target, expanded, refuse_with, refuse_without
from stretto.cli.completion import backfill_names
from stretto.cli.console import Output, print_answer, print_json
from stretto.cli.options import ENERGY_OPTIONS, MACHINE_GROUP, MachineFlags, OutputOption, SeedOption
from stretto.core.units import format_count

if TYPE_CHECKING:
    from stretto.api.report import WrittenReport

_OF_TRACES = (
    "strategies",
    "backfill",
    "procs",
    "pools",
    "site",
    "rank_by",
    "power",
    "idle_power",
    "carbon",
    "carbon_start",
)


@expanded(
    machine=MACHINE_GROUP,
    policies=(
        PolicyReportOptions,
        {
            "backfill": Annotated[
                str,
                typer.Option(
                    "--backfill",
                    metavar="NAME",
                    help="For a trace: which jobs may pass the head of the queue; see stretto list backfills.",
                    autocompletion=backfill_names,
                ),
            ],
            "rank_by": Annotated[
                str,
                typer.Option(
                    "--rank-by",
                    metavar="FIGURE",
                    help="For a trace: the figure that decides which policy is best, such as p95_wait_s or carbon_kg.",
                ),
            ],
            **ENERGY_OPTIONS,
            "seed": SeedOption,
        },
    ),
)
def report(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|FILE...|TRACE",
            help="Runs of the log (an id, or latest), plans (plan --save), comparisons (compare --output json); or one "
            "trace, to compare policies.",
            show_default=False,
        ),
    ],
    *,
    target: Annotated[
        Path,
        typer.Option("-o", "--file", "--out", metavar="FILE.html", help="The page to write; it is self-contained."),
    ] = Path("report.html"),
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Also write figures (PNG, SVG and PDF) into this directory.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", show_default="from the runs")] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="FILE", help="File of the run log.", show_default="your own")
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="NAME,...",
            help="For a trace: the policies to compare, the present policy first.",
            show_default="fcfs,sjf,saf",
        ),
    ] = None,
    machine: MachineFlags,
    policies: PolicyReportOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write a page about runs, plans and comparisons, or about policies on a trace."""
    from stretto.api.report import trace_meant

    check_target(target)
    trace = trace_meant(sources)
    if trace is None:
        refuse_without(context, "a trace", _OF_TRACES, "runs, plans and comparisons bring their own figures")
        done = _write_runs(sources, target, figures, title, runs)
    else:
        refuse_with(context, "a trace", ("figures", "runs"), "its page is written from replays alone")
        done = _write_policies(str(trace), target, title, strategies, machine, policies)
    _tell(done, target, output)


def _write_runs(
    sources: list[str], target: Path, figures: Path | None, title: str | None, runs: Path | None
) -> WrittenReport:
    from stretto.api import report as write_report
    from stretto.cli.progress import ProgressLine

    with ProgressLine("gathering"):
        return write_report(sources, target, figures=figures, title=title, runs=runs)


def _write_policies(
    source: str,
    target: Path,
    title: str | None,
    strategies: str | None,
    machine: MachineFlags,
    policies: PolicyReportOptions,
) -> WrittenReport:
    from dataclasses import replace

    from stretto.api import report as write_report
    from stretto.cli.progress import ProgressLine, in_background
    from stretto.cli.sources import load_queue, machine_named

    names = None if strategies is None else split_names(strategies, "--strategies")
    trace = load_queue(source)
    place = machine_named(trace, machine)
    typed = replace(policies, command=shlex.join(["stretto", *sys.argv[1:]]))
    with ProgressLine(f"replaying {trace.num_jobs:,} jobs"):
        return in_background(
            lambda: write_report(trace, target, title=title, machine=place, strategies=names, policies=typed)
        )


def _tell(done: WrittenReport, target: Path, output: Output) -> None:
    drawn = [str(path) for path in done.figures]
    if output is Output.JSON:
        more = {} if done.comparison is None else done.comparison.to_json()
        print_json(
            {
                "answer": done.answer,
                "path": str(target),
                "num_runs": done.num_runs,
                "num_bytes": done.num_bytes,
                "figures": drawn,
                **more,
            }
        )
        return
    if output is Output.QUIET:
        print(target)
        return
    print_answer(done.answer)
    if done.comparison is None:
        print(f"wrote {target}: {format_count(done.num_runs, 'run')}, {done.num_bytes / 1e6:.1f} MB")
    else:
        count = len(done.comparison.policies)
        print(f"wrote {target}: {count:,} {'policy' if count == 1 else 'policies'}, {done.num_bytes / 1e6:.2f} MB")
    for path in drawn:
        print(f"wrote {path}")
