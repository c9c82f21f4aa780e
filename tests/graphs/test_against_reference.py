"""The kernels equal the reference to the last bit, or fail with the same kind of error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_cases import cases

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import StrettoError
from stretto.graphs import reference
from stretto.graphs import simulator as device
from stretto.graphs.conditions import CONTENTIONS

NOISES = st.sampled_from([0.0, 0.0, 0.3])


def outcome(simulate: Any, problem: Problem, plan: Plan, options: dict[str, Any]) -> Schedule | str:
    """The schedule, or the error as text: both implementations owe the user the same message."""
    try:
        schedule: Schedule = simulate(problem, plan, record_transfers=True, **options)
        return schedule
    except StrettoError as error:
        return f"{type(error).__name__}: {error}"


def assert_same(problem: Problem, plan: Plan, **options: Any) -> None:
    fast = outcome(device.simulate, problem, plan, options)
    slow = outcome(reference.simulate, problem, plan, options)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return
    np.testing.assert_array_equal(fast.start_s, slow.start_s)
    np.testing.assert_array_equal(fast.finish_s, slow.finish_s)
    assert fast.transfers is not None
    assert slow.transfers is not None
    for name in ("object_index", "source", "target", "start_s", "finish_s"):
        np.testing.assert_array_equal(getattr(fast.transfers, name), getattr(slow.transfers, name), err_msg=name)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", CONTENTIONS)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_pair_links(discipline: str, contention: str, data: st.DataObject) -> None:
    problem, plan = data.draw(cases())
    assert_same(problem, plan, discipline=discipline, contention=contention, noise=data.draw(NOISES), seed=7)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", ["fifo", "fair"])
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_shared_links(discipline: str, contention: str, data: st.DataObject) -> None:
    problem, plan = data.draw(cases(with_links=True, topological=True))
    assert_same(problem, plan, discipline=discipline, contention=contention, noise=data.draw(NOISES), seed=3)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", CONTENTIONS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_memory(discipline: str, contention: str, data: st.DataObject) -> None:
    problem, plan = data.draw(cases(with_links=data.draw(st.booleans()), with_memory=True))
    assert_same(problem, plan, discipline=discipline, contention=contention)


@settings(max_examples=60, deadline=None)
@given(case=cases(), discipline=st.sampled_from(DISCIPLINES))
def test_the_general_loop_equals_the_fast_ones(case: tuple[Problem, Plan], discipline: str) -> None:
    """Endless but finite memory changes nothing, though it takes another kernel."""
    problem, plan = case
    devices = tuple(replace(item, memory_bytes=1e15) for item in problem.cluster.devices)
    roomy = replace(problem, cluster=replace(problem.cluster, devices=devices))
    fast = outcome(device.simulate, roomy, plan, {"discipline": discipline, "memory_limits": False})
    general = outcome(device.simulate, roomy, plan, {"discipline": discipline})
    if isinstance(fast, str) or isinstance(general, str):
        assert fast == general
    else:
        np.testing.assert_array_equal(fast.finish_s, general.finish_s)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", CONTENTIONS)
def test_a_larger_graph_with_inexact_times(discipline: str, contention: str) -> None:
    """Small integers hide rounding; here no two sums are alike."""
    rng = np.random.default_rng(11)
    n, num_edges = 120, 300
    target = rng.integers(1, n, num_edges)
    source = rng.integers(np.maximum(0, target - 30), target)
    graph = TaskGraph.from_edges(rng.uniform(0, 3, n), source, target, rng.uniform(0, 4, num_edges))
    cluster = Cluster.related(rng.uniform(0.5, 2, 5), bandwidth=rng.uniform(0.5, 3, (5, 5)), latency_s=0.07)
    plan = Plan(rng.integers(0, 5, n).astype(np.int32), np.arange(n, dtype=np.int32))
    assert_same(Problem.of(graph, cluster), plan, discipline=discipline, contention=contention, noise=0.2, seed=1)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("contention", CONTENTIONS)
def test_memory_that_delays(discipline: str, contention: str) -> None:
    """Limits that bind without stopping everything, which random small cases rarely have."""
    num_delayed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 30
        target = rng.integers(1, n, 40)
        source = rng.integers(np.maximum(0, target - 6), target)
        graph = TaskGraph.from_edges(rng.integers(1, 4, n), source, target, rng.integers(1, 5, 40))
        devices = [Device(f"d{i}", memory_bytes=float(rng.integers(20, 30))) for i in range(3)]
        problem = Problem.of(graph, Cluster.uniform(devices, bandwidth=1.0))
        plan = Plan(rng.integers(0, 3, n).astype(np.int32), np.arange(n, dtype=np.int32))
        options = {"discipline": discipline, "contention": contention}
        assert_same(problem, plan, **options)
        bound = outcome(device.simulate, problem, plan, options)
        free = outcome(device.simulate, problem, plan, options | {"memory_limits": False})
        if not isinstance(bound, str) and not isinstance(free, str):
            num_delayed += not np.array_equal(bound.start_s, free.start_s)
    assert num_delayed >= 2
