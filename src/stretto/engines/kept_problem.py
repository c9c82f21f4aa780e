"""What a run was about, kept with it: who looks at the run later can ask the same question again."""

from __future__ import annotations

import gzip

from stretto.core.problem import Problem
from stretto.files.clusters.cluster_writer import write_cluster
from stretto.files.graphs.native import FORMAT
from stretto.runlog import Run

GRAPH, CLUSTER = "graph.json.gz", "cluster.toml"


def keep_problem(run: Run, problem: Problem) -> None:
    """Attach graph and cluster to a run."""
    run.attach(GRAPH, gzip.compress(FORMAT.write(problem.graph), 5, mtime=0))
    run.attach(CLUSTER, write_cluster(problem.cluster))
