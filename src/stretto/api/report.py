"""``stretto.report``: runs, plans and comparisons as one offline page, and as figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.api.plan_file import planned_schedule
from stretto.errors import InvalidInput
from stretto.files.document import read_document
from stretto.files.load import write_atomically
from stretto.reports.page.report import RunReport
from stretto.runlog import RunLog


@dataclass(frozen=True)
class WrittenReport:
    """A page that was written, and figures beside it."""

    path: Path
    num_runs: int
    num_bytes: int
    figures: tuple[Path, ...] = ()


def report(
    sources: Sequence[str | Path],
    target: str | Path = "report.html",
    *,
    figures: str | Path | None = None,
    title: str | None = None,
    runs: str | Path | None = None,
) -> WrittenReport:
    """Write a page about runs, plans and comparisons that needs nothing else to be read.

    Parameters
    ----------
    sources
        Runs of the log (an id, or ``latest``), plan files, and comparisons in JSON.
    figures
        A folder for the same as PNG, SVG and PDF.
    runs
        The run log, by default your own.

    Examples
    --------
    >>> import json, stretto, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> found = stretto.compare(["workload:fft?num_points=4"], "cpu:2", ["heft", "etf"])
    >>> _ = (folder / "found.json").write_text(json.dumps(found.to_json()))
    >>> stretto.report([folder / "found.json"], folder / "page.html").path.exists()
    True
    """
    path = Path(target)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{path.suffix!r} is not .html", source=str(path), field="-o")
    found = RunReport()
    for source in sources:
        _add(found, str(source), None if runs is None else Path(runs))
    page = found.page(title)
    write_atomically(path, page)
    drawn = found.draw(Path(figures)) if figures is not None else []
    return WrittenReport(path, len(found.views), len(page), tuple(drawn))


def _add(found: RunReport, source: str, runs: Path | None) -> None:
    """Add whatever a source is: a file by its content, anything else by its name in the log."""
    if not Path(source).is_file():
        if "/" in source or source.lower().endswith(".json"):
            raise InvalidInput("there is no such file", source=source)
        with RunLog.open(runs) as log:
            found.add_run(log, source)
        return
    document = _document(source)
    if document.get("format") == "stretto-plan":
        problem, plan, schedule, recorded = planned_schedule(Path(source), record_transfers=True)
        command = shlex.join(["stretto", "simulate", source])
        found.add_plan(source, problem, plan, schedule, recorded, command)
    else:
        found.add_comparison(document, source)


def _document(source: str) -> dict[str, Any]:
    content = read_document(source).json
    if not isinstance(content, dict):
        raise InvalidInput("is neither a plan nor a comparison", source=source)
    return content
