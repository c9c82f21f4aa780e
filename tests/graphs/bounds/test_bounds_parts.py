"""The parts of the bounds against naive twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.graphs.bounds import kernels
from stretto.graphs.bounds.area import _solve_lp, best_prices
from stretto.graphs.bounds.interval import sweep, thresholds
from stretto.graphs.bounds.relaxation import Relaxation, merged_edges
from stretto.graphs.bounds.rounding import Ticks, below, coarsest, find_grid, on_grid

from .exhaustive import small_problems

QUICK = settings(max_examples=60, deadline=None)


def _naive_heads(relaxation: Relaxation) -> np.ndarray:
    """Heads by trying every split of the predecessors into local and remote ones."""
    graph = relaxation.forward
    n, num_columns = graph.duration.shape
    head = np.zeros((n, num_columns))
    for task in graph.order:
        edges = range(graph.ptr[task], graph.ptr[task + 1])
        for c in range(num_columns):
            best = np.inf
            for split in range(2 ** len(edges)):
                local = [int(graph.task[e]) for i, e in enumerate(edges) if split >> i & 1]
                clock = 0.0
                for source in sorted(local, key=lambda s, c=c: head[s, c]):
                    clock = max(clock, head[source, c]) + graph.duration[source, c]
                for i, e in enumerate(edges):
                    if not split >> i & 1:
                        finish = head[graph.task[e]] + graph.duration[graph.task[e]]
                        size = graph.size[e]
                        with np.errstate(invalid="ignore"):
                            cost = (
                                graph.latency[:, c] + size * graph.inverse[:, c] if size > 0 else np.zeros(num_columns)
                            )
                        clock = max(clock, float(np.nanmin(finish + cost)))
                best = min(best, clock)
            head[task, c] = max(best, graph.release[task])
    return head


@QUICK
@given(small_problems(max_tasks=7, max_devices=4))
def test_heads_try_every_split(problem: Problem) -> None:
    relaxation = Relaxation.of(problem)
    np.testing.assert_allclose(relaxation.head, _naive_heads(relaxation), rtol=1e-12)


@QUICK
@given(small_problems(max_tasks=9, max_devices=4))
def test_tails_are_heads_of_the_reversed_graph(problem: Problem) -> None:
    source, target, size = merged_edges(problem)
    back = TaskGraph.from_edges(
        problem.graph.work_s,
        target,
        source,
        size,
        kinds=problem.graph.kinds,
        kind_duration_s=problem.graph.kind_duration_s,
    )
    cluster = problem.cluster
    turned = Cluster(cluster.devices, cluster.latency_s.T.copy(), cluster.bandwidth.T.copy())
    np.testing.assert_array_equal(Relaxation.of(problem).tail, Relaxation.of(Problem.of(back, turned)).head)


@QUICK
@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_ascent_comes_close_to_the_linear_program(n: int, num_columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    duration = rng.uniform(0.1, 5.0, (n, num_columns))
    duration[rng.random(duration.shape) < 0.1] = np.inf
    duration[:, 0] = np.where(np.isfinite(duration).any(axis=1), duration[:, 0], 1.0)
    count = rng.integers(1, 4, num_columns).astype(np.float64)
    load = np.empty(num_columns)
    exact = best_prices(duration, count)
    assert count @ exact == pytest.approx(1.0)
    prices = np.full(num_columns, 1.0 / count.sum())
    climbed = kernels.ascend(duration, count, prices, 400, 0.5)
    assert climbed == kernels.priced_area(duration, prices, load)
    optimum = kernels.priced_area(duration, exact, load)
    assert 0.93 * optimum <= climbed <= optimum * (1 + 1e-9)


def test_large_tables_are_priced_nearly_as_well_as_by_linear_program() -> None:
    rng = np.random.default_rng(3)
    duration, count = rng.uniform(0.1, 5.0, (6000, 4)), np.array([4.0, 1.0, 2.0, 8.0])
    exact = _solve_lp(duration, count)
    assert exact is not None
    load = np.empty(4)
    optimum = kernels.priced_area(duration, exact, load)
    assert kernels.priced_area(duration, best_prices(duration, count), load) >= 0.999 * optimum


@QUICK
@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_sweep_tries_every_rectangle(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    head, tail = rng.integers(0, 9, n).astype(float), rng.integers(0, 9, n).astype(float)
    cost = rng.integers(1, 5, n).astype(float)
    value, low, high = sweep(head, tail, cost)
    every = [
        h + q + cost[(head >= h) & (tail >= q)].sum() for h in head for q in tail if ((head >= h) & (tail >= q)).any()
    ]
    assert value == max(every)
    assert value == low + high + cost[(head >= low) & (tail >= high)].sum()


@QUICK
@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_energy_is_the_least_that_any_position_leaves_inside(n: int, num_columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    duration = rng.integers(1, 6, (n, num_columns)).astype(float)
    head = rng.integers(0, 5, (n, num_columns)).astype(float)
    tail = rng.integers(0, 5, (n, num_columns)).astype(float)
    price = rng.uniform(0.1, 1.0, (n, num_columns))
    horizon = float((head + duration + tail).max() + rng.integers(0, 4))
    begin, end = sorted(rng.integers(0, int(horizon) + 1, 2).astype(float))
    expected = 0.0
    for task in range(n):
        costs = []
        for c in range(num_columns):
            length = duration[task, c]
            for start in np.arange(head[task, c], horizon - tail[task, c] - length + 1):
                costs.append(price[task, c] * max(0.0, min(start + length, end) - max(start, begin)))
        expected += min(costs)
    assert kernels.energy(duration, head, tail, price, horizon, begin, end) == pytest.approx(expected)


def test_thresholds_keep_the_least_and_the_largest() -> None:
    values = np.random.default_rng(0).uniform(size=1000)
    few = thresholds(values, 10)
    assert len(few) <= 11
    assert few[0] == values.min()
    assert few[-1] == values.max()
    assert np.isin(few, values).all()


@pytest.mark.parametrize(
    ("work", "per_s"), [([3.0, 5.0], 1.0), ([0.1, 0.25], 100.0), ([1 / 3], None), ([1e-6, 2.0], 1e6)]
)
def test_grids_are_found(work: list[float], per_s: float | None) -> None:
    problem = Problem.of(TaskGraph.from_edges(work, [], []), Cluster.parse("cpu:1"))
    grid = find_grid(problem)
    assert (grid.per_s if grid else None) == per_s


def test_ticks_shrink_to_the_common_divisor() -> None:
    problem = Problem.of(TaskGraph.from_edges([600.0, 900.0], [], []), Cluster.parse("cpu:1"))
    grid = find_grid(problem)
    assert grid is not None
    assert coarsest(problem, grid).per_s == pytest.approx(1 / 300)


def test_rounding_never_raises_a_bound() -> None:
    assert on_grid(4.2, Ticks(1.0, True), 10) == 5.0
    assert on_grid(5.0, Ticks(1.0, True), 10) == 5.0
    assert on_grid(4.2, None, 10) < 4.2
    assert on_grid(0.21, Ticks(10.0, True), 10) == pytest.approx(0.3)
    assert math.isclose(below(1.0, 10**6, is_exact=False), 1.0, rel_tol=1e-8)


def test_a_million_entries_fold_into_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = TaskGraph.from_edges([4.0, 6.0], [0], [1], 8e9)
    problem = Problem.of(graph, Cluster.parse("cpu:2,gpu:2x2"))
    assert Relaxation.of(problem).duration.shape == (2, 2)
    monkeypatch.setattr("stretto.graphs.bounds.relaxation._MAX_TABLE", 3)
    folded = Relaxation.of(problem)
    assert folded.duration.tolist() == [[2.0], [3.0]]
    assert folded.head.tolist() == [[0.0], [2.0]]
