"""What the user names: ``file``, ``file#member``, ``workload:NAME?key=value`` and clusters."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.cluster import Cluster
    from stretto.core.graph import TaskGraph
    from stretto.core.problem import Problem
    from stretto.core.workload import Workload
    from stretto.engines.work import Work

WORKLOAD_PREFIX = "workload:"
KERNELS_PREFIX = "kernels:"
PROJECT_CLUSTER = "shop:1"


def literal(text: str) -> Any:
    """Return the value of a JSON literal, or the text itself when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also of numbers with thousands of digits, and of brackets without end
        return text


def parse_params(pairs: Sequence[str], *, field: str = "--param") -> dict[str, Any]:
    """Return ``key=value`` pairs as a dictionary, values read as JSON literals or strings."""
    params: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InvalidInput(f"{pair!r} is not KEY=VALUE", field=field)
        params[key.strip().replace("-", "_")] = literal(value)
    return params


def load_graph(source: str, *, format: str | None = None) -> TaskGraph | Workload:
    """Read a graph from a file, or make one with a built-in generator; of work that can be run, take its graph."""
    from stretto.cli.terminal.progress import ProgressLine

    if format is not None and source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)):
        raise InvalidInput(f"cannot be combined with {source}: a built-in graph is not read", field="--from")
    with ProgressLine(f"reading {source}"):
        if source.startswith(WORKLOAD_PREFIX):
            return _generate(source.removeprefix(WORKLOAD_PREFIX))
        if source.startswith(KERNELS_PREFIX):
            return load_kernels(source).graph
        from stretto.engines.workflow_file import is_workflow, load_workflow
        from stretto.files.load import load

        if format is None and is_workflow(source):
            return load_workflow(source).graph
        return load(source, format=format)


def _generate(text: str) -> TaskGraph:
    from stretto.graphs.workloads.generate import generate

    name, _, query = text.partition("?")
    params = parse_params([pair for pair in query.split("&") if pair], field=WORKLOAD_PREFIX + name)
    return generate(name, **params)


def load_kernels(source: str) -> Work:
    """Make work with real kernels from ``kernels:NAME?key=value``."""
    from stretto import catalog, registry
    from stretto.core.provenance import DURATIONS

    name, _, query = source.removeprefix(KERNELS_PREFIX).partition("?")
    params = parse_params([pair for pair in query.split("&") if pair], field=KERNELS_PREFIX + name)
    make = registry.lookup("kernels", name, catalog.KERNELS)
    try:
        work: Work = make(**params)
    except TypeError as error:
        raise InvalidInput(str(error), field=KERNELS_PREFIX + name) from None
    basis = work.graph.meta.get(DURATIONS, "assumed (nominal rates of the kernels)")
    return replace(work, graph=work.graph.with_meta(**{DURATIONS: basis}))


def load_cluster(source: str) -> Cluster:
    """Read a cluster from shorthand or from a TOML file."""
    from stretto.files.load import load_cluster as read

    return read(source)


def load_problem(graph: str, cluster: str | None) -> Problem:
    """Compile the named graph for the named cluster; only projects can do without a cluster."""
    from stretto.core.problem import Problem

    return Problem.of(*_work_and_cluster(graph, cluster))


def _work_and_cluster(graph: str, cluster: str | None) -> tuple[TaskGraph | Workload, Cluster]:
    work = load_graph(graph)
    if cluster is None:
        if getattr(work, "resources", None) is None:
            raise InvalidInput("name the machines, for example --cluster cpu:8x1.0,gpu:2x5.0", field="--cluster")
        cluster = PROJECT_CLUSTER  # a project brings its own resources
    return work, load_cluster(cluster)


def with_dims(source: str, dims: Sequence[str] | None) -> str:
    """Return the source with the sizes of open dimensions, as ``FILE?batch=8``, so that it lasts in plan files."""
    for pair in dims or []:
        name, equals, size = pair.partition("=")
        if not (name and equals and size.isdecimal()):
            raise InvalidInput(f"{pair!r} is not NAME=SIZE, such as batch=8", field="--dim")
    if not dims:
        return source
    from stretto.engines.workflow_file import is_workflow

    if source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)) or is_workflow(source):
        raise InvalidInput(f"has no effect on {source}: only ONNX models have open dimensions", field="--dim")
    return source + ("&" if split_path(source)[1].rpartition("?")[1] else "?") + "&".join(dims)


def split_path(source: str) -> tuple[str, str]:
    """Split a source into its path and what follows it: ``#member`` and ``?dim=size``."""
    at = next((place for place, sign in enumerate(source) if sign in "#?" and Path(source[:place]).exists()), None)
    return (source, "") if at is None or Path(source).exists() else (source[:at], source[at:])


def lasting(source: str) -> str:
    """Return the source such that it still means the same in another directory."""
    path, rest = split_path(source)
    if source.startswith(WORKLOAD_PREFIX) or not Path(path).exists():
        return source
    return os.path.abspath(path) + rest
