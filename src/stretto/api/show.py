"""``stretto.show``: what there is to say about a graph, a workload or a cluster at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stretto.api.inputs import KERNELS_PREFIX, WORKLOAD_PREFIX, GraphLike, graph_of, load_cluster, split_path
from stretto.core.cluster import Cluster
from stretto.core.cluster_shorthand import BARE_KINDS, intended
from stretto.core.graph import TaskGraph
from stretto.core.graph_facts import GraphFacts, graph_facts
from stretto.engines.workflow_file import is_workflow


def show(
    source: GraphLike | Cluster, *, dims: Mapping[str, int] | None = None
) -> GraphFacts | list[GraphFacts] | Cluster:
    """Return the size and shape of a graph, those of each graph of a workload, or a cluster.

    Examples
    --------
    >>> import stretto
    >>> stretto.show("workload:fork-join?width=3&num_stages=1").depth
    3
    """
    if isinstance(source, Cluster):
        return source
    if isinstance(source, (str, Path)) and names_cluster(str(source)):
        return load_cluster(source)
    work = graph_of(source, dims)
    return graph_facts(work) if isinstance(work, TaskGraph) else [graph_facts(job.graph) for job in work.jobs]


def names_cluster(source: str) -> bool:
    """Say whether a source is a cluster rather than a graph."""
    if source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)) or is_workflow(source):
        return False
    if Path(split_path(source)[0]).exists() or "/" in source.partition("@")[0]:
        return source.endswith(".toml")
    # A word such as gpu4 is no file, and means devices: the error about clusters says how to write them.
    means_devices = (intended(source) or source).partition(":")[0] in BARE_KINDS
    return means_devices or source.endswith(".toml") or any(sign in source for sign in ":,@")
