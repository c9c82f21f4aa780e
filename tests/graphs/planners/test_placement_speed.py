"""How long planners may take; run on a quiet machine by ``make test-long``."""

from __future__ import annotations

import time

import numpy as np
import pytest
from problem_strategies import random_problem

from stretto.catalog import PLANNERS
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.registry import construct

pytestmark = pytest.mark.long


def cpu_seconds(name: str, problem: Problem, repetitions: int) -> float:
    planner = construct("planner", name, PLANNERS, {})
    planner.plan(random_problem(50, 4, seed=0), Budget())  # compiles
    times = []
    for _ in range(repetitions):
        begin = time.process_time()
        planner.plan(problem, Budget())
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize(
    ("name", "limit_s"), [("heft", 0.02), ("cpop", 0.03), ("peft", 0.1), ("etf", 1.0), ("bil", 1.0)]
)
def test_five_thousand_tasks_on_thirty_two_devices(name: str, limit_s: float) -> None:
    assert cpu_seconds(name, random_problem(5000, 32, seed=1), 5) < limit_s


def gaps_that_never_fit(num_tasks: int, num_devices: int) -> Problem:
    """A chain that hops between devices and leaves a gap on each, then tasks a little too long for any."""
    rng = np.random.default_rng(0)
    chain = num_tasks // 2
    table = np.full((num_tasks, num_devices), np.inf)
    table[np.arange(chain), np.arange(chain) % num_devices] = 1.0
    table[chain:] = rng.uniform(num_devices - 0.99, num_devices + 3, (num_tasks - chain, num_devices))
    kinds = tuple(f"k{i}" for i in range(num_devices))
    graph = TaskGraph.from_edges(
        np.ones(num_tasks), np.arange(chain - 1), np.arange(1, chain), kinds=kinds, kind_duration_s=table
    )
    return Problem.of(graph, Cluster.uniform([Device(kind, kind) for kind in kinds]))


def test_insertion_does_not_walk_the_past() -> None:
    assert cpu_seconds("heft", gaps_that_never_fit(100_000, 2), 1) < 3.0
    assert cpu_seconds("heft", random_problem(100_000, 4, seed=0), 1) < 3.0
