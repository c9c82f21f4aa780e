"""The layered random graph: connected, of the asked size and ratio, quick at a million tasks."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.workloads.random_dag import distinct
from stretto.workloads import random_cluster, random_dag


def num_components(graph: TaskGraph) -> int:
    source, target, _ = graph.edges
    n = graph.num_tasks
    count, _ = connected_components(coo_array((np.ones(len(source)), (source, target)), shape=(n, n)), directed=False)
    return int(count)


@settings(max_examples=60, deadline=None)
@given(
    num_tasks=st.integers(1, 300),
    seed=st.integers(0, 50),
    edges_per_task=st.floats(1, 6),
    ccr=st.just(0.0) | st.floats(1e-6, 20),
    width=st.none() | st.integers(1, 400),
    share=st.booleans(),
)
def test_what_was_asked_for(
    num_tasks: int, seed: int, edges_per_task: float, ccr: float, width: int | None, share: bool
) -> None:
    graph = random_dag(num_tasks, seed=seed, edges_per_task=edges_per_task, ccr=ccr, width=width, share=share)
    source, target, size = graph.edges
    assert graph.num_tasks == num_tasks
    assert num_components(graph) == 1
    assert np.all(source < target)
    assert len({*zip(source.tolist(), target.tolist(), strict=True)}) == len(source)
    assert len(source) <= max(num_tasks - 1, round(edges_per_task * num_tasks))
    if num_tasks > 1:
        assert size.mean() / 1e9 == pytest.approx(ccr * graph.work_s.mean(), rel=1e-9)
    if share:
        assert len(np.unique(graph.object_task)) == graph.num_objects


@pytest.mark.parametrize("edges_per_task", [1.5, 2.5, 5.0])
def test_edge_count_is_reached_in_graphs_with_room(edges_per_task: float) -> None:
    graph = random_dag(2000, edges_per_task=edges_per_task)
    assert graph.num_edges == pytest.approx(2000 * edges_per_task, rel=0.01)


def test_width_sets_the_depth() -> None:
    def depth(graph: TaskGraph) -> int:
        level = np.zeros(graph.num_tasks, dtype=int)
        for u, v in zip(*graph.edges[:2], strict=True):  # by ascending source
            level[v] = max(level[v], level[u] + 1)
        return int(level.max())

    assert 80 < depth(random_dag(1000, width=10)) < 125
    assert 8 < depth(random_dag(1000, width=100)) < 16


def test_seed_decides() -> None:
    first, again, other = (random_dag(500, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.work_s, again.work_s)
    assert np.array_equal(first.read_task, again.read_task)
    assert not np.array_equal(first.read_task, other.read_task)


def test_a_million_tasks_in_seconds() -> None:
    begin = time.process_time()
    graph = random_dag(1_000_000, seed=3)
    assert time.process_time() - begin < 8
    assert graph.num_edges == pytest.approx(2.5e6, rel=0.001)


@pytest.mark.parametrize(
    "wrong",
    [{"num_tasks": 0}, {"edges_per_task": 0.5}, {"ccr": -1.0}, {"ccr": float("nan")}, {"width": 0}, {"work_mean_s": 0}],
)
def test_wrong_arguments(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        random_dag(**{"num_tasks": 10, **wrong})  # type: ignore[arg-type]


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_a_sorted_set(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


@settings(max_examples=40, deadline=None)
@given(num_devices=st.integers(1, 20), seed=st.integers(0, 99), speeds=st.floats(1, 30), links=st.floats(1, 30))
def test_random_cluster_keeps_its_spreads(num_devices: int, seed: int, speeds: float, links: float) -> None:
    cluster = random_cluster(num_devices, seed=seed, speed_spread=speeds, link_spread=links)
    speed = np.array([device.speed for device in cluster.devices])
    off = cluster.bandwidth[~np.eye(num_devices, dtype=bool)]
    assert speed.max() / speed.min() <= speeds * (1 + 1e-9)
    assert np.array_equal(cluster.bandwidth, cluster.bandwidth.T)
    if len(off):
        assert off.max() / off.min() <= links * (1 + 1e-9)
    Problem.of(random_dag(5), cluster)


def test_random_cluster_uses_its_spread() -> None:
    speed = np.array([device.speed for device in random_cluster(400, seed=0, speed_spread=8).devices])
    assert speed.max() / speed.min() > 7.5
    assert np.exp(np.log(speed).mean()) == pytest.approx(1, rel=0.1)
    assert len({device.speed for device in random_cluster(9, speed_spread=1).devices}) == 1
    with pytest.raises(InvalidInput, match="at least 1"):
        random_cluster(3, speed_spread=0.5)
    assert isinstance(random_cluster(2), Cluster)
