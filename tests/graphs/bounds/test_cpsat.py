"""CP-SAT finds the optimum, proves it, and hands over plans that run as promised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.bounds.bound import bound
from stretto.graphs.bounds.cpsat_planner import CpSat
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

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _random_problem(num_tasks: int, num_devices: int, seed: int) -> Problem:
    """A layered graph on unlike devices with unlike links, where moving data matters."""
    rng = np.random.default_rng(seed)
    edges = {(int(rng.integers(max(0, v - 12), v)), v) for v in range(3, num_tasks) for _ in range(2)}
    source, target = zip(*sorted(edges), strict=True)
    work, size = rng.uniform(5, 50, num_tasks), rng.uniform(2, 15, len(edges))
    graph = TaskGraph.from_edges(work, source, target, size)
    devices = tuple(Device(f"d{i}", speed=float(speed)) for i, speed in enumerate(rng.uniform(1, 4, num_devices)))
    bandwidth = rng.uniform(1, 4, (num_devices, num_devices))
    return Problem.of(graph, Cluster(devices, np.zeros_like(bandwidth), bandwidth))


@QUICK
@given(small_problems(max_tasks=5))
def test_the_plan_is_optimal(problem: Problem) -> None:
    optimum = best_makespan(problem)
    plan = CpSat().plan(problem, Budget(num_threads=1))
    makespan_s = simulate(problem, plan).makespan_s
    assert plan.info["status"] == "optimal"
    assert makespan_s == pytest.approx(optimum, rel=1e-6, abs=1e-12)
    assert plan.info["objective_s"] == pytest.approx(makespan_s)
    assert plan.info["lower_bound_s"] <= optimum
    assert plan.info["lower_bound_s"] == pytest.approx(optimum, rel=2e-6, abs=1e-12)


@QUICK
@given(small_projects())
def test_the_project_plan_is_optimal(problem: Problem) -> None:
    plan = CpSat().plan(problem, Budget(num_threads=1))
    optimum = best_project_makespan(problem)
    assert plan.info["status"] == "optimal"
    assert simulate(problem, plan).makespan_s == plan.info["objective_s"] == plan.info["lower_bound_s"] == optimum
    assert not plan.assignment.any()


@pytest.mark.parametrize("num_devices", [2, 8])
def test_stg_optima_are_reproduced(data_dir: Path, num_devices: int) -> None:
    graphs = stg_graphs(data_dir)
    settled = [(name, least) for name, least, most in stg_members(data_dir, num_devices) if least == most]
    for name, optimum in settled[:: len(settled) // 5]:
        problem = Problem.of(graphs[name], Cluster.parse(f"cpu:{num_devices}"))
        plan = CpSat().plan(problem, Budget(time_limit_s=60))
        assert plan.info["status"] == "optimal", name
        assert simulate(problem, plan).makespan_s == optimum, name


def test_psplib_optima_are_reproduced(data_dir: Path) -> None:
    optima = psplib_optima(data_dir)
    names = ["j301_1.sm", "j305_1.sm", "j3017_3.sm", "j3048_10.sm"]
    for name, problem in zip(names, psplib_projects(data_dir, names), strict=True):
        plan = CpSat().plan(problem, Budget(time_limit_s=60))
        assert plan.info["status"] == "optimal", name
        assert simulate(problem, plan).makespan_s == optima[name], name


def test_the_exact_method_bounds_at_least_as_well_as_the_others() -> None:
    problem = _random_problem(16, 3, 1)
    found = bound(problem, methods=("critical-path", "area", "combined", "cp-sat"), time_limit_s=30)
    assert found.method == "cp-sat"
    assert found.value_s > max(found.parts["critical-path"], found.parts["area"])
    plan = CpSat().plan(problem, Budget(time_limit_s=30))
    assert found.value_s <= simulate(problem, plan).makespan_s * (1 + 1e-12)
    assert found.value_s == pytest.approx(plan.info["lower_bound_s"], rel=1e-9)


def test_a_short_limit_still_gives_a_valid_plan_and_bound() -> None:
    problem = _random_problem(120, 6, 1)
    plan = CpSat().plan(problem, Budget(time_limit_s=0.5))
    assert plan.info["status"] == "feasible"
    assert bound(problem).value_s <= plan.info["lower_bound_s"] <= simulate(problem, plan).makespan_s
    assert plan.info["elapsed_s"] < 20


def test_equal_devices_are_interchangeable() -> None:
    edges = [(0, i) for i in range(1, 7)]
    graph = TaskGraph.from_edges([1.0] * 7, *zip(*edges, strict=True), 1.0, transfer_unit="seconds")
    problem = Problem.of(graph, Cluster.parse("cpu:6"))
    plan = CpSat().plan(problem, Budget())
    # Two more on the first device and one each elsewhere end at 3; so does nothing shorter.
    assert simulate(problem, plan).makespan_s == plan.info["lower_bound_s"] == 3.0


def test_progress_is_told_and_an_interrupt_keeps_the_best() -> None:
    problem = _random_problem(40, 4, 2)
    news: list[Progress] = []

    def tell(progress: Progress) -> None:
        news.append(progress)
        raise KeyboardInterrupt

    plan = CpSat().plan(problem, Budget(time_limit_s=60, on_progress=tell))
    assert plan.info["elapsed_s"] < 30
    assert plan.info["interrupted"]
    assert plan.info["objective_s"] <= news[0].best_makespan_s * (1 + 1e-6)
    assert simulate(problem, plan).makespan_s == pytest.approx(plan.info["objective_s"])


def test_errors_of_the_listener_are_not_swallowed() -> None:
    def tell(progress: Progress) -> None:
        raise ValueError("the listener failed")

    with pytest.raises(ValueError, match="the listener failed"):
        CpSat().plan(_random_problem(20, 4, 3), Budget(time_limit_s=10, on_progress=tell))


def test_too_large_problems_are_declined_with_the_reason() -> None:
    problem = _random_problem(12, 3, 0)
    assert CpSat().supports(problem) is None
    reason = CpSat(max_tasks=11).supports(problem)
    assert reason is not None
    assert "12 tasks" in reason
    with pytest.raises(InvalidInput):
        CpSat(max_tasks=0)


def test_the_same_seed_and_one_thread_give_the_same_plan() -> None:
    problem = _random_problem(14, 3, 4)
    first, second = (CpSat().plan(problem, Budget(seed=3, num_threads=1)) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
    assert first.order.tolist() == second.order.tolist()


@pytest.mark.parametrize(
    "where", ["stretto.graphs.bounds.cpsat.make_instance", "stretto.graphs.bounds.cpsat.known_schedule"]
)
def test_an_early_interrupt_leaves_the_first_plan(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come before there is a schedule at all, or while the model is built."""

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, press)
    problem = _random_problem(30, 4, 1)
    plan = CpSat().plan(problem, Budget(time_limit_s=60.0))
    assert plan.info["status"] == "interrupted"
    assert plan.info["interrupted"] is True
    makespan_s = simulate(problem, plan).makespan_s
    assert plan.info["objective_s"] == pytest.approx(makespan_s)
    assert 0 < plan.info["lower_bound_s"] <= makespan_s * (1 + 1e-9)
