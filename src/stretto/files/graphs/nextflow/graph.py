"""A Nextflow run as a task graph: measured CPUs, peak memory and run time of its trace, and edges from beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.nextflow.edges import TaskEdges, edges_of_dag, edges_of_wfformat, edges_of_work, find_work
from stretto.files.graphs.nextflow.trace import TraceRow, header_of, read_trace_rows
from stretto.files.sniff import graph_name

#: Key of ``TaskGraph.meta`` with where the edges come from.
EDGES = "edges"


class NextflowTrace:
    """Reads a trace that has its work directory beside it."""

    summary = "Nextflow execution trace, with its work directory beside it (otherwise: stretto nextflow)"
    endings = ("trace.txt", "trace.tsv")

    def matches(self, document: Document) -> bool:
        return header_of(document) is not None

    def read(self, document: Document) -> TaskGraph:
        return nextflow_graph(document)


def nextflow_graph(document: Document, *, work: Path | None = None, dag: Path | None = None) -> TaskGraph:
    """Join a trace with a work directory or with a file of its graph.

    Parameters
    ----------
    work
        The work directory; by default the one that the trace names, or one beside it.
    dag
        A WfFormat file of the run, or the process graph of ``-with-dag`` (DOT or Mermaid), from which edges between
        tasks are assumed.
    """
    if work is not None and dag is not None:
        raise InvalidInput("name either the work directory or a graph, not both", source=document.name)
    rows = final_rows(document, read_trace_rows(document))
    edges = _edges(document, rows, work, dag)
    return _graph(document, rows, edges)


def final_rows(document: Document, rows: list[TraceRow]) -> list[TraceRow]:
    """Return the attempts that finished, the last one of each task."""
    last = {(row.process, row.name, row.hash): row for row in rows if row.is_finished}
    if not last:
        document.fail("no task has finished (status COMPLETED or CACHED)")
    return list(last.values())


def _edges(document: Document, rows: list[TraceRow], work: Path | None, dag: Path | None) -> TaskEdges:
    if dag is not None:
        return _edges_of_file(read_document(dag), rows)
    found = work or find_work(Path(document.name), rows)
    if found is None:
        document.fail(
            "a trace has no edges, and no work directory with its tasks is beside it: name one, or a graph, with"
            f"  stretto nextflow {document.name} --work DIR  or  --dag FILE"
        )
    return edges_of_work(found, rows)


def _edges_of_file(document: Document, rows: list[TraceRow]) -> TaskEdges:
    from stretto.files.graphs.wfformat import FORMAT as WFFORMAT

    if WFFORMAT.matches(document):
        return edges_of_wfformat(WFFORMAT.read(document), rows, document.name)
    return edges_of_dag(document, rows)


def _graph(document: Document, rows: list[TraceRow], edges: TaskEdges) -> TaskGraph:
    build = GraphBuilder(graph_name(document))
    taken = Counter(row.name for row in rows)
    silent = 0
    for row in rows:
        seconds = row.realtime_s if row.realtime_s is not None else row.duration_s
        silent += seconds is None
        build.task(
            row.name if taken[row.name] == 1 else f"{row.name} [{row.hash}]",
            seconds or 0.0,
            cores=row.cpus or 0.0,
            memory_bytes=row.peak_rss_bytes or 0.0,
            category=row.process,
        )
    _check_order(document, rows, edges)
    for (parent, child), size in edges.size.items():
        build.edge(parent, child, size)
    build.meta.update(format="nextflow", num_attempts=len(rows))
    build.meta[EDGES] = edges.basis
    build.meta[DURATIONS] = RECORDED if not silent else f"assumed (0 s for {silent} of {len(rows)} tasks: no realtime)"
    if edges.basis.startswith("assumed") and not silent:
        build.meta[DURATIONS] = f"{edges.basis[:-1]}; durations recorded)"
    return build.graph()


def _check_order(document: Document, rows: list[TraceRow], edges: TaskEdges) -> None:
    """Find a task that began before one that it needs had ended: then trace and edges are of different runs."""
    for parent, child in edges.size:
        ended, begun = rows[parent].complete_s, rows[child].start_s
        if ended is not None and begun is not None and begun < ended - 1.0 and rows[parent].status == "COMPLETED":
            document.fail(
                f"the task began {ended - begun:.0f} s before {rows[parent].name!r}, whose files it uses, was complete:"
                " are trace and work directory of one run?",
                line=rows[child].line,
                field=rows[child].name,
            )


FORMAT = NextflowTrace()
