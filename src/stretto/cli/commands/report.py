"""``stretto report``: runs, plans and comparisons as one offline page, and as figures."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.files import check_target
from stretto.cli.options import OutputOption
from stretto.cli.terminal.console import Output, print_json
from stretto.core.units import format_count
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.reports.sources import Report


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
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.files.load import write_atomically
    from stretto.reports.sources import Report

    check_target(target)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{target.suffix!r} is not .html", source=str(target), field="-o")
    found = Report()
    with ProgressLine("gathering"):
        for source in sources:
            _add(found, source, runs)
        page = found.page(title)
        write_atomically(target, page)
        drawn = found.draw(figures) if figures is not None else []
    written = [str(target), *(str(path) for path in drawn)]
    if output is Output.JSON:
        print_json({"path": str(target), "num_runs": len(found.views), "num_bytes": len(page), "figures": written[1:]})
    elif output is Output.QUIET:
        print(target)
    else:
        num_runs = len(found.views)
        print(f"wrote {target}: {format_count(num_runs, 'run')}, {len(page) / 1e6:.1f} MB")
        for path in written[1:]:
            print(f"wrote {path}")


def _add(found: Report, source: str, runs: Path | None) -> None:
    """Add whatever a source is: a file by its content, anything else by its name in the log."""
    from stretto.runlog import RunLog

    if not Path(source).is_file():
        if "/" in source or source.lower().endswith(".json"):
            raise InvalidInput("there is no such file", source=source)
        with RunLog.open(runs) as log:
            found.add_run(log, source)
        return
    document = _document(source)
    if document.get("format") == "stretto-plan":
        _add_plan(found, Path(source))
    else:
        found.add_comparison(document, source)


def _document(source: str) -> dict[str, Any]:
    from stretto.files.document import read_document

    content = read_document(source).json
    if not isinstance(content, dict):
        raise InvalidInput("is neither a plan nor a comparison", source=source)
    return content


def _add_plan(found: Report, path: Path) -> None:
    from stretto.cli.plan_file import load_plan, recorded_contention
    from stretto.graphs.evaluate import Setting

    problem, plan, document = load_plan(path, None, None)
    schedule = Setting(contention=recorded_contention(document)).run(problem, plan, record_transfers=True)
    words = ["stretto", "simulate", str(path)]
    found.add_plan(str(path), problem, plan, schedule, document, shlex.join(words))
