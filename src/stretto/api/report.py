"""``stretto.report``: runs, plans and comparisons, or policies on a trace, as one offline page."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.api.inputs import MachineLike, TraceLike, is_trace
from stretto.api.options.policy import PolicyReportOptions
from stretto.api.plan_file import planned_schedule
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.document import read_document
from stretto.files.load import write_atomically
from stretto.reports.page.report import RunReport
from stretto.runlog import RunLog

if TYPE_CHECKING:
    from stretto.reports.queues.outcomes import PolicyComparison


@dataclass(frozen=True)
class WrittenReport:
    """A page that was written, and figures beside it.

    Attributes
    ----------
    answer
        What stands below the title of the page; several answers where the page has several results.
    comparison
        Of a page about policies on a trace: the figures; otherwise None.
    """

    path: Path
    num_runs: int
    num_bytes: int
    figures: tuple[Path, ...] = ()
    answer: str = ""
    comparison: PolicyComparison | None = None


def report(
    sources: Sequence[str | Path] | TraceLike,
    target: str | Path = "report.html",
    *,
    figures: str | Path | None = None,
    title: str | None = None,
    runs: str | Path | None = None,
    machine: MachineLike | None = None,
    strategies: Sequence[str] | str | None = None,
    policies: PolicyReportOptions | None = None,
) -> WrittenReport:
    """Write a page about runs, plans and comparisons, or about policies on a trace, that needs nothing else to be read.

    Parameters
    ----------
    sources
        Runs of the log (an id, or ``latest``), plan files, and comparisons in JSON; or one trace.
    figures
        A folder for the same as PNG, SVG and PDF; not of a trace.
    runs
        The run log, by default your own.
    machine, strategies, policies
        Of a trace: the machine as for :func:`replay`; the policies, the present one first; and how they are compared.

    Examples
    --------
    >>> import json, stretto, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> found = stretto.compare(["workload:fft?num_points=4"], "cpu:2", ["heft", "etf"])
    >>> _ = (folder / "found.json").write_text(json.dumps(found.to_json()))
    >>> stretto.report([folder / "found.json"], folder / "page.html").path.exists()
    True

    What a change of policy would do, for a manager:

    >>> queue = "trace:lublin?num_jobs=300&num_procs=64&load=1.0"
    >>> page = stretto.report(queue, folder / "queue.html", strategies=["fcfs", "saf"])
    >>> page.answer.startswith("saf instead of fcfs would cut the mean wait by")
    True
    """
    path = Path(target)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{path.suffix!r} is not .html", source=str(path), field="-o")
    trace = trace_meant(sources)
    if trace is not None:
        from stretto.api.policy_report import write_policy_report

        if figures is not None or runs is not None:
            raise InvalidInput("has no effect on a trace", field="--figures" if figures is not None else "--runs")
        return write_policy_report(trace, path, machine, strategies, policies or PolicyReportOptions(), title)
    if machine is not None or strategies is not None or policies is not None:
        raise InvalidInput("works only with one trace, such as jobs.swf.gz", field="--strategies")
    found = RunReport()
    assert not isinstance(sources, Trace)
    for source in [sources] if isinstance(sources, (str, Path)) else sources:
        _add(found, str(source), None if runs is None else Path(runs))
    page = found.page(title)
    write_atomically(path, page)
    drawn = found.draw(Path(figures)) if figures is not None else []
    return WrittenReport(path, len(found.views), len(page), tuple(drawn), answer=" ".join(found.all_answers))


def trace_meant(sources: Sequence[str | Path] | TraceLike) -> TraceLike | None:
    """Return the trace where the only source is one; a trace beside other sources is a mistake."""
    if isinstance(sources, Trace):
        return sources
    listed = [sources] if isinstance(sources, (str, Path)) else list(sources)
    traces = [source for source in listed if is_trace(source)]
    if traces and len(listed) > 1:
        raise InvalidInput("a trace has a separate page: omit the other sources", source=str(traces[0]))
    return traces[0] if traces else None


def _add(found: RunReport, source: str, runs: Path | None) -> None:
    """Add whatever a source is: a file by its content, anything else by its name in the log."""
    if not os.path.isfile(source):
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
