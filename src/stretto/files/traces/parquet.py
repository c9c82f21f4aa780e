"""Traces as Parquet: one column per column, the rest as JSON in the file's metadata.

Nothing is lost but the order of dependency pairs: they come back by child, then as they stood.
"""

from __future__ import annotations

import importlib
import io
import json
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from stretto.core.csr import Column, group
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.document import Document
from stretto.files.sniff import graph_name
from stretto.files.traces.reader import ReadOptions
from stretto.files.traces.request_json import request_of_json, request_to_json

_MAGIC = b"PAR1"
#: Jobs of a trace; each takes about a hundred bytes.
MAX_ROWS = 20_000_000
_KEY = b"stretto.trace"
_NEEDED = ("submit_s", "run_s", "num_procs")
_FLOATS = ("submit_s", "run_s", "estimate_s", "wait_s", "held_s", "memory_bytes", "deadline_s")
_INTS = (
    "num_procs",
    "job_id",
    "user",
    "group",
    "queue",
    "partition",
    "account",
    "qos",
    "status",
    "num_gpus",
    "request",
    "limit_group",
)
_PARENTS = "parents"
#: An object of pyarrow, which has no types.
Arrow: TypeAlias = Any


class Parquet:
    """Reads and writes traces as Parquet files."""

    summary = "Stretto's trace columns as Parquet (needs pyarrow)"
    endings = ("parquet", "pq")

    def matches(self, document: Document) -> bool:
        """Say whether the content begins as Parquet does."""
        return document.data.startswith(_MAGIC)

    def read(self, document: Document, options: ReadOptions) -> Trace:
        """Read a trace; a foreign file needs at least ``submit_s``, ``run_s`` and ``num_procs``."""
        arrow, parquet = _library()
        try:
            file = parquet.ParquetFile(io.BytesIO(document.data))
            _check_size(document, file.metadata)
            known = [name for name in file.schema_arrow.names if name in (*_FLOATS, *_INTS, _PARENTS)]
            table = file.read(columns=known)
            rest = _rest(table.schema.metadata or {})
            columns = _columns(table)
        except (arrow.ArrowException, OSError, ValueError, TypeError, RecursionError) as error:
            document.fail(f"damaged or unusual Parquet: {str(error)[:200]}")
        for name in _NEEDED:
            if name not in columns:
                document.fail(f"there is no column {name}", field=name)
        columns.setdefault("estimate_s", np.full(len(columns["run_s"]), np.nan))
        if not len(columns["run_s"]):
            document.fail("the file holds no jobs")
        try:
            return Trace(**{"name": graph_name(document), **columns, **rest})
        except TypeError as error:
            document.fail(f"unusual metadata: {error}")

    def write(self, trace: Trace) -> bytes:
        """Return the trace as a Parquet file."""
        arrow, parquet = _library()
        columns: dict[str, Arrow] = {}
        for name in (*_FLOATS, *_INTS):
            column = getattr(trace, name)
            if column is not None:
                columns[name] = arrow.array(column)
        if trace.parent is not None and trace.child is not None:
            ptr, by_child = group(trace.child, trace.num_jobs)
            columns[_PARENTS] = arrow.ListArray.from_arrays(arrow.array(ptr), arrow.array(trace.parent[by_child]))
        rest = {
            "name": trace.name,
            "max_procs": trace.max_procs,
            "origin_unix_s": trace.origin_unix_s,
            "requests": [request_to_json(request) for request in trace.requests],
            "group_limits": list(trace.group_limits),
            "meta": dict(trace.meta),
        }
        table = arrow.table(columns).replace_schema_metadata({_KEY: json.dumps(rest, default=str).encode()})
        sink = io.BytesIO()
        parquet.write_table(table, sink, compression="zstd")
        return sink.getvalue()


def _check_size(document: Document, metadata: Arrow) -> None:
    """Refuse a file before it is unpacked: a column of equal values takes no room, and may have billions of rows."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    longest = max((group.column(c).num_values for group in groups for c in range(group.num_columns)), default=0)
    if max(metadata.num_rows, longest) > MAX_ROWS:
        document.fail(f"{max(metadata.num_rows, longest):,} rows, more than {MAX_ROWS:,}")


def _library() -> tuple[Arrow, Arrow]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Parquet traces") from None


def _rest(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """Return what is not a column, as far as it has the right kind."""
    stored = json.loads(metadata.get(_KEY, b"{}"))
    if not isinstance(stored, dict):
        raise ValueError("the trace's metadata is no object")
    kinds = {"name": (str,), "max_procs": (int,), "origin_unix_s": (int, float), "meta": (dict,)}
    rest = {key: stored[key] for key, kind in kinds.items() if isinstance(stored.get(key), kind)}
    limits = stored.get("group_limits", [])
    if not isinstance(limits, list) or not all(type(limit) is int and limit > 0 for limit in limits):
        raise ValueError("the limits of groups are no list of numbers above zero")
    requests = tuple(request_of_json(request) for request in stored.get("requests", []))
    return rest | {"requests": requests, "group_limits": tuple(limits)}


def _columns(table: Arrow) -> dict[str, Any]:
    known = {field.name for field in fields(Trace)}
    found: dict[str, Any] = {}
    for name in table.column_names:
        if name == _PARENTS:
            found |= _dependencies(table.column(name).combine_chunks())
        elif name in known and name in (*_FLOATS, *_INTS):
            found[name] = _column(table.column(name), np.float64 if name in _FLOATS else np.int32)
    return found


def _column(column: Arrow, kind: type[np.generic]) -> Column:
    values = column.to_numpy()
    if kind is np.int32:
        if values.dtype.kind not in "iu":
            raise ValueError(f"a column of whole numbers holds {values.dtype}")
        if len(values) and (values.min() < -(2**31) or values.max() >= 2**31):
            raise InvalidInput("a whole number does not fit 32 bits", field="columns")
    # Arrow's memory is read-only and may outlive the table: a trace owns its columns.
    return np.array(values, dtype=kind)


def _dependencies(lists: Arrow) -> dict[str, Any]:
    counts = np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    parent = np.array(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.int32)
    return {"parent": parent, "child": np.repeat(np.arange(len(counts), dtype=np.int32), counts)}


FORMAT = Parquet()
