"""No schedule is shorter than a bound: against exhaustive search, the simulator and published optima."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Job, Workload
from stretto.errors import UnknownName
from stretto.graphs.bounds.bound import DEFAULT_METHODS, bound
from stretto.graphs.simulator import simulate

from .exhaustive import (
    best_makespan,
    best_project_makespan,
    psplib_optima,
    psplib_projects,
    small_problems,
    small_projects,
    stg_graphs,
    stg_members,
)

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(small_problems(max_tasks=5))
def test_no_bound_exceeds_the_optimum(problem: Problem) -> None:
    optimum = best_makespan(problem)
    for method, value_s in bound(problem).parts.items():
        assert value_s <= optimum, method


@QUICK
@given(small_problems(max_tasks=12, max_devices=5), st.integers(0, 2**32 - 1))
def test_no_simulated_schedule_beats_a_bound(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fits = np.isfinite(problem.device_duration)
    device = np.array([rng.choice(np.flatnonzero(row)) for row in fits], dtype=np.int32)
    plan = Plan(device, problem.arrays.topo)
    value_s = bound(problem).value_s
    for discipline in ("sequence", "work-conserving"):
        for contention in ("none", "fifo", "fair"):
            run = simulate(problem, plan, discipline=discipline, contention=contention)  # type: ignore[arg-type]
            assert value_s <= run.makespan_s


@QUICK
@given(small_projects())
def test_no_project_bound_exceeds_the_optimum(problem: Problem) -> None:
    optimum = best_project_makespan(problem)
    for method, value_s in bound(problem).parts.items():
        assert value_s <= optimum, method


@pytest.mark.parametrize("num_devices", [2, 4, 8, 16])
def test_stg_bounds_keep_below_published_makespans(data_dir: Path, num_devices: int) -> None:
    graphs = stg_graphs(data_dir)
    tight = 0
    for name, _, most in stg_members(data_dir, num_devices):
        value_s = bound(Problem.of(graphs[name], Cluster.parse(f"cpu:{num_devices}"))).value_s
        assert value_s <= most, name
        tight += value_s == most
    assert tight >= 0.9 * len(graphs), "most of these graphs are settled by the bounds alone"


def test_psplib_bounds_keep_below_proven_optima(data_dir: Path) -> None:
    optima = psplib_optima(data_dir)
    names = sorted(optima)[::8]
    for name, problem in zip(names, psplib_projects(data_dir, names), strict=True):
        found = bound(problem)
        assert found.value_s <= optima[name], name
        assert found.parts["combined"] >= max(found.parts["critical-path"], found.parts["area"]), name


def test_release_times_count() -> None:
    graph = TaskGraph.from_edges([2.0], [], [])
    workload = Workload("late", (Job(graph, 5.0), Job(graph, 7.0)))
    assert bound(Problem.of(workload, Cluster.parse("cpu:1"))).value_s == 9.0


def test_serial_predecessors_or_transfers_are_both_paid() -> None:
    # Two tasks of 10 s feed a third; either they share its device or one result takes 6 s to arrive.
    graph = TaskGraph.from_edges([10.0, 10.0, 1.0], [0, 1], [2, 2], 6.0, transfer_unit="seconds")
    found = bound(Problem.of(graph, Cluster.parse("cpu:4")))
    assert found.parts["critical-path"] == 17.0 == best_makespan(Problem.of(graph, Cluster.parse("cpu:4")))


def test_a_crowd_behind_a_long_head_is_seen() -> None:
    # Ten tasks of 3 s between a first and a last one of 5 s: neither chain (13) nor area (20) sees 25.
    edges = [(0, i) for i in range(1, 11)] + [(i, 11) for i in range(1, 11)]
    graph = TaskGraph.from_edges([5.0] + [3.0] * 10 + [5.0], *zip(*edges, strict=True))
    found = bound(Problem.of(graph, Cluster.parse("cpu:2")))
    assert found.parts == {"critical-path": 13.0, "area": 20.0, "combined": 25.0}
    assert (found.value_s, found.method) == (25.0, "combined")


def test_methods_are_chosen_by_name() -> None:
    problem = Problem.of(TaskGraph.from_edges([1.0, 2.0], [0], [1]), Cluster.parse("cpu:2"))
    assert list(bound(problem, methods=("area",)).parts) == ["area"]
    assert tuple(bound(problem).parts) == DEFAULT_METHODS
    with pytest.raises(UnknownName, match="critical-path"):
        bound(problem, methods=("critical-pth",))
