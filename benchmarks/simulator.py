"""How many tasks per second the device simulator executes, on one core.

    python benchmarks/simulator.py [--large] [--width 32]

Layered random graphs with 2.5 edges per task on 32 devices of two speeds, placed at random and
executed work-conserving by ``stretto.graphs.simulator.simulate`` (checks included). The figure is from CPU time,
best of a few runs, after compilation. ``routes`` puts every device behind a link in and a link out.

Larger graphs are wider, too (the square root of their tasks), so more transfers are under way at a time; on shared
routes each of them costs. ``--width`` holds the parallelism fixed and shows what the number of tasks alone does.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from stretto.core.cluster import Cluster, Links
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.graphs.conditions import Contention
from stretto.graphs.simulator import simulate
from stretto.graphs.workloads.random_dag import random_dag

NUM_DEVICES = 32
CASES: tuple[tuple[str, Contention, Discipline, bool], ...] = (
    ("none", "none", "work-conserving", False),
    ("none, sequence", "none", "sequence", False),
    ("fifo", "fifo", "work-conserving", False),
    ("fair", "fair", "work-conserving", False),
    ("fifo, routes", "fifo", "work-conserving", True),
    ("fair, routes", "fair", "work-conserving", True),
)


def star(cluster: Cluster) -> Cluster:
    """Give each device one link out and one link in, shared by all its transfers."""
    m = cluster.num_devices
    routes = [[a, m + b] if a != b else [] for a in range(m) for b in range(m)]
    links = Links(
        tuple(f"out{d}" for d in range(m)) + tuple(f"in{d}" for d in range(m)),
        np.full(2 * m, cluster.bandwidth[0, 1]),
        np.cumsum([0] + [len(route) for route in routes]).astype(np.int32),
        np.array([link for route in routes for link in route], dtype=np.int32),
    )
    return replace(cluster, links=links)


def tasks_per_second(problem: Problem, plan: Plan, contention: Contention, *, repeats: int) -> float:
    """Return the rate of the fastest run."""
    best = float("inf")
    for _ in range(repeats + 1):
        begin = time.thread_time()
        simulate(problem, plan, contention=contention)
        best = min(best, time.thread_time() - begin)
    return problem.num_tasks / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 1,000,000 tasks")
    parser.add_argument("--width", type=int, help="tasks per layer, the same for every size")
    options = parser.parse_args()
    sizes = (1_000, 5_000, 100_000) + ((1_000_000,) if options.large else ())
    cluster = Cluster.parse(f"cpu:{NUM_DEVICES // 2}x1.0,gpu:{NUM_DEVICES // 2}x2.0")
    print(f"{'tasks':>9} {'devices':>7}  {'case':16} {'tasks/s':>12}")
    for num_tasks in sizes:
        graph = random_dag(num_tasks, seed=1, width=options.width)
        assignment = np.random.default_rng(2).integers(0, NUM_DEVICES, num_tasks).astype(np.int32)
        for name, contention, discipline, is_routed in CASES:
            problem = Problem.of(graph, star(cluster) if is_routed else cluster)
            plan = Plan(assignment, problem.arrays.topo, discipline)
            rate = tasks_per_second(problem, plan, contention, repeats=max(2, min(20, 50_000 // num_tasks)))
            print(f"{num_tasks:>9,} {NUM_DEVICES:>7}  {name:16} {rate:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()
