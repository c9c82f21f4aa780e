"""Make a graph of the named library, with its keywords checked by name."""

from __future__ import annotations

import inspect

from stretto import catalog, registry
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, GENERATED
from stretto.errors import InvalidInput, UnknownName


def generate(name: str, **params: object) -> TaskGraph:
    """Make the graph that the catalog calls ``name``.

    Examples
    --------
    >>> generate("cholesky", num_tiles=4).num_tasks
    20
    """
    function = registry.lookup("workload", name, catalog.WORKLOADS)
    known = inspect.signature(function).parameters
    for key in params:
        if key not in known:
            raise UnknownName(f"parameter of workload {name!r}:", key, known)
    try:
        graph = function(**params)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(str(error), field=f"workload {name}") from error
    assert isinstance(graph, TaskGraph)
    return graph if DURATIONS in graph.meta else graph.with_meta(**{DURATIONS: GENERATED})
