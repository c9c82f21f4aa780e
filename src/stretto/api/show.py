"""``stretto.show``: what there is to say about a graph, a workload, a cluster, a trace or a site at a glance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stretto.api.inputs import (
    KERNELS_PREFIX,
    WORKLOAD_PREFIX,
    GraphLike,
    graph_of,
    is_site,
    is_trace,
    load_cluster,
    load_site,
    split_path,
    trace_of,
)
from stretto.core.cluster import Cluster
from stretto.core.cluster_shorthand import BARE_KINDS, intended
from stretto.core.graph import TaskGraph
from stretto.core.graph_facts import GraphFacts, graph_facts
from stretto.core.results.trace_facts import TraceFacts, trace_facts
from stretto.core.site import Site, SiteNode
from stretto.core.trace import Trace
from stretto.engines.workflow_file import is_workflow
from stretto.errors import InvalidInput
from stretto.files.clusters.host_list import compress_hosts


def show(
    source: GraphLike | Cluster | Trace | Site, *, dims: Mapping[str, int] | None = None
) -> GraphFacts | list[GraphFacts] | Cluster | TraceFacts | Site:
    """Return the size and shape of a graph, of each graph of a workload, or of a trace; or a cluster, or a site.

    Examples
    --------
    >>> import stretto
    >>> stretto.show("workload:fork-join?width=3&num_stages=1").depth
    3
    >>> stretto.show("trace:lublin?num_jobs=50&num_procs=64").num_jobs
    50
    """
    if dims and (isinstance(source, (Cluster, Trace, Site)) or is_site(source) or is_trace(source)):
        raise InvalidInput("has no effect here: only ONNX models have open dimensions", field="dims")
    if isinstance(source, Cluster):
        return source
    if isinstance(source, Site):
        return source
    if isinstance(source, Trace):
        return trace_facts(source)
    if is_site(source):
        return load_site(str(source))
    if is_trace(source):
        return trace_facts(trace_of(str(source)))
    if isinstance(source, (str, Path)) and names_cluster(str(source)):
        return load_cluster(source)
    work = graph_of(source, dims)
    return graph_facts(work) if isinstance(work, TaskGraph) else [graph_facts(job.graph) for job in work.jobs]


class NodeGroup(NamedTuple):
    """Nodes that are equal but for their names and weights, and their names as a host list."""

    hosts: str
    nodes: tuple[SiteNode, ...]


def node_groups(site: Site) -> list[NodeGroup]:
    """Return the nodes of a site in groups, in the order of their first nodes."""
    groups: dict[str, list[SiteNode]] = {}
    for node in site.nodes:
        key = f"{node.cpus} {node.memory_bytes} {node.gpus} {sorted(node.features)}"
        groups.setdefault(key, []).append(node)
    return [NodeGroup(compress_hosts([node.name for node in nodes]), tuple(nodes)) for nodes in groups.values()]


def names_cluster(source: str) -> bool:
    """Say whether a source is a cluster rather than a graph, a trace or a site."""
    if source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)) or is_workflow(source) or is_site(source):
        return False
    if os.path.exists(split_path(source)[0]) or "/" in source.partition("@")[0]:
        return source.endswith(".toml")
    # A word such as gpu4 is no file, and means devices: the error about clusters says how to write them.
    means_devices = (intended(source) or source).partition(":")[0] in BARE_KINDS
    return means_devices or source.endswith(".toml") or any(sign in source for sign in ":,@")
