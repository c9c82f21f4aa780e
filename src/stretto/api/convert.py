"""``stretto.convert``: read a graph in one format, write it in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stretto.api.inputs import GraphLike, graph_of, load
from stretto.core.graph import TaskGraph
from stretto.core.notes import graph_notes
from stretto.core.workload import Workload
from stretto.files.load import save


@dataclass(frozen=True, eq=False)
class Converted:
    """A graph that was written, with what its new format cannot hold and what was assumed when it was read."""

    graph: TaskGraph | Workload
    lost: tuple[str, ...]
    notes: tuple[str, ...]


def convert(
    source: GraphLike,
    target: str | Path,
    *,
    format: str | None = None,
    from_format: str | None = None,
    dims: Mapping[str, int] | None = None,
) -> Converted:
    """Convert a graph from any readable format to a writable one.

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
    """
    is_file = isinstance(source, (str, Path))
    graph = load(str(source), format=from_format, dims=dims) if is_file else graph_of(source)
    if isinstance(graph, Workload) and len(graph) == 1:
        graph = graph.jobs[0].graph  # a file that could hold several but holds one
    graphs = [job.graph for job in graph.jobs] if isinstance(graph, Workload) else [graph]
    notes = tuple(dict.fromkeys(note for one in graphs for note in graph_notes(one)))
    return Converted(graph, tuple(save(graph, target, format=format)), notes)
