"""Live Dask collections: the tasks that computing them would run."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS
from stretto.errors import InvalidInput, MissingExtra

#: A node of a Dask graph: a task, an alias, a tuple with a function, or data.
DaskNode: TypeAlias = Any
#: About what Dask's own scheduler spends on a task; a placeholder until durations are given.
DEFAULT_DURATION_S = 1e-3
Sizer = Callable[[Hashable], float | None]


def from_dask(
    collection: DaskNode,
    *,
    durations: Mapping[Hashable, float] | None = None,
    sizes: Mapping[Hashable, float] | None = None,
    optimize: bool = True,
    default_duration_s: float = DEFAULT_DURATION_S,
    name: str = "dask",
) -> TaskGraph:
    """Return the task graph of a Dask collection, of several, or of a graph as a dict.

    Data that is already in the graph is no task, and aliases are followed to what they name.
    A task's category is the prefix of its key, such as ``sum`` for ``('sum-a1b2', 0, 0)``.

    Parameters
    ----------
    collection
        An array, bag, data frame or delayed value, a list of them, or a dict of tasks.
    durations, sizes
        Seconds of a task and bytes of its result, by key, by the key's text, or by its prefix.
    optimize
        Whether to fuse and cull the graph first, as ``compute`` would; a dict is taken as it is.
    default_duration_s
        For tasks without an entry in ``durations``.

    Notes
    -----
    Array chunks know their bytes, though for a selection and the first stage of a reduction
    Dask still states those of the chunk before it, an upper bound. Results of which nothing is known are pure
    precedences, counted in ``meta["num_unknown_sizes"]``.
    """
    try:
        import dask
    except ImportError:
        raise MissingExtra("dask", "dask", "reading Dask graphs") from None
    if isinstance(collection, Mapping):
        nodes, known = _nodes(collection), _chunk_sizes([])
    else:
        collections = list(collection) if isinstance(collection, (list, tuple)) else [collection]
        for item in collections:
            if not dask.is_dask_collection(item):
                raise InvalidInput(f"{type(item).__name__} is not a Dask collection", field="collection")
        known = _chunk_sizes(collections)
        ready = dask.optimize(*collections) if optimize else collections
        nodes = {}
        for item in ready:
            nodes |= _nodes(item.__dask_graph__())
    return _build(nodes, _Estimates(durations or {}, sizes or {}, default_duration_s, known), name)


@dataclass(frozen=True)
class _Estimates:
    durations: Mapping[Hashable, float]
    sizes: Mapping[Hashable, float]
    default_duration_s: float
    known_size: Sizer

    def duration_s(self, key: Hashable) -> float:
        found = _lookup(self.durations, key)
        return self.default_duration_s if found is None else found

    def states_duration(self, key: Hashable) -> bool:
        """Say whether somebody gave the duration of a task."""
        return _lookup(self.durations, key) is not None

    def size_bytes(self, keys: Iterable[Hashable]) -> float | None:
        """Return the size under the first of a result's names that has one."""
        for source in (lambda key: _lookup(self.sizes, key), self.known_size):
            for key in keys:
                size = source(key)
                if size is not None:
                    return size
        return None


def _prefix(key: Hashable) -> str:
    from dask.utils import key_split

    return str(key_split(key))


def _lookup(table: Mapping[Hashable, float], key: Hashable) -> float | None:
    for candidate in (key, str(key), _prefix(key)):
        if candidate in table:
            return float(table[candidate])
    return None


def _nodes(graph: Mapping[Hashable, DaskNode]) -> dict[Hashable, DaskNode]:
    """Return the graph with every task in Dask's own task class, whatever it was written in."""
    from dask._task_spec import convert_legacy_graph

    try:
        return dict(convert_legacy_graph(dict(graph)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"not a Dask graph: {error}", field="graph") from None


def _build(nodes: Mapping[Hashable, DaskNode], estimates: _Estimates, name: str) -> TaskGraph:
    build = GraphBuilder(name)
    target = {key: _resolve(nodes, key) for key in nodes}
    aliases: dict[Hashable, list[Hashable]] = {}
    for key, final in target.items():
        aliases.setdefault(final, []).append(key)
    tasks: dict[Hashable, int] = {}
    handles: dict[Hashable, int] = {}
    num_unknown = 0
    for key, node in nodes.items():
        if target[key] != key or _is_data(node):
            continue
        text = str(key)
        task = build.task(
            text if text not in build else f"{text}#{build.num_tasks}",
            estimates.duration_s(key),
            category=_prefix(key),
        )
        size = estimates.size_bytes([key, *aliases[key]])
        num_unknown += size is None
        tasks[key], handles[key] = task, build.object(task, size or 0.0)
    for key, task in tasks.items():
        for needed in nodes[key].dependencies:
            source = target.get(needed)
            if source in handles:
                build.read(task, handles[source])
            elif needed not in nodes:
                raise InvalidInput(f"the graph has no key {needed!r}", field=f"task {key!r}")
    silent = sum(not estimates.states_duration(key) for key in tasks)
    if silent:
        build.meta[DURATIONS] = f"assumed ({estimates.default_duration_s:g} s for {silent} of {len(tasks)} tasks)"
    build.meta |= {"num_unknown_sizes": num_unknown, "num_data": sum(_is_data(node) for node in nodes.values())}
    return build.graph()


def _is_data(node: DaskNode) -> bool:
    from dask._task_spec import DataNode

    return isinstance(node, DataNode)


def _resolve(nodes: Mapping[Hashable, DaskNode], key: Hashable) -> Hashable:
    """Follow aliases to the key that does the work."""
    from dask._task_spec import Alias

    seen = {key}
    while isinstance(nodes.get(key), Alias):
        key = nodes[key].target
        if key in seen:
            raise InvalidInput("the graph has a cycle of aliases", field=f"task {key!r}")
        seen.add(key)
    return key


def _chunk_sizes(collections: Iterable[DaskNode]) -> Sizer:
    """Return the bytes of array chunks by key, for all arrays of the graphs, not only the last."""
    arrays: dict[str, tuple[tuple[tuple[float, ...], ...], float]] = {}
    for collection in collections:
        for layer_name, layer in getattr(collection.__dask_graph__(), "layers", {}).items():
            notes = getattr(layer, "collection_annotations", None) or {}
            item_bytes = getattr(notes.get("dtype"), "itemsize", None)
            if item_bytes and notes.get("chunks") is not None:
                arrays[layer_name] = (notes["chunks"], float(item_bytes))

    def size(key: Hashable) -> float | None:
        if not isinstance(key, tuple) or not key or key[0] not in arrays:
            return None
        chunks, item_bytes = arrays[key[0]]
        if len(key) - 1 != len(chunks):
            return None
        num = math.prod((float(sizes[index]) for sizes, index in zip(chunks, key[1:], strict=True)), start=1.0)
        return num * item_bytes if math.isfinite(num) else None  # NaN: a length that Dask does not know

    return size
