"""``stretto report``: runs, plans and comparisons as one offline page, and as figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.cli.checks import check_target
from stretto.cli.console import Output, print_json
from stretto.cli.options import OutputOption
from stretto.core.units import format_count


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|FILE...",
            help="Runs of the log (an id, or latest), plans (plan --save), comparisons (compare --output json).",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path, typer.Option("-o", "--file", metavar="FILE.html", help="The page; it needs nothing else to be read.")
    ] = Path("report.html"),
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Also write PNG, SVG and PDF here.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", show_default="from the runs")] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="FILE", help="The run log.", show_default="your own")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write a page about runs, plans and comparisons that can be kept and passed on."""
    from stretto.api import report as write_report
    from stretto.cli.progress import ProgressLine

    check_target(target)
    with ProgressLine("gathering"):
        done = write_report(sources, target, figures=figures, title=title, runs=runs)
    drawn = [str(path) for path in done.figures]
    if output is Output.JSON:
        print_json({"path": str(target), "num_runs": done.num_runs, "num_bytes": done.num_bytes, "figures": drawn})
    elif output is Output.QUIET:
        print(target)
    else:
        print(f"wrote {target}: {format_count(done.num_runs, 'run')}, {done.num_bytes / 1e6:.1f} MB")
        for path in drawn:
            print(f"wrote {path}")
