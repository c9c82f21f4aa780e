"""Plan files: a result together with where its graph and cluster came from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.cli.sources import WORKLOAD_PREFIX, lasting, load_problem, split_path
from stretto.cli.terminal.console import to_json
from stretto.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from stretto.core.plan import Plan
    from stretto.core.problem import Problem
    from stretto.graphs.conditions import Contention
    from stretto.graphs.evaluate import PlanResult


#: Keys under which a plan file holds what was measured before planning.
_GRAPH, _CLUSTER = "graph_document", "cluster_document"


def describe(result: PlanResult, graph: str, cluster: str | None, *, is_measured: bool = False) -> dict[str, Any]:
    """Return the JSON document of a result, with its sources so that it can be read alone.

    Parameters
    ----------
    is_measured
        Durations and links were measured before planning: the sources do not hold them, so the document does.
    """
    sources = {"graph_source": lasting(graph), "cluster_source": lasting(cluster) if cluster is not None else None}
    return result.to_json() | sources | (_measured(result.problem) if is_measured else {})


def _measured(problem: Problem) -> dict[str, Any]:
    from stretto.files.clusters.cluster_writer import write_cluster
    from stretto.files.graphs.native import FORMAT

    return {_GRAPH: json.loads(FORMAT.write(problem.graph)), _CLUSTER: write_cluster(problem.cluster).decode()}


def save_plan(path: Path, document: dict[str, Any]) -> None:
    """Write a plan file, whole or not at all."""
    from stretto.files.load import write_atomically

    write_atomically(path, (to_json(document) + "\n").encode())


def is_plan_file(source: str) -> bool:
    """Say whether a file is a plan rather than a graph."""
    from stretto.files.document import read_document

    if not Path(source).is_file():
        return False
    head = read_document(source).data[:200].replace(b" ", b"")
    return b'"format":"stretto-plan"' in head


def load_plan(path: Path, graph: str | None, cluster: str | None) -> tuple[Problem, Plan, dict[str, Any]]:
    """Read a plan file and compile the problem that it solves.

    Parameters
    ----------
    graph, cluster
        Sources that replace the recorded ones.
    """
    from stretto.files.document import read_document
    from stretto.files.plan_json import read_plan

    document = read_document(path)
    content = document.json
    if not isinstance(content, dict):
        document.fail("not a plan: the top of a plan file is an object")
    if graph is None and cluster is None and _GRAPH in content:
        problem = _kept_problem(content, path)
        return problem, read_plan(document, problem), content
    graph = graph or _recorded(content, "graph_source", path)
    if graph is None:
        raise InvalidInput("the plan does not say where its graph is: give --graph", source=str(path))
    cluster = cluster or _recorded(content, "cluster_source", path)
    problem = load_problem(graph, cluster)
    return problem, read_plan(document, problem), content


def recorded_sources(path: Path) -> tuple[str, str | None, str]:
    """Return graph, cluster and policy of a plan file, for running it."""
    from stretto.files.document import read_document

    content = read_document(path).json
    graph = _recorded(content, "graph_source", path)
    if graph is None:
        raise InvalidInput("the plan does not say where its graph is", source=str(path))
    return graph, _recorded(content, "cluster_source", path), str(content.get("policy", "a plan"))


def _kept_problem(content: dict[str, Any], path: Path) -> Problem:
    """Return the problem that a plan file holds itself."""
    from stretto.core.graph import TaskGraph
    from stretto.core.problem import Problem
    from stretto.files.clusters.cluster_toml import read_cluster
    from stretto.files.document import Document
    from stretto.files.graphs.native import FORMAT

    graph = FORMAT.read(Document(f"{path} [{_GRAPH}]", json.dumps(content[_GRAPH]).encode()))
    text = content.get(_CLUSTER)
    if not isinstance(graph, TaskGraph) or not isinstance(text, str):
        raise InvalidInput("does not hold one graph and its cluster", source=str(path), field=_CLUSTER)
    return Problem.of(graph, read_cluster(Document(f"{path} [{_CLUSTER}]", text.encode())))


def recorded_contention(content: dict[str, Any]) -> Contention:
    """Return the contention that the plan was judged under, ``none`` where it does not say."""
    from stretto.graphs.conditions import CONTENTIONS

    value = content.get("contention", "none")
    for known in CONTENTIONS:
        if value == known:
            return known
    raise UnknownName("contention", str(value), CONTENTIONS)


def _recorded(content: dict[str, Any], key: str, plan_file: Path) -> str | None:
    """Return a recorded source; a file that has gone is looked for beside the plan."""
    source = content.get(key)
    if source is None:
        return None
    if not isinstance(source, str):
        raise InvalidInput(f"{source!r} is not text", source=str(plan_file), field=key)
    path = re.split("[#?]", source, maxsplit=1)[0]
    beside = plan_file.parent / Path(path).name
    if not source.startswith(WORKLOAD_PREFIX) and not Path(split_path(source)[0]).exists() and beside.is_file():
        return str(beside) + source[len(path) :]
    return source
