"""Small projects, whose tasks share resources."""

from __future__ import annotations

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.problem import Problem
from stretto.graphs.bounds.relaxation import Relaxation


def project_of(
    durations: list[float], demand: list[list[int]], capacity: list[int], edges: list[tuple[int, int]]
) -> Relaxation:
    """Return the relaxation of tasks with such durations and demands, and edges between them."""
    names = tuple(f"R{i}" for i in range(len(capacity)))
    resources = Resources(names, np.array(capacity), np.array(demand).reshape(len(durations), len(capacity)))
    source, target = [a for a, _ in edges], [b for _, b in edges]
    graph = TaskGraph.from_edges(durations, source, target, resources=resources)
    return Relaxation.of(Problem.of(graph, Cluster.parse("cpu:1")))
