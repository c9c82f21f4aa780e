"""The figures of schedules, against figures worked out by hand and against each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.metrics import Quantiles, gap, gap_or_none, measure, shares_held
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


def test_a_node_is_as_busy_as_its_cores() -> None:
    build = GraphBuilder("g")
    build.task("a", 4.0, cores=1.0)
    build.task("b", 2.0, cores=3.0)
    build.task("c", 2.0)
    devices = [Device("n", cores=4.0, packs=True, price_usd_per_hour=3600.0), Device("d", price_usd_per_hour=7200.0)]
    problem = Problem.of(build.graph(), Cluster.uniform(devices))
    schedule = schedule_of([0, 0, 1], [0, 1, 2], [4, 3, 4])
    assert shares_held(problem, schedule).tolist() == [0.25, 0.75, 1.0]
    figures = measure(problem, schedule)
    assert figures.device_utilization.tolist() == [(4 * 0.25 + 2 * 0.75) / 4, 0.5]
    assert figures.utilization == (0.625 + 0.5) / 2
    assert figures.idle_s == (4 - 2.5) + (4 - 2)
    assert (figures.cost_usd, figures.cost_reserved_usd) == (4 * 1.0 + 2 * 2.0, 4 * 3.0)
    plain = Problem.of(TaskGraph.from_edges([1.0, 1.0], [], []), Cluster.parse("cpu:2"))
    assert shares_held(plain, schedule_of([0, 1], [0, 0], [1, 1])).tolist() == [1.0, 1.0]


def test_one_object_that_goes_to_two_devices_moves_twice_and_empty_ones_never() -> None:
    build = GraphBuilder("g")
    tasks = [build.task(name, 1.0) for name in "abcde"]
    shared = build.object(tasks[0], 8.0)
    for reader in tasks[1:4]:
        build.read(reader, shared)
    build.edge(tasks[0], tasks[4], 0.0)
    build.edge(tasks[1], tasks[4], 3.0)
    problem = Problem.of(build.graph(), Cluster.parse("cpu:4"))
    figures = measure(problem, schedule_of([0, 1, 1, 2, 3], [0, 2, 3, 2, 9], [1, 3, 4, 3, 10]))
    assert (figures.num_transfers, figures.transferred_bytes) == (3, 8 + 8 + 3)
    assert figures.num_devices_used == 4


def test_the_gap_says_how_far_above_its_bound_a_makespan_is() -> None:
    inf = float("inf")
    for makespan, lower, expected in (
        (3.0, 2.0, 0.5), (1.0, 2.0, -0.5), (2.0, 2.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, inf), (inf, 1.0, inf),
        (1.0, inf, inf), (1.0, -1.0, inf), (0.0, -1.0, 0.0), (float("nan"), 1.0, inf), (0.5, 1.5, 0.5 / 1.5 - 1),
    ):  # fmt: skip
        assert gap(makespan, lower) == expected
        assert gap_or_none(makespan, lower) == (None if expected == inf else expected)


def test_costs_count_from_the_first_start_to_the_last_end_of_a_device() -> None:
    devices = [
        Device("a", price_usd_per_hour=1.0),
        Device("b", price_usd_per_hour=10.0),
        Device("c", price_usd_per_hour=7.0),
    ]
    problem = Problem.of(TaskGraph.from_edges([1.0] * 3, [], []), Cluster.uniform(devices))
    figures = measure(problem, schedule_of([1, 0, 1], [7200, 0, 3600], [10800, 1800, 5400]))
    assert figures.cost_usd == pytest.approx(0.5 * 1.0 + 2 * 10.0)
    assert figures.cost_reserved_usd == pytest.approx(3 * 18.0)
    assert figures.idle_s == (10800 - 1800) + (10800 - 5400) + 10800


def test_quantiles_lie_between_values() -> None:
    found = Quantiles.of(np.arange(101.0) * 3)
    assert (found.mean, found.p50, found.p95, found.p99) == (150.0, 150.0, 285.0, 297.0)
