"""Pipelines: the cuts of chains are exact, the period is what the simulated pipeline shows, memory is kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stretto
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.problem import Problem
from stretto.errors import Infeasible, InvalidInput
from stretto.graphs.pipelines.cuts import best_cuts
from stretto.graphs.pipelines.plan import least_period_s, plan_pipeline
from stretto.graphs.pipelines.stages import depth_of, in_flight_bytes, run_pipeline, stage_loads
from stretto.graphs.workloads.random_dag import random_dag


def chain(seed: int, n: int = 7, m: int = 3, memory: float = float("inf")) -> Problem:
    rng = np.random.default_rng(seed)
    build = GraphBuilder("chain")
    tasks = [build.task(f"t{i}", float(rng.integers(1, 9)), resident_bytes=float(rng.integers(1, 5))) for i in range(n)]
    for a, b in itertools.pairwise(tasks):
        build.edge(a, b, float(rng.integers(0, 4)))
    devices = [Device(f"d{i}", speed=float(rng.choice([1.0, 2.0])), memory_bytes=memory) for i in range(m)]
    return Problem.of(build.graph(), Cluster.uniform(devices, bandwidth=1.0))


def contiguous(n: int, m: int) -> list[np.ndarray]:
    """All ways to give devices, in their order, consecutive stretches of a chain."""
    found = []
    for ends in itertools.combinations_with_replacement(range(n + 1), m - 1):
        lengths = np.diff([0, *ends, n])
        found.append(np.repeat(np.arange(m, dtype=np.int32), lengths))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_cuts_of_chains_are_exact(seed: int) -> None:
    problem = chain(seed)
    order = problem.arrays.topo
    period, assignment = best_cuts(problem, order)
    periods = [stage_loads(problem, cut[np.argsort(order)]).period_s for cut in contiguous(7, 3)]
    assert period == pytest.approx(min(periods), rel=1e-12)
    assert stage_loads(problem, assignment).period_s == pytest.approx(period, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_no_placement_of_a_tiny_graph_is_missed_by_much_and_none_is_below_the_bound(seed: int) -> None:
    problem = chain(seed, n=6, m=2)
    best = min(
        stage_loads(problem, np.array(one, dtype=np.int32)).period_s for one in itertools.product(range(2), repeat=6)
    )
    found = plan_pipeline(problem, seed=seed)
    assert least_period_s(problem) <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= found.period_s <= found.cut_period_s
    assert found.period_s <= 1.25 * best


@pytest.mark.parametrize("seed", range(5))
def test_the_simulated_pipeline_has_the_period(seed: int) -> None:
    """Once the pipeline is full, one microbatch leaves per largest load, never faster."""
    problem = Problem.of(random_dag(num_tasks=30, seed=seed), Cluster.parse("gpu:3@1GB/s"))
    found = plan_pipeline(problem, num_microbatches=12, seed=seed)
    loads = stage_loads(problem, found.assignment)
    order = np.argsort(depth_of(problem, found.assignment), kind="stable").astype(np.int32)
    done = run_pipeline(loads.compute_s + loads.transfer_s, order, 12)
    assert np.diff(done)[-1] == pytest.approx(found.period_s)
    assert np.all(np.diff(done) >= found.period_s * (1 - 1e-9))
    assert found.period_s >= max(loads.compute_s)
    assert (found.latency_s, found.total_s) == (done[0], done[-1])


def test_microbatches_in_flight_take_memory() -> None:
    problem = chain(3)
    assignment = np.repeat(np.arange(3, dtype=np.int32), [2, 2, 3])
    one, many = (in_flight_bytes(problem, assignment, count) for count in (1, 8))
    loads = stage_loads(problem, assignment)
    assert np.allclose(one, loads.resident_bytes + loads.activation_bytes)
    assert np.allclose(many, loads.resident_bytes + np.array([3, 2, 1]) * loads.activation_bytes)


def test_plans_keep_memory_or_say_that_they_cannot() -> None:
    for seed in range(6):
        total = chain(seed).graph.resident_bytes
        assert total is not None
        problem = chain(seed, memory=float(total.sum()) * 0.6 + 12)
        found = plan_pipeline(problem, num_microbatches=2, seed=seed)
        assert np.all(found.memory_bytes <= problem.cluster.devices[0].memory_bytes)
    with pytest.raises(Infeasible, match="no contiguous cut"):
        plan_pipeline(chain(1, memory=2.0))


def test_the_facade_plans_pipelines() -> None:
    found = stretto.pipeline("workload:transformer", "gpu:4@50GB/s", microbatches=4)
    assert found.num_microbatches == 4
    assert found.lower_bound_s <= found.period_s <= found.cut_period_s
    with pytest.raises(InvalidInput):
        stretto.pipeline("workload:transformer", "gpu:4", microbatches=0)
