"""The figures of schedules, against figures worked out by hand and against each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.metrics import measure
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.workload import Workload
from stretto.graphs.simulator import simulate


def schedule_of(device: list[int], start: list[float], finish: list[float]) -> Schedule:
    return Schedule(np.array(device, dtype=np.int32), np.array(start), np.array(finish), "sequence")


@pytest.fixture
def priced() -> Problem:
    """A fork of two tasks on two of three devices that cost 1, 2 and 4 dollars per hour."""
    devices = [Device(f"d{i}", price_usd_per_hour=float(2**i)) for i in range(3)]
    graph = TaskGraph.from_edges([3600, 3600, 7200], [0, 0], [1, 2], 100.0, shared_outputs=True)
    return Problem.of(graph, Cluster.uniform(devices, bandwidth=1.0))


def test_hand_computed_figures(priced: Problem) -> None:
    schedule = schedule_of([0, 0, 1], [0, 3600, 3700], [3600, 7200, 10900])
    figures = measure(priced, schedule)
    assert figures.makespan_s == 10900
    assert figures.device_utilization.tolist() == [7200 / 10900, 7200 / 10900, 0.0]
    assert figures.utilization == pytest.approx(2 * 7200 / 10900 / 3)
    assert figures.idle_s == 3700 + 3700 + 10900
    assert figures.num_devices_used == 2
    assert (figures.num_transfers, figures.transferred_bytes) == (1, 100.0)
    assert figures.critical_path_s == 10800
    assert figures.critical_path_share == 10800 / 10900
    assert figures.speedup == 14400 / 10900
    assert figures.cost_usd == pytest.approx(2 * 1.0 + 2 * 2.0)
    assert figures.cost_reserved_usd == pytest.approx(7 * 10900 / 3600)
    assert figures.flow_s.tolist() == [10900]
    assert figures.slowdown.tolist() == [10900 / 10800]


def test_traffic_equals_the_recorded_transfers() -> None:
    rng = np.random.default_rng(5)
    target = rng.integers(1, 40, 90)
    graph = TaskGraph.from_edges(np.ones(40), rng.integers(0, target), target, rng.integers(0, 4, 90))
    problem = Problem.of(graph, Cluster.parse("cpu:4@1B/s"))
    plan = Plan(rng.integers(0, 4, 40).astype(np.int32), np.arange(40, dtype=np.int32))
    schedule = simulate(problem, plan, record_transfers=True)
    assert schedule.transfers is not None
    figures = measure(problem, replace(schedule, transfers=None))
    assert figures.num_transfers == len(schedule.transfers.object_index)
    assert figures.transferred_bytes == graph.object_size[schedule.transfers.object_index].sum()


def test_transfer_times_are_not_bytes() -> None:
    graph = TaskGraph.from_edges([1, 1], [0], [1], 5.0, transfer_unit="seconds")
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    figures = measure(problem, schedule_of([0, 1], [0, 6], [1, 7]))
    assert (figures.num_transfers, figures.transferred_bytes) == (1, 0.0)


def test_jobs_have_flow_times_and_slowdowns() -> None:
    graph = TaskGraph.from_edges([2.0, 2.0], [0], [1], 0.0)
    problem = Problem.of(Workload.of([graph, graph], arrivals_s=[0.0, 1.0]), Cluster.related([1.0, 2.0]))
    figures = measure(problem, schedule_of([0, 0, 1, 1], [0, 2, 1, 9], [2, 4, 2, 10]))
    assert figures.flow_s.tolist() == [4.0, 9.0]
    assert figures.slowdown.tolist() == [2.0, 4.5]  # both need 2 s on the fast device
    assert figures.flow.p50 == 6.5
    assert figures.flow.mean == 6.5
    assert figures.flow.p99 == pytest.approx(4 + 0.99 * 5)
    assert figures.slowdown_summary.p95 == pytest.approx(2 + 0.95 * 2.5)
    # Alone, the fast device works from 0 to 4 without a break.
    assert figures.speedup == pytest.approx(4 / 10)


def test_the_best_single_device_waits_for_arrivals() -> None:
    graph = TaskGraph.from_edges([1.0], [], [])
    problem = Problem.of(Workload.of([graph, graph], arrivals_s=[0.0, 10.0]), Cluster.parse("cpu:1"))
    figures = measure(problem, schedule_of([0, 0], [0, 10], [1, 11]))
    assert figures.speedup == 1.0


def test_no_single_device_can_run_everything() -> None:
    table = np.array([[1.0, np.inf], [np.inf, 1.0]])
    graph = TaskGraph.from_edges([1, 1], [], [], kinds=("cpu", "gpu"), kind_duration_s=table)
    figures = measure(Problem.of(graph, Cluster.parse("cpu:1,gpu:1")), schedule_of([0, 1], [0, 0], [1, 1]))
    assert np.isnan(figures.speedup)


def test_graphs_that_take_no_time() -> None:
    figures = measure(
        Problem.of(TaskGraph.from_edges([0.0], [], []), Cluster.parse("cpu:2")), schedule_of([0], [0.0], [0.0])
    )
    assert figures.makespan_s == 0
    assert figures.utilization == 0
    assert figures.critical_path_share == 1.0
    assert figures.speedup == 1.0
    assert figures.slowdown.tolist() == [1.0]
    late = measure(
        Problem.of(TaskGraph.from_edges([0.0], [], []), Cluster.parse("cpu:2")), schedule_of([0], [0.5], [0.5])
    )
    assert late.slowdown.tolist() == [np.inf]  # however little it took
