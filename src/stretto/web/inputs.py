"""Graphs, clusters, traces and machines out of a request: always from its own text, never from a file of the server."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from stretto.api.documents import cluster_in, graph_in, is_document, pools_in, trace_in, unpack
from stretto.api.inputs import make_graph, make_trace
from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.reports.strict_json import dumps
from stretto.runlog.record import Json
from stretto.web.models import WORD

__all__ = ["checked", "cluster_in", "graph_of", "graph_source", "is_document", "machine_of", "trace_of", "trace_source"]

_WORD = re.compile(WORD)
#: Tasks or jobs that a generator may be asked for.
_MAX_MADE = 2_000_000


def graph_of(request: Mapping[str, Json]) -> TaskGraph | Workload:
    """Return the graph that a request brings or names."""
    given, workload = request["graph"], request["workload"]
    if (given is None) == (workload is None):
        raise InvalidInput("give either a graph or the name of a workload", field="graph")
    if workload is not None:
        return make_graph(workload, checked(request["workload_params"], "workload_params"))
    return graph_in(_data(given, request["encoding"], "graph"))


def _data(given: str | Mapping[str, Json], encoding: str, field: str) -> bytes:
    if not isinstance(given, str):
        return dumps(given).encode(errors="replace")
    if encoding == "text":
        return given.encode(errors="replace")
    try:
        return unpack(base64.b64decode(given, validate=True), field)
    except (binascii.Error, ValueError):
        raise InvalidInput("is not base64", field=field) from None


def graph_source(request: Mapping[str, Json]) -> str | None:
    """Return how the command line would name the graph; one that came with the request has no name."""
    if request["workload"] is None:
        return None
    query = "&".join(f"{key}={dumps(value).strip(chr(34))}" for key, value in request["workload_params"].items())
    return f"workload:{request['workload']}" + (f"?{query}" if query else "")


def trace_of(request: Mapping[str, Json]) -> Trace:
    """Return the jobs that a request brings, or that it wants made."""
    given, generator = request["trace"], request["generator"]
    if (given is None) == (generator is None):
        raise InvalidInput("give either a trace or the name of a generator", field="trace")
    if generator is not None:
        params = checked(request["generator_params"], "generator_params")
        return make_trace(generator, params, field="generator_params")
    return trace_in(_data(given, request["encoding"], "trace"))


def trace_source(request: Mapping[str, Json]) -> str | None:
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
        return pools_in(pools)
    if procs is not None:
        return procs
    try:
        return trace.recorded_procs("procs, the number of processors")
    except InvalidInput as error:
        raise InvalidInput(error.message, field="procs") from None


def checked(params: Mapping[str, Json], field: str) -> dict[str, Json]:
    """Return parameters that are numbers or words; a path is neither."""
    for key, value in params.items():
        if isinstance(value, str) and not _WORD.fullmatch(value):
            raise InvalidInput(f"{value[:60]!r} is not a number or a word", field=f"{field}.{key}")
        if key.startswith("num_") and isinstance(value, (int, float)) and value > _MAX_MADE:
            raise InvalidInput(f"{value} is more than {_MAX_MADE:,}", field=f"{field}.{key}")
    return {key.replace("-", "_"): value for key, value in params.items()}
