"""Compare policies on random graphs: who wins, by how much, at what price in planning time.

Run it with ``python examples/compare_policies.py``.
"""

from __future__ import annotations

import dataclasses

import stretto

POLICIES = ("heft", "cpop", "peft", "annealing")
SEARCH_SECONDS = 1.0


def graph_with(ccr: float) -> stretto.TaskGraph:
    """Make a random graph in which data weighs ``ccr`` times as much as work, on two unrelated kinds of devices."""
    graph = stretto.workloads.random_dag(num_tasks=80, ccr=ccr, seed=7)
    graph = stretto.workloads.unrelated(graph, ["cpu", "gpu"], seed=7)
    return dataclasses.replace(graph, name=f"ccr {ccr:g}")


def main() -> None:
    """Compare on graphs with more and more communication."""
    graphs = [graph_with(ccr) for ccr in (0.1, 1.0, 5.0)]
    comparison = stretto.compare(graphs, "cpu:6,gpu:2", POLICIES, time_limit_s=SEARCH_SECONDS)
    print(f"{'policy':>10} {'best on':>8} {'mean x best':>12} {'mean gap':>9} {'planning':>9}")
    for line in comparison.summary():
        print(
            f"{line.policy:>10} {line.num_best:>8} {line.mean_ratio:>12.3f} {line.mean_gap:>9.1%}"
            f" {line.plan_seconds:>7.2f} s"
        )


if __name__ == "__main__":
    main()
