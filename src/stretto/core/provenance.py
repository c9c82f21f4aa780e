"""Where the durations of a graph come from: measured, recorded, estimated or assumed.

Readers keep the answer in ``TaskGraph.meta["durations"]``, as a label and, in brackets, by what:

- ``measured``: timed on purpose, for planning;
- ``recorded``: what the tasks of a real run took;
- ``estimated (by what)``: somebody's or some program's estimate for these tasks;
- ``assumed (by what)``: from general figures, or a default, without knowledge of these tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.core.graph import TaskGraph

#: Keys of ``TaskGraph.meta``.
DURATIONS = "durations"
OPEN_DIMS = "open_dims"
ARGUMENT_BYTES = "argument_bytes"
OBJECTS = "objects"
MACHINES = "machines"
MEMORY_IGNORED = "memory_ignored"

LABELS = ("measured", "recorded", "estimated", "assumed")
MEASURED, RECORDED = "measured", "recorded"
ROOFLINE = "assumed (roofline, typical CPU and GPU)"
GENERATED = "assumed (by the generator)"
AS_GIVEN = "as given"
IN_MEMORY = "memory"


def duration_basis(graph: TaskGraph) -> str:
    """Return where the durations of a graph come from; ``as given`` where its source does not say."""
    found = graph.meta.get(DURATIONS)
    return found if isinstance(found, str) and found.startswith(LABELS) else AS_GIVEN


def open_dims(graph: TaskGraph) -> dict[str, int]:
    """Return the dimensions that the source leaves open, with the values that were taken."""
    found = graph.meta.get(OPEN_DIMS)
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def are_objects_in_memory(graph: TaskGraph) -> bool:
    """Say whether the objects of a graph fill the memory of nodes, or are files, which lie on disk.

    They are in memory where the graph says so (``meta["objects"] = "memory"``) or keeps bytes resident, as models do.
    """
    return graph.meta.get(OBJECTS) == IN_MEMORY or graph.resident_bytes is not None or graph.weights is not None


def merged_meta(graphs: Sequence[TaskGraph]) -> dict[str, object]:
    """Return what several graphs that become one have to say of where they come from."""
    meta: dict[str, object] = {}
    bases = list(dict.fromkeys(duration_basis(graph) for graph in graphs))
    labels = {basis.partition(" ")[0] for basis in bases}
    if len(bases) == 1:
        meta[DURATIONS] = bases[0]
    elif len(labels) == 1 or "assumed" in labels:
        meta[DURATIONS] = "; ".join(sorted(bases))  # "assumed ..." comes first
    dims = {name: value for graph in graphs for name, value in open_dims(graph).items()}
    if any(are_objects_in_memory(graph) for graph in graphs):
        meta[OBJECTS] = IN_MEMORY
    return meta | ({OPEN_DIMS: dims} if dims else {})
