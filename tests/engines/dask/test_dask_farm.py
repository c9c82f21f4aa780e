"""Evaluations on Dask's workers equal those made here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.problem import Problem
from stretto.engines.dask.farm import farm, planned_makespan
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.workloads.factorizations import cholesky


def draw(problem: Problem, seed: int) -> tuple[int, float]:
    """Return something that depends on the problem and on the seed."""
    rng = np.random.default_rng(seed)
    return problem.num_tasks, float(problem.arrays.duration[rng.integers(problem.num_tasks)].sum())


def test_results_equal_the_local_ones(processes: tuple[Any, Any]) -> None:
    _, client = processes
    graph = cholesky(num_tiles=5)
    cluster = stretto.Cluster.parse("cpu:2,gpu:1x4.0")
    evaluate = planned_makespan("random")
    local = [evaluate(Problem.of(graph, cluster), seed) for seed in range(6)]
    assert farm(client, evaluate, graph, cluster, range(6)) == local
    assert len(set(local)) > 1


def test_any_function_of_problem_and_seed_will_do(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    cluster = stretto.Cluster.parse("cpu:3x1.5")
    for tiles in (3, 4):  # the second problem must not get the first one's compiled arrays
        graph = cholesky(num_tiles=tiles)
        problem = Problem.of(graph, cluster)
        assert farm(client, draw, graph, cluster, [5, 1, 9]) == [draw(problem, seed) for seed in (5, 1, 9)]


def test_wrong_wishes_are_refused(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph, cluster = cholesky(num_tiles=2), stretto.Cluster.parse("cpu:1")
    with pytest.raises(InvalidInput, match="twice"):
        farm(client, draw, graph, cluster, [1, 1])
    with pytest.raises(UnknownName, match="heft"):
        planned_makespan("hefty")
