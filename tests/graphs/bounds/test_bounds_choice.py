"""Bounds of projects, rounding and grids, the quick bound, and which bound is chosen; by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.graphs.bounds.area import quick
from stretto.graphs.bounds.bound import Bound, bound
from stretto.graphs.bounds.project import project_area, project_combined
from stretto.graphs.bounds.relaxation import critical_path
from stretto.graphs.bounds.rounding import Ticks, below, coarsest, find_grid, on_grid

from .exhaustive import best_makespan, small_problems
from .project_cases import project_of

INF = float("inf")
QUICK = settings(max_examples=60, deadline=None)
EPSILON = float(np.finfo(np.float64).eps)


def free(work: list[float], cluster: str = "cpu:2", **more: object) -> Problem:
    return Problem.of(TaskGraph.from_edges(work, [], [], **more), Cluster.parse(cluster))  # type: ignore[arg-type]


# Projects -----------------------------------------------------------------------------------------


def test_the_busiest_resource_bounds_a_project() -> None:
    relaxation = project_of([3.0, 5.0, 2.0], [[2, 1], [1, 0], [2, 3]], [2, 4], [])
    assert project_area(relaxation) == (6 + 5 + 4) / 2
    assert project_area(project_of([3.0], [], [], [])) == 0.0
    assert project_area(project_of([3.0], [[0]], [0], [])) == 0.0


def test_crowds_in_projects_are_seen_one_resource_at_a_time() -> None:
    # Six tasks of 3 s that hold the saw alone, between a first and a last one of 5 s that do not need it.
    edges = [(0, i) for i in range(1, 7)] + [(i, 7) for i in range(1, 7)]
    relaxation = project_of([5.0] + [3.0] * 6 + [5.0], [[0, 1]] + [[1, 0]] * 6 + [[0, 1]], [1, 1], edges)
    assert project_area(relaxation) == 18.0
    assert critical_path(relaxation) == 13.0
    assert project_combined(relaxation) == 28.0
    unused = project_of([5.0, 2.0], [[0], [0]], [1], [(0, 1)])
    assert project_combined(unused) == 7.0


# Rounding -----------------------------------------------------------------------------------------


def test_ticks_round_down_unless_they_are_exact() -> None:
    assert Ticks(10.0, False).floor(0.29999999) == 2
    assert Ticks(10.0, True).floor(0.29999999999999) == 3
    assert Ticks(4.0, True).seconds(10) == 2.5


def test_bounds_are_lowered_by_what_adding_may_have_added() -> None:
    assert below(1.0, 10, is_exact=True) == 1.0
    assert below(1.0, 10, is_exact=False) == 1.0 - 4.0 * EPSILON * 14
    assert on_grid(2.0, None, 10) == below(2.0, 10, is_exact=False)
    assert on_grid(0.25, Ticks(10.0, True), 6) == below(0.3, 6, is_exact=False)
    assert on_grid(7.0000001, Ticks(1.0, True), 6) == 7.0
    assert on_grid(7.00001, Ticks(1.0, True), 6) == 8.0


def test_grids_hold_releases_and_transfers_too() -> None:
    graph = TaskGraph.from_edges([1.0, 2.0], [0], [1], 3.0)
    per_s = {}
    cases = {"plain": (0.0, 1.0, 0.0), "late": (0.5, 1.0, 0.0), "slow": (0.0, 4.0, 0.0), "far": (0.0, 1.0, 0.001)}
    for name, (arrival_s, bandwidth, latency_s) in cases.items():
        cluster = Cluster.uniform([Device("a"), Device("b")], bandwidth=bandwidth, latency_s=latency_s)
        grid = find_grid(Problem.of(Workload.of([graph], arrivals_s=[arrival_s]), cluster))
        per_s[name] = grid.per_s if grid else None
    assert per_s == {"plain": 1.0, "late": 10.0, "slow": 100.0, "far": 1000.0}
    alone = Problem.of(graph, Cluster.parse("cpu:1@7B/s"))
    assert find_grid(alone) == Ticks(1.0, True)


def test_times_that_are_too_many_or_too_long_have_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_grid(free([2.0**39, 2.0**39 - 1.0, 1.0])) == Ticks(1.0, True)
    assert find_grid(free([2.0**39, 2.0**39 - 1.0, 1.0, 2.0])) is None
    assert find_grid(free([0.0])) == Ticks(1.0, True)
    graph = TaskGraph.from_edges([1.0] * 3, [0, 0], [1, 2], [3.0, 5.0])
    problem = Problem.of(graph, Cluster.parse("cpu:2@1B/s"))
    monkeypatch.setattr("stretto.graphs.bounds.rounding._MAX_COSTS", 4)
    assert find_grid(problem) == Ticks(1.0, True)
    monkeypatch.setattr("stretto.graphs.bounds.rounding._MAX_COSTS", 3)
    assert find_grid(problem) is None


def test_the_coarsest_grid_is_the_greatest_common_divisor() -> None:
    assert coarsest(free([0.6, 1.5]), Ticks(10.0, True)) == Ticks(10.0 / 3, True)
    assert coarsest(free([0.0]), Ticks(1.0, True)) == Ticks(1.0, True)


# Choice -------------------------------------------------------------------------------------------


def test_the_first_of_the_best_methods_is_named() -> None:
    found = bound(free([5.0, 5.0]))
    assert found == Bound(5.0, {"critical-path": 5.0, "area": 5.0, "combined": 5.0}, "critical-path")
    assert bound(free([5.0]), methods=()) == Bound(0.0, {}, "")


def test_very_large_problems_get_the_quick_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = free([5.0, 1.0, 2.0], "cpu:1,gpu:1x2")
    monkeypatch.setattr("stretto.graphs.bounds.bound.QUICK_FROM", 6)
    assert bound(problem).method != "quick"
    monkeypatch.setattr("stretto.graphs.bounds.bound.QUICK_FROM", 5)
    found = bound(problem)
    assert (found.method, found.parts) == ("quick", {"quick": quick(problem)})
    assert found.value_s == quick(problem)
    project = project_of([3.0], [[1]], [1], []).problem
    monkeypatch.setattr("stretto.graphs.bounds.bound.QUICK_FROM", 0)
    assert bound(project).method == "critical-path"
    assert list(bound(problem, methods=["area"]).parts) == ["area"]


def test_the_quick_bound_is_a_path_or_the_work() -> None:
    assert quick(free([4.0, 8.0], "cpu:1,gpu:1x2")) == pytest.approx(4.0, rel=1e-8)
    assert quick(free([4.0] * 9, "cpu:1,gpu:1x2")) == pytest.approx(12.0, rel=1e-8)
    chain = TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 1], [1, 2], 5.0)
    late = Problem.of(Workload.of([chain, chain], arrivals_s=[0.0, 10.0]), Cluster.parse("cpu:4"))
    assert quick(late) == pytest.approx(16.0, rel=1e-8)
    crowd = TaskGraph.from_edges([3.0] * 8, [], [])
    assert quick(Problem.of(Workload.of([crowd], arrivals_s=[2.0]), Cluster.parse("cpu:2"))) == pytest.approx(14.0)


@QUICK
@given(small_problems(max_tasks=6, max_devices=3))
def test_the_quick_bound_holds(problem: Problem) -> None:
    assert quick(problem) <= best_makespan(problem)
