"""Figures of the bounds worked out by hand or by plain twins: prices, columns, grids, crowds and choices of methods."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.area import _solve_lp, area, best_prices, related_prices
from stretto.graphs.bounds.interval import _rectangles, combined, crowded, sweep, thresholds
from stretto.graphs.bounds.relaxation import Relaxation, critical_path, least_heads, merged_edges
from stretto.graphs.bounds.rounding import Ticks

from .exhaustive import best_makespan
from .project_cases import project_of

INF = float("inf")
QUICK = settings(max_examples=60, deadline=None)
EPSILON = float(np.finfo(np.float64).eps)


def free(work: list[float], cluster: str = "cpu:2", **more: object) -> Problem:
    return Problem.of(TaskGraph.from_edges(work, [], [], **more), Cluster.parse(cluster))  # type: ignore[arg-type]


# Area ---------------------------------------------------------------------------------------------


def test_work_is_divided_by_speed() -> None:
    assert area(Relaxation.of(free([2.0, 4.0, 6.0], "cpu:2,gpu:1x2"))) == pytest.approx(12 / 4)
    late = Problem.of(
        Workload.of([TaskGraph.from_edges([8.0], [], [])] * 2, arrivals_s=[3.0, 5.0]), Cluster.parse("cpu:2")
    )
    assert area(Relaxation.of(late)) == pytest.approx(3 + 8)


def test_related_prices_are_speeds() -> None:
    duration = np.array([[4.0, 2.0], [8.0, 4.0]])
    assert related_prices(duration, np.array([2.0, 1.0])).tolist() == pytest.approx([0.25, 0.5])
    gaps = np.array([[4.0, INF], [8.0, 3.0], [INF, 3.0]])
    assert related_prices(gaps, np.array([1.0, 2.0])).tolist() == pytest.approx([1 / 5, 2 / 5])
    assert related_prices(np.array([[0.0, 2.0]]), np.array([1.0, 1.0])).tolist() == pytest.approx([0.5, 0.5])
    assert related_prices(np.zeros((2, 2)), np.array([1.0, 3.0])).tolist() == pytest.approx([0.25, 0.25])


def test_each_to_its_own_is_priced_exactly() -> None:
    # Half of the tasks like one device, half the other; a mean would see no difference.
    duration = np.array([[1.0, 9.0], [9.0, 1.0]] * 3)
    prices = best_prices(duration, np.ones(2))
    assert prices.tolist() == pytest.approx([0.5, 0.5])
    lopsided = np.array([[1.0, 2.0], [1.0, 9.0], [1.0, 9.0]])
    found = best_prices(lopsided, np.ones(2))
    # The first task is shared: 2 + s = 2 (1 - s), so all ends at 2 + s with s = 0.
    assert kernels.priced_area(lopsided, found, np.empty(2)) == pytest.approx(2.0)
    assert best_prices(np.array([[3.0], [INF]]), np.array([4.0])).tolist() == [0.25]


@QUICK
@given(st.integers(1, 12), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_the_linear_program_is_optimal_in_both_directions(n: int, num_columns: int, seed: int) -> None:
    """Its prices prove as much as the best division of tasks takes, found by the primal program."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    duration = rng.uniform(0.1, 5.0, (n, num_columns))
    duration[rng.random(duration.shape) < 0.2] = INF
    duration[:, 0] = np.where(np.isfinite(duration).any(axis=1), duration[:, 0], 1.0)
    count = rng.integers(1, 4, num_columns).astype(float)
    pairs = [(t, c) for t in range(n) for c in range(num_columns) if duration[t, c] < INF]
    shares = len(pairs)
    limit, once = np.zeros((num_columns, shares + 1)), np.zeros((n, shares + 1))
    for at, (task, column) in enumerate(pairs):
        limit[column, at] = duration[task, column]
        once[task, at] = 1.0
    limit[:, shares] = -count
    goal = np.zeros(shares + 1)
    goal[shares] = 1.0
    least = linprog(goal, A_ub=limit, b_ub=np.zeros(num_columns), A_eq=once, b_eq=np.ones(n)).fun
    prices = _solve_lp(duration, count)
    assert prices is not None
    assert float(count @ prices) == pytest.approx(1.0)
    assert kernels.priced_area(duration, prices, np.empty(num_columns)) == pytest.approx(least, rel=1e-7)


def test_no_work_has_no_price() -> None:
    assert _solve_lp(np.zeros((2, 2)), np.ones(2)) is None
    assert best_prices(np.zeros((2, 2)), np.ones(2)).tolist() == [0.5, 0.5]


def test_large_tables_are_climbed_on_a_sample_and_then_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    duration, count = rng.uniform(0.1, 5.0, (900, 3)), np.array([1.0, 2.0, 1.0])
    exact = best_prices(duration, count)
    optimum = kernels.priced_area(duration, exact, np.empty(3))
    monkeypatch.setattr("stretto.graphs.bounds.area._MAX_LP", 899 * 3)
    climbed = best_prices(duration, count)
    monkeypatch.setattr("stretto.graphs.bounds.area._SAMPLE", 100)
    sampled = best_prices(duration, count)
    assert climbed.tolist() != sampled.tolist()
    for prices in (climbed, sampled):
        assert float(count @ prices) == pytest.approx(1.0)
        assert 0.995 * optimum <= kernels.priced_area(duration, prices, np.empty(3)) <= optimum * (1 + 1e-9)


# Columns and edges --------------------------------------------------------------------------------


def test_the_largest_object_between_two_tasks_counts() -> None:
    graph = TaskGraph(
        name="g",
        work_s=np.ones(3),
        object_task=np.array([0, 0, 1], np.int32),
        object_size=np.array([2.0, 5.0, 1.0]),
        read_task=np.array([2, 2, 1, 2], np.int32),
        read_object=np.array([0, 1, 0, 2], np.int32),
    )
    source, target, size = merged_edges(Problem.of(graph, Cluster.parse("cpu:2")))
    assert list(zip(source.tolist(), target.tolist(), size.tolist())) == [(0, 1, 2.0), (0, 2, 5.0), (1, 2, 1.0)]


def linked(latency: list[list[float]], speeds: list[float]) -> Relaxation:
    devices = tuple(Device(f"d{i}", speed=speed) for i, speed in enumerate(speeds))
    cluster = Cluster(devices, np.array(latency, dtype=float), np.ones((len(speeds), len(speeds))))
    return Relaxation.of(Problem.of(TaskGraph.from_edges([4.0, 6.0], [0], [1], 3.0), cluster))


def test_like_devices_are_one_column_where_links_do_not_differ() -> None:
    found = linked([[0, 2, 2], [2, 0, 2], [2, 2, 0]], [1.0, 2.0, 1.0])
    assert found.column.tolist() == [0, 1, 0]
    assert found.count.tolist() == [2.0, 1.0]
    assert found.duration.tolist() == [[4.0, 2.0], [6.0, 3.0]]
    assert found.forward.latency[0].tolist() == [2.0, 2.0]
    assert found.forward.latency[1, 0] == 2.0
    assert found.num_tasks == 2
    assert critical_path(found) == 5.0


def test_devices_whose_links_differ_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    latency = [[0.0, 2, 9], [2, 0, 2], [1, 2, 0]]
    found = linked(latency, [1.0, 2.0, 1.0])
    assert found.column.tolist() == [0, 1, 2]
    assert found.count.tolist() == [1.0, 1.0, 1.0]
    assert found.duration.tolist() == [[4.0, 2.0, 4.0], [6.0, 3.0, 6.0]]
    assert found.forward.latency[0, 1:].tolist() == [2.0, 9.0]
    assert found.backward.latency[0, 1:].tolist() == [2.0, 1.0]
    # Heads: the second task on device 0 after the first there (4), or on device 1 (2) and a move of 2 + 3.
    assert found.head.tolist() == [[0, 0, 0], [4, 2, 4]]
    monkeypatch.setattr("stretto.graphs.bounds.relaxation._MAX_SPLIT", 5)
    folded = linked(latency, [1.0, 2.0, 1.0])
    assert folded.column.tolist() == [0, 1, 0]
    assert folded.forward.latency.tolist() == [[1.0, 2.0], [2.0, INF]]


def test_a_single_device_and_a_project_move_nothing() -> None:
    graph = TaskGraph.from_edges([4.0, 6.0], [0], [1], 3.0)
    assert Relaxation.of(Problem.of(graph, Cluster.parse("cpu:1@1B/s"))).forward.size.tolist() == [0.0]
    assert Relaxation.of(Problem.of(graph, Cluster.parse("cpu:2@1B/s"))).forward.size.tolist() == [3.0]
    project = project_of([4.0, 6.0], [[1], [1]], [1], [(0, 1)])
    assert project.forward.size.tolist() == [0.0]
    assert (project.count.tolist(), project.duration.tolist()) == ([1.0], [[4.0], [6.0]])


def test_heads_and_tails_are_least_where_a_task_can_run() -> None:
    table = np.array([[1.0, INF], [5.0, 3.0], [INF, 2.0]])
    graph = TaskGraph.from_edges(
        np.ones(3), [0, 1], [1, 2], 2.0, kinds=("a", "b"), kind_duration_s=table, transfer_unit="seconds"
    )
    relaxation = Relaxation.of(Problem.of(graph, Cluster.parse("a:1,b:1")))
    head, tail = least_heads(relaxation)
    assert head.tolist() == [0.0, 1.0, 6.0]
    assert tail.tolist() == [7.0, 2.0, 0.0]
    assert critical_path(relaxation) == 8.0 == best_makespan(relaxation.problem)


def test_long_tables_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    relaxation = Relaxation.of(free([3.0, 9.0, 4.0, 1.0, 5.0]))
    for chunk in (1, 2, 3, 5, 7):
        monkeypatch.setattr("stretto.graphs.bounds.relaxation._CHUNK", chunk)
        assert critical_path(relaxation) == 9.0


# Crowds -------------------------------------------------------------------------------------------


@QUICK
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_crowds_are_found_up_to_the_horizon_that_is_too_short(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    duration = rng.integers(1, 6, (n, 1)).astype(float)
    head, tail = rng.integers(0, 6, (n, 1)).astype(float), rng.integers(0, 6, (n, 1)).astype(float)
    price = np.full((n, 1), 0.5)
    value = float((head + duration + tail).max())
    found = crowded(duration, head, tail, price, value, 40, Ticks(1.0, True))
    begins, ends = np.unique(head), np.unique(tail)

    def is_short(horizon: float) -> bool:
        return any(
            kernels.energy(duration, head, tail, price, horizon, a, horizon - q) > horizon - q - a + 1e-9
            for a in begins
            for q in ends
            if horizon - q > a
        )

    horizon = value
    while is_short(horizon + 1 - 1e-6):
        horizon += 1.0
    assert found >= value
    assert math.ceil(found - 1e-6) == horizon


def test_crowds_between_ticks_are_found_as_closely_as_asked() -> None:
    # Seven tasks of 1.1 s between heads and tails of 2 s on two devices: 4 + 7.7 / 2.
    n = 7
    duration, ends, price = np.full((n, 1), 1.1), np.full((n, 1), 2.0), np.full((n, 1), 0.5)
    assert crowded(duration, ends, ends, price, 5.1, 40, None) == pytest.approx(7.85, rel=2e-6)
    assert crowded(duration, ends, ends, price, 7.9, 40, None) == 7.9


def test_rectangles_find_the_crowd_and_its_own_prices() -> None:
    # Behind a first task come tasks that only the second device runs fast; on the whole the first looks as good.
    duration = np.array([[4.0, 4.0], *[[9.0, 1.0]] * 4, *[[1.0, 9.0]] * 3])
    edges = [(0, task) for task in range(1, 5)]
    graph = TaskGraph.from_edges(np.ones(8), *zip(*edges), kinds=("a", "b"), kind_duration_s=duration)
    relaxation = Relaxation.of(Problem.of(graph, Cluster.parse("a:1,b:1")))
    value, prices = _rectangles(relaxation, 0.0)
    crowd = duration[1:5]
    assert value == pytest.approx(4 + kernels.priced_area(crowd, best_prices(crowd, np.ones(2)), np.empty(2)))
    assert prices.tolist() == pytest.approx([0.1, 0.9])
    assert _rectangles(relaxation, 100.0)[0] == 100.0
    assert combined(relaxation) >= value


def test_a_sweep_knows_where_it_found_its_crowd() -> None:
    head, tail, cost = np.array([0.0, 5.0, 5.0]), np.array([0.0, 1.0, 3.0]), np.array([2.0, 2.0, 2.0])
    assert sweep(head, tail, cost) == (10.0, 5.0, 1.0)
    assert sweep(np.zeros(2), np.zeros(2), np.zeros(2)) == (0.0, 0.0, 0.0)


def test_few_values_are_all_thresholds() -> None:
    values = np.array([3.0, 1.0, 3.0, 2.0])
    assert thresholds(values, 3).tolist() == [1, 2, 3]
    assert thresholds(values, 2).tolist() == [1, 3]
    assert len(thresholds(np.arange(500.0))) == 128
