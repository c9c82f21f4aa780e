"""Graphs, clusters, traces and machines out of a request: always from its own text, never from a file of the server."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from stretto import catalog
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files import archive
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.pool_toml import parse_pools, read_pools
from stretto.files.document import Document, unpack
from stretto.files.load import detect, find_format
from stretto.files.traces.load import detect_trace
from stretto.files.traces.reader import ReadOptions
from stretto.graphs.workloads.generate import generate
from stretto.registry import lookup
from stretto.reports.strict_json import dumps
from stretto.web.models import WORD

_WORD = re.compile(WORD)
#: Tasks or jobs that a generator may be asked for.
_MAX_MADE = 2_000_000


def graph_of(request: Mapping[str, Any]) -> TaskGraph | Workload:
    """Return the graph that a request brings or names."""
    given, workload = request["graph"], request["workload"]
    if (given is None) == (workload is None):
        raise InvalidInput("give either a graph or the name of a workload", field="graph")
    if workload is not None:
        return generate(workload, **checked(request["workload_params"], "workload_params"))
    document = Document("graph", _data(given, request["encoding"], "graph"))
    try:
        if archive.is_archive(document):
            return archive.open_archive(document, find_format, None)
        return detect(document).read(document)
    except InvalidInput as error:
        raise error.at("graph") from None


def _data(given: str | Mapping[str, Any], encoding: str, field: str) -> bytes:
    if not isinstance(given, str):
        return dumps(given).encode(errors="replace")
    if encoding == "text":
        return given.encode(errors="replace")
    try:
        return unpack(base64.b64decode(given, validate=True), field)
    except (binascii.Error, ValueError):
        raise InvalidInput("is not base64", field=field) from None


def graph_source(request: Mapping[str, Any]) -> str | None:
    """Return how the command line would name the graph; one that came with the request has no name."""
    if request["workload"] is None:
        return None
    query = "&".join(f"{key}={dumps(value).strip(chr(34))}" for key, value in request["workload_params"].items())
    return f"workload:{request['workload']}" + (f"?{query}" if query else "")


def cluster_of(text: str) -> Cluster:
    """Return a cluster from shorthand, or from TOML: whatever has more than one line or a key."""
    if is_document(text):
        return read_cluster(Document("cluster", text.encode(errors="replace")))
    return Cluster.parse(text)


def trace_of(request: Mapping[str, Any]) -> Trace:
    """Return the jobs that a request brings, or that it wants made."""
    given, generator = request["trace"], request["generator"]
    if (given is None) == (generator is None):
        raise InvalidInput("give either a trace or the name of a generator", field="trace")
    if generator is not None:
        return _made(generator, checked(request["generator_params"], "generator_params"))
    document = Document("trace", _data(given, request["encoding"], "trace"))
    try:
        return detect_trace(document).read(document, ReadOptions())
    except InvalidInput as error:
        raise error.at("trace") from None


def _made(name: str, params: dict[str, Any]) -> Trace:
    make = lookup("trace generator", name, catalog.TRACE_GENERATORS)
    try:
        trace: Trace = make(**{"num_jobs": 1000, "seed": 0, **params})
    except (TypeError, ValueError, OverflowError, AttributeError) as error:  # a wrong name, or a wrong kind
        raise InvalidInput(str(error), field="generator_params") from None
    return trace


def trace_source(request: Mapping[str, Any]) -> str | None:
    """Return how the command line would name the trace."""
    if request["generator"] is None:
        return None
    query = "&".join(f"{key}={dumps(value).strip(chr(34))}" for key, value in request["generator_params"].items())
    return f"trace:{request['generator']}" + (f"?{query}" if query else "")


def machine_of(trace: Trace, procs: int | None, pools: str | None) -> int | tuple[Pool, ...]:
    """Return the machine that a request names, or the one that was recorded."""
    if procs is not None and pools is not None:
        raise InvalidInput("say either procs or pools", field="procs")
    if pools is not None:
        is_toml = is_document(pools)
        return read_pools(Document("pools", pools.encode(errors="replace"))) if is_toml else parse_pools(pools)
    if procs is None and trace.max_procs is None:
        raise InvalidInput(f"{trace.name!r} does not say on how many processors it ran", field="procs")
    chosen = procs if procs is not None else trace.max_procs
    assert chosen is not None
    return chosen


def checked(params: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return parameters that are numbers or words; a path is neither."""
    for key, value in params.items():
        if isinstance(value, str) and not _WORD.fullmatch(value):
            raise InvalidInput(f"{value[:60]!r} is not a number or a word", field=f"{field}.{key}")
        if key.startswith("num_") and isinstance(value, (int, float)) and value > _MAX_MADE:
            raise InvalidInput(f"{value} is more than {_MAX_MADE:,}", field=f"{field}.{key}")
    return {key.replace("-", "_"): value for key, value in params.items()}


def is_document(text: str) -> bool:
    """Say whether a text is a document and not shorthand."""
    return "\n" in text.strip() or "[" in text or text.lstrip().startswith("{")
