"""Bounds and exact answers on nodes that pack, against schedules and against each other."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from packed_cases import random_problem

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.bounds.area import quick
from stretto.graphs.bounds.bound import bound
from stretto.graphs.evaluate import evaluate


def test_no_schedule_beats_a_bound_and_search_meets_the_proofs() -> None:
    proven = met = 0
    for seed in range(30):
        problem = random_problem(np.random.default_rng([seed, 5]), 9)
        budget = Budget(seed=seed, time_limit_s=4.0, num_threads=1)
        exact = evaluate(problem, "cp-sat", budget=budget)
        found = evaluate(problem, "annealing", params={"max_evaluations": 4000}, budget=Budget(seed, num_threads=1))
        least = min(exact.makespan_s, found.makespan_s) * (1 + 1e-9)
        for value in (*bound(problem).parts.values(), quick(problem), exact.lower_bound_s):
            assert value <= least
        proven += exact.is_proven_optimal
        met += found.makespan_s <= exact.makespan_s * 1.01
    assert proven >= 27
    assert met >= 28


def test_the_area_counts_the_scarcest_resource() -> None:
    build = GraphBuilder("memory-bound")
    for index in range(8):
        build.task(f"t{index}", 3.0, cores=1, memory_bytes=4e9)
    problem = Problem.of(build.graph(), Cluster.parse("node:2*16c8GB"))
    assert bound(problem, methods=["area"]).value_s == pytest.approx(6.0)
    assert evaluate(problem, "heft").is_proven_optimal


def test_predecessors_on_one_node_may_run_side_by_side() -> None:
    """The bound for devices lets producers on one device follow each other; on a node that would be wrong."""
    build = GraphBuilder("join")
    last = build.task("last", 1.0, cores=1)
    for index in range(4):
        build.edge(build.task(f"t{index}", 5.0, cores=1), last, 1e12)
    problem = Problem.of(build.graph(), Cluster.parse("node:2*4c@1MB/s"))
    assert evaluate(problem, "single-device").makespan_s == 6.0
    assert bound(problem).value_s == pytest.approx(6.0)


def test_large_needs_without_a_common_divisor_prove_nothing_wrong() -> None:
    rng = np.random.default_rng(3)
    build = GraphBuilder("odd")
    for index in range(7):
        build.task(f"t{index}", float(rng.integers(1, 6)), cores=1, memory_bytes=float(rng.integers(1, 6) * 10**9 + 7))
    problem = Problem.of(build.graph(), Cluster.parse("node:2*4c9GB"))
    exact = evaluate(problem, "cp-sat", budget=Budget(time_limit_s=3.0, num_threads=1))
    found = evaluate(problem, "annealing", params={"max_evaluations": 4000}, budget=Budget(num_threads=1))
    assert exact.lower_bound_s <= found.makespan_s
    assert exact.makespan_s <= found.makespan_s * 1.01
