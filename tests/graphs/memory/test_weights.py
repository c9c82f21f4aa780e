"""Weights count once per device that reads them: in simulation, packings, proofs and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.devices.weights import Weights, resident_of_devices
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Job, Workload
from stretto.errors import Infeasible, InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT
from stretto.graphs.evaluate import Setting, evaluate
from stretto.graphs.memory.needs import MemoryNeeds
from stretto.graphs.memory.peak import peak_memory
from stretto.graphs.simulator import simulate


def chain(num_tasks: int, weight_of: list[list[int]], sizes: list[float], *, data: float = 10.0) -> TaskGraph:
    """A chain whose tasks read the given weights."""
    build = GraphBuilder("chain")
    weights = [build.weight(size) for size in sizes]
    for task in range(num_tasks):
        build.task(f"t{task}", 1.0)
        for item in weight_of[task]:
            build.read_weight(task, weights[item])
        if task:
            build.edge(task - 1, task, data)
    return build.graph()


def on(graph: TaskGraph, limit: float, num_devices: int = 2) -> Problem:
    devices = [Device(f"d{d}", memory_bytes=limit) for d in range(num_devices)]
    return Problem.of(graph, Cluster.uniform(devices))


def test_a_weight_that_two_tasks_read_counts_once_per_device() -> None:
    graph = chain(3, [[0], [0], [1]], [100.0, 30.5])
    assert resident_of_devices(graph, np.array([0, 0, 1]), 2).tolist() == [100, 31]
    assert resident_of_devices(graph, np.array([0, 1, 1]), 2).tolist() == [100, 131]


def test_plans_fit_where_each_weight_counts_once() -> None:
    graph = chain(4, [[0], [0], [1], [1]], [100.0, 100.0])
    result = evaluate(on(graph, 125), "heft")
    assert result.plan.assignment.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    with pytest.raises(Infeasible, match="needs 110 bytes at one moment"):
        evaluate(on(graph, 105), "heft")
    with pytest.raises(Infeasible, match="keep 200 bytes resident, and all devices together have 150"):
        evaluate(on(chain(4, [[0], [0], [1], [1]], [100.0, 100.0], data=0.0), 150, 1), "heft")


@pytest.mark.parametrize("seed", range(30))
def test_the_peak_is_within_the_limit_of_a_run_and_what_the_run_needs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 12, 3
    reads = [rng.choice(4, size=rng.integers(0, 3), replace=False).tolist() for _ in range(n)]
    graph = chain(n, reads, rng.integers(1, 50, 4).astype(float).tolist(), data=float(rng.integers(1, 20)))
    graph = replace(graph, memory_bytes=rng.integers(0, 9, n).astype(float))
    free = Problem.of(graph, Cluster.uniform([Device(f"d{d}") for d in range(m)]))
    plan = Plan(rng.integers(0, m, n).astype(np.int32), np.arange(n, dtype=np.int32), "sequence")
    peak = peak_memory(free, simulate(free, plan, record_transfers=True))
    assert np.all(peak >= resident_of_devices(graph, plan.assignment, m))
    tight = Cluster.uniform([Device(f"d{d}", memory_bytes=max(1.0, peak[d])) for d in range(m)])
    limited = Problem.of(graph, tight)
    again = Setting().run(limited, plan, record_transfers=True)
    assert np.array_equal(peak_memory(limited, again), peak)


@pytest.mark.parametrize("seed", range(20))
def test_necessary_conditions_never_exclude_what_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reads = [rng.choice(3, size=rng.integers(0, 3), replace=False).tolist() for _ in range(8)]
    problem = on(chain(8, reads, rng.integers(1, 60, 3).astype(float).tolist()), float(rng.integers(60, 160)))
    needs = MemoryNeeds.of(problem)
    assert needs is not None
    try:
        result = evaluate(problem, "heft", setting=Setting())
    except Infeasible:
        return
    assert needs.fits(result.plan.assignment)
    assert needs.impossible(problem) is None


def test_weights_last_in_files_and_in_workloads() -> None:
    graph = chain(3, [[0], [0, 1], []], [100.0, 7.0])
    read = FORMAT.read(Document("chain.json", FORMAT.write(graph)))
    assert isinstance(read, TaskGraph)
    assert read.weights is not None
    assert read.weights.size_bytes.tolist() == [100, 7]
    assert read.weights.task.tolist() == [0, 1, 1]
    both = Problem.of(Workload("two", (Job(graph, 0.0), Job(graph, 5.0))), Cluster.parse("cpu:2")).graph
    assert both.weights is not None
    assert both.weights.size_bytes.tolist() == [100, 7, 100, 7]
    assert both.weights.task.tolist() == [0, 1, 1, 3, 4, 4]
    assert both.weights.item.tolist() == [0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "task", "item", "message"),
    [([-1.0], [0], [0], "weight 0 has -1"), ([1.0], [5], [0], "range 0..2"), ([1.0], [0], [1], "range 0..0")],
)
def test_wrong_weights_are_refused(sizes: list[float], task: list[int], item: list[int], message: str) -> None:
    def build() -> TaskGraph:
        weights = Weights(np.array(sizes), np.array(task, dtype=np.int32), np.array(item, dtype=np.int32))
        return replace(chain(3, [[], [], []], []), weights=weights)

    with pytest.raises(InvalidInput, match=message):
        build()
