"""Placements for throughput on PipeDream's profiles and MSR's graphs: period, best contiguous cut, lower bound.

    python benchmarks/pipelines.py --microbatches 8

The stored MSR files hold graphs and device limits, not the published splits, so periods are held against a lower bound
(even work without transfers, longest task). Real graphs are read from the folder named by STRETTO_DATA, or
``../shared/data`` beside the repository.
"""

from __future__ import annotations

import argparse
import time

from doppler_graphs import DATA
from measure import print_table

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.files.load import load
from stretto.graphs.pipelines.plan import plan_pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--graphs", default="pipedream,dnnpart-throughput-LayerGraphs")
    options = parser.parse_args()
    lines = [("graph", "tasks", "period s", "cut s", "bound s", "above bound", "below cut", "seconds")]
    for path in sorted((DATA / "dataflow").iterdir()):
        if not any(path.name.startswith(part) for part in options.graphs.split(",")):
            continue
        graph = load(path)
        assert isinstance(graph, TaskGraph)
        cluster = "gpu:4@16GB/s" if path.name.startswith("pipedream") else "accelerator:6"
        problem = Problem.of(graph, Cluster.parse(cluster))
        begin = time.process_time()
        found = plan_pipeline(problem, num_microbatches=options.microbatches)
        seconds = time.process_time() - begin
        figures = [f"{value:.5g}" for value in (found.period_s, found.cut_period_s, found.lower_bound_s)]
        shares = f"{found.period_s / found.lower_bound_s - 1:.1%}", f"{1 - found.period_s / found.cut_period_s:.1%}"
        lines.append((path.name.split(".")[0], str(problem.num_tasks), *figures, *shares, f"{seconds:.1f}"))
        print(*lines[-1], flush=True)
    print_table(lines)


if __name__ == "__main__":
    main()
