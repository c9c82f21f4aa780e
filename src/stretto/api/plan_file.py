"""Plan files: a result together with where its graph and cluster came from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stretto.api.inputs import WORKLOAD_PREFIX, ClusterLike, GraphLike, named_problem, split_path
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.engines.rented_nodes import wait_until_up
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document, read_document
from stretto.files.load import write_atomically
from stretto.files.plan_json import read_plan
from stretto.graphs.conditions import CONTENTIONS, Contention
from stretto.graphs.evaluate import Setting
from stretto.graphs.rental.fleet import Fleet

#: A document of JSON values.
Json = dict[str, Any]

#: Keys under which a plan file holds what was measured before planning, or rented; and when each node is up.
_GRAPH, _CLUSTER, _READY = "graph_document", "cluster_document", "ready_s"


def measured_sources(problem: Problem) -> Json:
    """Return a problem as a plan file holds it where its sources do not have the measured durations and links."""
    from stretto.files.clusters.cluster_writer import write_cluster
    from stretto.files.graphs.native import FORMAT

    return {_GRAPH: json.loads(FORMAT.write(problem.graph)), _CLUSTER: write_cluster(problem.cluster).decode()}


def rented_sources(problem: Problem, fleet: Fleet) -> Json:
    """Return the nodes of a plan on pools as its file holds them, with how they are billed."""
    from stretto.files.clusters.cluster_writer import write_cluster

    terms = {node.name: [node.pool.billing_s, node.minimum_s] for node in fleet.nodes if node.market != "owned"}
    return {
        _CLUSTER: write_cluster(problem.cluster).decode(),
        _READY: fleet.ready_s.tolist(),
        "rental_terms": terms,
    }


def kept_cluster(source: str) -> Cluster | None:
    """Return the nodes that a plan file holds; None for anything else."""
    if not is_plan_file(source):
        return None
    content = read_document(source).json
    return _cluster_in(content, Path(source)) if _CLUSTER in content else None


def save_plan(path: Path, document: Json) -> None:
    """Write a plan file, whole or not at all."""
    from stretto.reports.strict_json import plain

    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def is_plan_file(source: str) -> bool:
    """Say whether a file is a plan rather than a graph."""
    if not os.path.isfile(source):
        return False
    head = read_document(source).data[:200].replace(b" ", b"")
    return b'"format":"stretto-plan"' in head


def load_plan(path: Path, graph: GraphLike | None, cluster: ClusterLike | None) -> tuple[Problem, Plan, Json]:
    """Read a plan file and compile the problem that it solves.

    Parameters
    ----------
    graph, cluster
        Sources that replace the recorded ones.
    """
    document = read_document(path)
    content = document.json
    if not isinstance(content, dict):
        document.fail("not a plan: the top of a plan file is an object")
    if graph is None and cluster is None and _GRAPH in content:
        problem = _kept_problem(content, path)
        return problem, read_plan(document, problem), content
    graph = graph or _recorded(content, "graph_source", path)
    if graph is None:
        raise InvalidInput(_no_graph(content), source=str(path))
    if cluster is None and _CLUSTER in content:
        problem = named_problem(graph, _cluster_in(content, path))
        plan = read_plan(document, problem)
        return _when_up(problem, plan, content, document), plan, content
    cluster = cluster or _recorded(content, "cluster_source", path)
    problem = named_problem(graph, cluster)
    return problem, read_plan(document, problem), content


def _when_up(problem: Problem, plan: Plan, content: Json, document: Document) -> Problem:
    """Return the problem whose tasks wait until their nodes are up."""
    ready = content.get(_READY)
    if ready is None:
        return problem
    if not isinstance(ready, list) or len(ready) != problem.num_devices:
        document.fail(f"expected {problem.num_devices} numbers, one for each node", field=_READY)
    up = [document.number(value, _READY) for value in ready]
    return wait_until_up(problem, plan, up)


def _no_graph(content: Mapping[str, object]) -> str:
    """Say why a file names no graph, and what to type."""
    if "assignment" not in content:
        return "this is not a plan: make one with  stretto plan GRAPH -c CLUSTER --save plan.json"
    return "the plan does not name its graph: give it with --graph"


def planned_schedule(
    path: Path, cluster: ClusterLike | None = None, *, record_transfers: bool = False
) -> tuple[Problem, Plan, Schedule, Json]:
    """Execute a plan file as it was planned; another cluster may replace the recorded one."""
    problem, plan, recorded = load_plan(path, None, cluster)
    setting = Setting(contention=recorded_contention(recorded))
    return problem, plan, setting.run(problem, plan, record_transfers=record_transfers), recorded


def recorded_sources(path: Path) -> tuple[str, str | None, str]:
    """Return graph, cluster and policy of a plan file, for running it."""
    content = read_document(path).json
    graph = _recorded(content, "graph_source", path)
    if graph is None:
        raise InvalidInput(_no_graph(content), source=str(path))
    cluster = str(path) if _CLUSTER in content and _GRAPH not in content else _recorded(content, "cluster_source", path)
    return graph, cluster, str(content.get("policy", "a plan"))


def _kept_problem(content: Json, path: Path) -> Problem:
    """Return the problem that a plan file holds itself."""
    from stretto.files.graphs.native import FORMAT

    graph = FORMAT.read(Document(f"{path} [{_GRAPH}]", json.dumps(content[_GRAPH]).encode()))
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("does not hold one graph and its cluster", source=str(path), field=_GRAPH)
    return Problem.of(graph, _cluster_in(content, path))


def _cluster_in(content: Json, path: Path) -> Cluster:
    """Return the cluster that a plan file holds itself."""
    from stretto.files.clusters.cluster_toml import read_cluster

    text = content.get(_CLUSTER)
    if not isinstance(text, str):
        raise InvalidInput("does not hold one graph and its cluster", source=str(path), field=_CLUSTER)
    return read_cluster(Document(f"{path} [{_CLUSTER}]", text.encode()))


def recorded_contention(content: Json) -> Contention:
    """Return the contention that the plan was judged under, ``none`` where it does not say."""
    value = content.get("contention", "none")
    for known in CONTENTIONS:
        if value == known:
            return known
    raise UnknownName("contention", str(value), CONTENTIONS)


def _recorded(content: Json, key: str, plan_file: Path) -> str | None:
    """Return a recorded source; a file that has gone is looked for beside the plan."""
    source = content.get(key)
    if source is None:
        return None
    if not isinstance(source, str):
        raise InvalidInput(f"{source!r} is not text", source=str(plan_file), field=key)
    path = re.split("[#?]", source, maxsplit=1)[0]
    beside = plan_file.parent / Path(path).name
    if not source.startswith(WORKLOAD_PREFIX) and not os.path.exists(split_path(source)[0]) and os.path.isfile(beside):
        return str(beside) + source[len(path) :]
    return source
