"""Elastic pools: devices come when there is work for them and go when there is none, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher
from stretto.engines.driver.driver import Driver
from stretto.engines.driver.elastic import Elastic
from stretto.engines.driver.events import DeviceJoined, DeviceLost, Event, Scale
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidInput

FIXED = SimulatedEngine(keeps_data=True)


def burst_and_chain(num_wide: int, length: int, seconds: float = 10.0) -> TaskGraph:
    """Many tasks at once, and behind all of them a chain."""
    n = num_wide + length
    wide = np.arange(num_wide)
    source = np.concatenate([wide, np.arange(num_wide, n - 1)])
    target = np.concatenate([np.full(num_wide, num_wide), np.arange(num_wide + 1, n)])
    return TaskGraph.from_edges(np.full(n, seconds), source, target)


def play(
    engine: SimulatedEngine, graph: TaskGraph, cluster: Cluster, decider: Plan | Dispatcher
) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []
    work = Work.timed(graph)
    options = RunOptions(on_event=events.append)
    return engine.play(Problem.of(graph, cluster), decider, work, options).check(), events


def device_seconds(events: list[Event], num_devices: int, num_first: int, end_s: float) -> float:
    """Add up how long each device was there."""
    since = dict.fromkeys(range(min(num_first, num_devices)), 0.0)
    total = 0.0
    for event in events:
        if isinstance(event, DeviceJoined):
            since[event.device] = event.at_s
        elif isinstance(event, DeviceLost):
            total += event.at_s - since.pop(event.device)
    return total + sum(end_s - start_s for start_s in since.values())


def test_a_pool_grows_with_the_backlog_and_shrinks_when_idle() -> None:
    graph, cluster = burst_and_chain(40, 30), Cluster.parse("cpu:8")
    fixed, _ = play(FIXED, graph, cluster, GreedyDispatcher())
    engine = SimulatedEngine(keeps_data=True, elastic=Elastic(backlog_s=30.0, idle_s=20.0), join_s=5.0)
    found, events = play(engine, graph, cluster, GreedyDispatcher())
    joined = [event for event in events if isinstance(event, DeviceJoined)]
    left = [event for event in events if isinstance(event, DeviceLost)]
    # 400 s of work and at most 30 s for each: all seven come at once, and all but one go while the chain runs.
    assert {event.device for event in joined} == set(range(1, 8))
    assert {event.at_s for event in joined} == {5.0}
    assert len(left) == 7
    assert fixed.makespan_s <= found.makespan_s <= fixed.makespan_s + 15.0
    used_s = device_seconds(events, 8, 1, found.makespan_s)
    assert used_s < 0.5 * 8 * fixed.makespan_s
    assert used_s >= 70 * 10.0


def test_a_small_backlog_asks_for_nobody() -> None:
    engine = SimulatedEngine(keeps_data=True, elastic=Elastic(backlog_s=1000.0, idle_s=1.0))
    _, events = play(engine, burst_and_chain(20, 3), Cluster.parse("cpu:4"), GreedyDispatcher())
    assert not any(isinstance(event, DeviceJoined) for event in events)


def test_somebody_is_asked_for_when_nobody_is_there() -> None:
    elastic = Elastic(backlog_s=1000.0, idle_s=5.0, min_devices=0)
    engine = SimulatedEngine(keeps_data=True, elastic=elastic, join_s=3.0)
    found, events = play(engine, burst_and_chain(2, 2), Cluster.parse("cpu:4"), GreedyDispatcher())
    assert [event.device for event in events if isinstance(event, DeviceJoined)] == [0]
    assert found.start_s.min() == 3.0


def test_kinds_are_asked_for_apart() -> None:
    """Only gpus can run the tasks, and none is there."""
    graph = TaskGraph.from_edges(
        np.full(4, 10.0), [], [], kinds=("cpu", "gpu"), kind_duration_s=np.array([[np.inf, 10.0]] * 4)
    )
    problem = Problem.of(graph, Cluster.parse("cpu:2,gpu:2"))
    driver = Driver(problem, GreedyDispatcher(), elastic=Elastic(backlog_s=15.0))
    (order,) = driver.begin()
    assert order == Scale("gpu", (2, 3))
    assert order.num_devices == 2


@st.composite
def cases(draw: st.DrawFn) -> tuple[TaskGraph, Cluster, Plan]:
    n, m = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    source, target = np.nonzero(np.triu(rng.random((n, n)) < 0.25, 1))
    graph = TaskGraph.from_edges(rng.integers(1, 9, n).astype(float), source, target, float(draw(st.integers(0, 3))))
    discipline: Discipline = draw(st.sampled_from(["work-conserving", "sequence"]))
    plan = Plan(rng.integers(0, m, n).astype(np.int32), np.arange(n, dtype=np.int32), discipline)
    return graph, Cluster.parse(f"cpu:{m}@1GB/s"), plan


elastics = st.builds(
    Elastic,
    backlog_s=st.sampled_from([0.0, 5.0, 50.0]),
    idle_s=st.sampled_from([0.0, 2.0, 9.0]),
    min_devices=st.integers(0, 3),
)


@settings(max_examples=150, deadline=None)
@given(case=cases(), elastic=elastics)
def test_a_plan_on_devices_that_come_at_once_takes_no_longer(
    case: tuple[TaskGraph, Cluster, Plan], elastic: Elastic
) -> None:
    graph, cluster, plan = case
    fixed, _ = play(FIXED, graph, cluster, plan)
    found, events = play(SimulatedEngine(keeps_data=True, elastic=elastic), graph, cluster, plan)
    assert found.device.tolist() == plan.assignment.tolist()
    assert found.start_s.tolist() == fixed.start_s.tolist()
    used_s = device_seconds(events, cluster.num_devices, elastic.min_devices, found.makespan_s)
    assert used_s <= cluster.num_devices * found.makespan_s + 1e-9


@settings(max_examples=150, deadline=None)
@given(case=cases(), elastic=elastics, join_s=st.sampled_from([0.0, 4.0]))
def test_everything_ends_whatever_comes_and_goes(
    case: tuple[TaskGraph, Cluster, Plan], elastic: Elastic, join_s: float
) -> None:
    graph, cluster, plan = case
    engine = SimulatedEngine(keeps_data=True, elastic=elastic, join_s=join_s)
    for decider in (plan, GreedyDispatcher()):
        found, _ = play(engine, graph, cluster, decider)
        assert found.is_finished.all()
        assert found.attempts.tolist() == [1] * graph.num_tasks


@pytest.mark.parametrize("field", ["backlog_s", "idle_s", "min_devices"])
def test_negative_settings_are_refused(field: str) -> None:
    with pytest.raises(InvalidInput, match="negative"):
        Elastic(**{field: -1})
