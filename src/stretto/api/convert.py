"""``stretto.convert``: read a graph, a trace or a site in one format, write it in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stretto import catalog
from stretto.api.inputs import GraphLike, graph_of, is_site, is_trace, load, load_site, load_trace
from stretto.core.graph import TaskGraph
from stretto.core.notes import graph_notes
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.engines.wfformat_work import with_commands
from stretto.engines.workflow_file import is_workflow, load_workflow
from stretto.errors import InvalidInput
from stretto.files.load import format_for, save


@dataclass(frozen=True, eq=False)
class Converted:
    """What was written, with what its new format cannot hold and what was noticed when it was read.

    Attributes
    ----------
    graph, trace, site
        What was read; one of them, the others are None.
    """

    graph: TaskGraph | Workload | None
    lost: tuple[str, ...]
    notes: tuple[str, ...]
    trace: Trace | None = None
    site: Site | None = None


def convert(
    source: GraphLike | Trace | Site,
    target: str | Path,
    *,
    format: str | None = None,
    from_format: str | None = None,
    dims: Mapping[str, int] | None = None,
) -> Converted:
    """Convert a graph, a trace or a site from any readable format to a writable one.

    A graph that is written in a format of traces becomes jobs that wait for each other.

    Parameters
    ----------
    format, from_format
        Of the output, by default by its ending, and of the input, by default recognised by content.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> stretto.convert("workload:fft?num_points=4", folder / "fft.dot").graph.num_tasks > 0
    True
    >>> stretto.convert("trace:lublin?num_jobs=9&num_procs=8", folder / "jobs.swf").trace.num_jobs
    9
    """
    if isinstance(source, Site) or from_format in catalog.SITES or (from_format is None and is_site(source)):
        _refuse(dims, "a site")
        return _convert_site(source if isinstance(source, Site) else str(source), target, from_format)
    if _means_trace(source, str(target), format, from_format):
        _refuse(dims, "a trace")
        assert not isinstance(source, (TaskGraph, Workload))
        return _convert_trace(source if isinstance(source, Trace) else str(source), target, format, from_format)
    assert not isinstance(source, Trace)
    is_file = isinstance(source, (str, Path))
    graph = load(str(source), format=from_format, dims=dims) if is_file else graph_of(source)
    if isinstance(graph, Workload) and len(graph) == 1:
        graph = graph.jobs[0].graph  # a file that could hold several but holds one
    graphs = [job.graph for job in graph.jobs] if isinstance(graph, Workload) else [graph]
    notes = tuple(dict.fromkeys(note for one in graphs for note in graph_notes(one)))
    lost: tuple[str, ...] = ()
    if is_file and is_workflow(str(source)):
        lost = ("the commands of the tasks",)
        if format_for(target, format) == "wfformat":
            graph = with_commands(load_workflow(str(source)), Path(target).parent)
            lost = ("retries, timeouts, variables and files of the commands",)
    return Converted(graph, (*lost, *save(graph, target, format=format)), notes)


def _refuse(dims: Mapping[str, int] | None, what: str) -> None:
    if dims:
        raise InvalidInput(f"has no effect on {what}: only ONNX models have open dimensions", field="dims")


def _means_trace(source: object, target: str, format: str | None, from_format: str | None) -> bool:
    """Say whether jobs of a queue are meant: by the input, or by the format of the output."""
    from stretto.files.traces.load import writes_traces

    if isinstance(source, (TaskGraph, Workload)):
        return False
    if isinstance(source, Trace) or from_format in catalog.TRACES or format in catalog.TRACES:
        return True
    if from_format is not None or format is not None:
        return False
    return is_trace(source) or writes_traces(target)


def _convert_trace(source: Trace | str, target: str | Path, format: str | None, from_format: str | None) -> Converted:
    from stretto.core.results.trace_facts import trace_facts
    from stretto.files.traces.load import save_trace

    trace = source if isinstance(source, Trace) else load_trace(source, format=from_format)
    facts = trace_facts(trace)
    skipped = [
        f"left out {part.num_rows:,} rows, the first at line {part.line}: {part.reason}" for part in facts.skipped
    ]
    lost = save_trace(trace, target, format=format)
    return Converted(None, tuple(lost), (*skipped, *facts.notes), trace=trace)


def _convert_site(source: Site | str, target: str | Path, from_format: str | None) -> Converted:
    from stretto.files.clusters.load_site import save_site

    site = source if isinstance(source, Site) else load_site(source, format=from_format)
    save_site(site, target)
    return Converted(None, (), site.notes, site=site)
