"""Stretto's own JSON: a graph or a workload, without loss, one array per column.

``{"format": "stretto-graph", "version": 1, "work_s": [...], "read_task": [...], ...}`` holds the
fields of :class:`TaskGraph`; a workload is ``{"format": "stretto-workload", "version": 1, "name":
..., "jobs": [{"arrival_s": 0, "graph": {...}}]}``. An infinite duration is ``null``. Columns that
say nothing are left out; keys that nobody knows are errors.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import NoReturn, TypeVar

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import Weights
from stretto.core.graph import Resources, TaskGraph
from stretto.core.workload import Job, Workload
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.files.sniff import graph_name, json_object

VERSION = 1
GRAPH, WORKLOAD = "stretto-graph", "stretto-workload"
_INT_COLUMNS = ("object_task", "read_task", "read_object")
_OPTIONAL_FLOATS = ("cores", "memory_bytes", "resident_bytes", "gpus")
_GRAPH_KEYS = {
    *("name", "work_s", "object_size", "task_names", "kinds", "kind_duration_s", "categories", "category"),
    *("transfer_unit", "resources", "other_needs", "meta", "weights"),
    *_INT_COLUMNS,
    *_OPTIONAL_FLOATS,
}
_HEADER = {"format", "version"}
_MAX_INT = 2**31 - 1

T = TypeVar("T")
Json = dict[str, object]


class Native:
    """Reads and writes graphs and workloads."""

    summary = "Stretto's own JSON, lossless: a graph, or a workload with arrivals"
    endings = ("stretto.json", "json")

    def matches(self, document: Document) -> bool:
        root = json_object(document)
        return root is not None and root.get("format") in (GRAPH, WORKLOAD)

    def read(self, document: Document) -> TaskGraph | Workload:
        root = document.json
        if not isinstance(root, dict) or root.get("format") not in (GRAPH, WORKLOAD):
            document.fail(f'expected an object with "format": "{GRAPH}" or "{WORKLOAD}"', field="format")
        if root.get("version") != VERSION:
            document.fail(f"version {root.get('version')!r} is not {VERSION}", field="version")
        if root["format"] == GRAPH:
            return _graph(_Columns(document, root, "", _GRAPH_KEYS | _HEADER), graph_name(document))
        return _workload(document, root)

    def write(self, graph: TaskGraph | Workload) -> bytes:
        if isinstance(graph, TaskGraph):
            body: Json = {"format": GRAPH, "version": VERSION, **_graph_json(graph)}
        else:
            jobs = [{"arrival_s": job.arrival_s, "graph": _graph_json(job.graph)} for job in graph.jobs]
            body = {"format": WORKLOAD, "version": VERSION, "name": graph.name, "jobs": jobs}
        try:
            return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the meta data is not JSON: {error}", field="meta") from None


def _workload(document: Document, root: Json) -> Workload:
    _known(document, root, {*_HEADER, "name", "jobs"}, "")
    entries = root.get("jobs")
    if not isinstance(entries, list):
        document.fail("expected a list of jobs", field="jobs")
    jobs = []
    for number, entry in enumerate(entries):
        place = f"jobs[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("graph"), dict):
            document.fail("expected an object with a graph", field=place)
        _known(document, entry, {"arrival_s", "graph"}, place)
        arrival_s = document.number(entry.get("arrival_s", 0.0), f"{place}.arrival_s")
        graph = _graph(_Columns(document, entry["graph"], f"{place}.graph.", _GRAPH_KEYS), f"job{number}")
        jobs.append(Job(graph, arrival_s))
    name = root.get("name", graph_name(document))
    if not isinstance(name, str):
        document.fail(f"{name!r} is not a name", field="name")
    return Workload(name, tuple(jobs))


class _Columns:
    """The columns of one JSON object; ``prefix`` is where it stands, for messages."""

    def __init__(self, document: Document, body: Json, prefix: str, known: set[str]) -> None:
        self.document = document
        self.body = body
        self.prefix = prefix
        _known(document, body, known, prefix.rstrip("."))

    def fail(self, message: str, key: str) -> NoReturn:
        self.document.fail(message, field=self.prefix + key)

    def needed(self, key: str) -> object:
        if key not in self.body:
            self.fail("this key is missing", key)
        return self.body[key]

    def floats(self, key: str, value: object) -> Floats:
        """Return a column of numbers; null is infinity."""
        items = self.items(key, value, (int, float, type(None)), "a number")
        if None in items:
            items = [math.inf if item is None else item for item in items]
        try:
            return np.array(items, dtype=np.float64)
        except OverflowError:
            self.fail("a number is too large", key)

    def optional(self, key: str) -> Floats | None:
        return self.floats(key, self.body[key]) if key in self.body else None

    def ints(self, key: str, value: object) -> Ints:
        """Return a column of whole numbers from zero on."""
        items = self.items(key, value, (int,), "a whole number")
        if items and (min(items) < 0 or max(items) > _MAX_INT):
            bad = next(place for place, item in enumerate(items) if not 0 <= item <= _MAX_INT)
            self.fail(f"item {bad} is {str(items[bad])[:60]}; expected 0 to {_MAX_INT}", key)
        return np.array(items, dtype=np.int32)

    def items(self, key: str, value: object, allowed: tuple[type[T], ...], what: str) -> list[T]:
        """Return a list whose items have one of the types exactly; quick on long lists."""
        if not isinstance(value, list):
            self.fail(f"{str(value)[:60]!r} is not a list", key)
        if not set(map(type, value)) <= set(allowed):
            bad = next(place for place, item in enumerate(value) if type(item) not in allowed)
            self.fail(f"item {bad} is {str(value[bad])[:60]!r}, not {what}", key)
        return value

    def columns(self, key: str, num_columns: int, num_rows: int) -> list[object]:
        """Return the lists of a table that is stored by column."""
        lists = self.needed(key)
        if not isinstance(lists, list) or len(lists) != num_columns:
            self.fail(f"expected {num_columns} columns", key)
        if any(not isinstance(column, list) or len(column) != num_rows for column in lists):
            self.fail(f"expected {num_rows} rows in each column", key)
        return lists

    def names(self, key: str) -> tuple[str, ...] | None:
        value = self.body.get(key)
        if value is None:
            return None
        names = self.items(key, value, (str,), "a name")
        if len(set(names)) != len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            self.fail(f"the name {twice!r} appears twice", key)
        return tuple(names)


def _graph(read: _Columns, default_name: str) -> TaskGraph:
    body = read.body
    kinds = read.names("kinds") or ()
    work = read.floats("work_s", read.needed("work_s"))
    unit = body.get("transfer_unit", "bytes")
    if unit not in ("bytes", "seconds"):
        read.fail(f"{str(unit)[:60]!r} is neither bytes nor seconds", "transfer_unit")
    name: object = body.get("name", default_name)
    meta: object = body.get("meta", {})
    if not isinstance(name, str):
        read.fail(f"{str(name)[:60]!r} is not a name", "name")
    if not isinstance(meta, dict):
        read.fail(f"{str(meta)[:60]!r} is not an object", "meta")
    producer = read.ints("object_task", body.get("object_task", []))
    size = read.floats("object_size", body.get("object_size", []))
    if len(size) != len(producer):
        read.fail(f"{len(size)} sizes for {len(producer)} objects", "object_size")
    category, categories = _categories(read, len(work))
    try:
        return TaskGraph(
            name=name,
            work_s=work,
            object_task=producer,
            object_size=size,
            read_task=read.ints("read_task", body.get("read_task", [])),
            read_object=read.ints("read_object", body.get("read_object", [])),
            task_names=read.names("task_names"),
            kinds=kinds,
            kind_duration_s=_durations(read, kinds, len(work)),
            cores=read.optional("cores"),
            memory_bytes=read.optional("memory_bytes"),
            resident_bytes=read.optional("resident_bytes"),
            gpus=read.optional("gpus"),
            other_needs=_other_needs(read),
            categories=categories,
            category=category,
            transfer_unit=unit,
            resources=_resources(read, len(work)),
            meta=meta,
            weights=_weights(read),
        )
    except InvalidInput as error:
        field = error.field if error.source is not None else f"{read.prefix}{error.field or 'graph'}"
        raise InvalidInput(error.message, source=read.document.name, field=field) from None


def _other_needs(read: _Columns) -> dict[str, Floats]:
    """Return what tasks need of named resources, one column per name."""
    table = read.body.get("other_needs", {})
    if not isinstance(table, dict):
        read.fail(f"{str(table)[:60]!r} is not an object", "other_needs")
    return {name: read.floats(f"other_needs.{name}", column) for name, column in table.items()}


def _weights(read: _Columns) -> Weights | None:
    """Return the weights that tasks share: sizes, and pairs of a task and a weight."""
    body = read.body.get("weights")
    if body is None:
        return None
    if not isinstance(body, dict):
        read.fail(f"{str(body)[:60]!r} is not an object", "weights")
    inner = _Columns(read.document, body, f"{read.prefix}weights.", {"size_bytes", "task", "item"})
    size = inner.floats("size_bytes", inner.needed("size_bytes"))
    return Weights(size, *(inner.ints(key, inner.needed(key)) for key in ("task", "item")))


def _durations(read: _Columns, kinds: tuple[str, ...], num_tasks: int) -> Floats | None:
    """Return seconds by task and kind, from one column per kind."""
    if ("kind_duration_s" in read.body) != bool(kinds):
        read.fail("kinds and kind_duration_s go together", "kind_duration_s")
    if not kinds:
        return None
    lists = read.columns("kind_duration_s", len(kinds), num_tasks)
    return np.ascontiguousarray(np.stack([read.floats("kind_duration_s", column) for column in lists], axis=1))


def _categories(read: _Columns, num_tasks: int) -> tuple[Ints | None, tuple[str, ...]]:
    names = read.names("categories") or ()
    if "category" not in read.body:
        return None, names
    category = read.ints("category", read.body["category"])
    if len(category) != num_tasks:
        read.fail(f"{len(category)} categories for {num_tasks} tasks", "category")
    if num_tasks and int(category.max()) >= len(names):
        read.fail(f"{int(category.max())} is not below {len(names)}", "category")
    return category, names


def _resources(read: _Columns, num_tasks: int) -> Resources | None:
    body = read.body.get("resources")
    if body is None:
        return None
    if not isinstance(body, dict):
        read.fail(f"{str(body)[:60]!r} is not an object", "resources")
    inner = _Columns(read.document, body, f"{read.prefix}resources.", {"names", "capacity", "demand"})
    names = inner.names("names") or ()
    capacity = inner.ints("capacity", inner.needed("capacity"))
    if len(capacity) != len(names):
        inner.fail(f"{len(capacity)} capacities for {len(names)} resources", "capacity")
    # Column by column, so that no table is larger than what the file holds.
    demand = [inner.ints("demand", column) for column in inner.columns("demand", len(names), num_tasks)]
    table = np.stack(demand, axis=1) if demand else np.zeros((num_tasks, 0), dtype=np.int32)
    return Resources(names, capacity, np.ascontiguousarray(table))


def _known(document: Document, body: Json, known: set[str], place: str) -> None:
    for key in body:
        if key not in known:
            document.fail(str(UnknownName("key", key, known)), field=f"{place}.{key}" if place else key)


def _graph_json(graph: TaskGraph) -> Json:
    body: Json = {
        "name": graph.name,
        "work_s": _numbers(graph.work_s),
        "object_task": graph.object_task.tolist(),
        "object_size": _numbers(graph.object_size),
        "read_task": graph.read_task.tolist(),
        "read_object": graph.read_object.tolist(),
        "transfer_unit": graph.transfer_unit,
    }
    if graph.task_names is not None:
        body["task_names"] = list(graph.task_names)
    if graph.kind_duration_s is not None:
        body["kinds"] = list(graph.kinds)
        body["kind_duration_s"] = [_numbers(column) for column in graph.kind_duration_s.T]
    for key in _OPTIONAL_FLOATS:
        column = getattr(graph, key)
        if column is not None:
            body[key] = _numbers(column)
    if graph.other_needs:
        body["other_needs"] = {name: _numbers(column) for name, column in graph.other_needs.items()}
    if graph.categories:
        body["categories"] = list(graph.categories)
    if graph.category is not None:
        body["category"] = graph.category.tolist()
    if graph.resources is not None:
        body["resources"] = {
            "names": list(graph.resources.names),
            "capacity": graph.resources.capacity.tolist(),
            "demand": graph.resources.demand.T.tolist(),
        }
    if graph.weights is not None:
        body["weights"] = {
            "size_bytes": _numbers(graph.weights.size_bytes),
            "task": graph.weights.task.tolist(),
            "item": graph.weights.item.tolist(),
        }
    if graph.meta:
        body["meta"] = dict(graph.meta)
    return body


def _numbers(values: Floats) -> list[float | None]:
    """Return the values as JSON numbers, whole ones without a fraction, infinity as null."""
    numbers: list[float | None] = values.tolist()
    if bool(np.all(values == np.floor(values))) and bool(np.all(values < 2**53)):
        return values.astype(np.int64).tolist()  # type: ignore[no-any-return]
    if bool(np.all(np.isfinite(values))):
        return numbers
    return [None if number == math.inf else number for number in numbers]


FORMAT = Native()
