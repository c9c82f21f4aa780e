"""What the exact search is told, what it answers, and what the planner makes of it."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from ortools.sat.python import cp_model

from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.graphs.bounds.cpsat import Answer, cpsat_bound, solve
from stretto.graphs.bounds.cpsat_planner import CpSat, _first_plan, _listener
from stretto.graphs.bounds.cpsat_project import serial_schedule
from stretto.graphs.bounds.cpsat_search import Limits, search
from stretto.graphs.bounds.list_schedule import TimedPlan, first_schedule, run_in_sequence
from stretto.graphs.bounds.relaxation import Relaxation

from .exhaustive import best_makespan, small_problems

INF = float("inf")
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fork(size: float = 2.0) -> Problem:
    """A task of 4 s before two of 6 s and one of 2 s."""
    graph = TaskGraph.from_edges([4.0, 6.0, 6.0, 2.0], [0, 0, 0], [1, 2, 3], size, transfer_unit="seconds")
    return Problem.of(graph, Cluster.parse("cpu:3"))


def hard() -> Problem:
    """Three pairs of halves that a list puts together badly: the bound and the first schedule differ."""
    rng = np.random.default_rng(1)
    edges = sorted({(int(rng.integers(max(0, v - 5), v)), v) for v in range(3, 14) for _ in range(2)})
    graph = TaskGraph.from_edges(rng.uniform(5, 50, 14), *zip(*edges), rng.uniform(2, 15, len(edges)))
    return Problem.of(graph, Cluster.related([1.0, 2.0, 3.0], bandwidth=1.0))


def tiny() -> Any:
    model = cp_model.CpModel()
    x = model.new_int_var(3, 9, "x")
    model.minimize(x)
    return model


@pytest.mark.parametrize(
    ("num_threads", "num_workers", "extra", "level"),
    [(0, 1, [], 0), (1, 1, [], 0), (2, 2, ["no_lp"], 1), (3, 3, ["no_lp", "default_lp"], 1), (8, 8, [], 1)],
)
def test_the_solver_gets_the_limits(num_threads: int, num_workers: int, extra: list[str], level: int) -> None:
    outcome = search(tiny(), Limits(time_limit_s=7.5, num_threads=num_threads, seed=2**31 + 5))
    parameters = outcome.solver.parameters
    assert parameters.max_time_in_seconds == 7.5
    assert (parameters.num_workers, parameters.random_seed) == (num_workers, 5)
    assert (list(parameters.subsolvers), parameters.linearization_level) == (extra, level)
    assert parameters.catch_sigint_signal is True
    assert (outcome.status, outcome.objective, outcome.bound) == ("optimal", 3.0, 3.0)


def test_ctrl_c_is_left_to_the_main_thread() -> None:
    found: list[bool] = []
    thread = threading.Thread(
        target=lambda: found.append(search(tiny(), Limits(num_threads=1)).solver.parameters.catch_sigint_signal)
    )
    thread.start()
    thread.join()
    assert found == [False]


def test_what_has_no_solution_has_no_bound() -> None:
    model = tiny()
    model.add_bool_or([])
    outcome = search(model, Limits(num_threads=1))
    assert (outcome.status, outcome.objective, outcome.bound) == ("unknown", INF, 0.0)


def test_the_listener_hears_seconds() -> None:
    heard: list[tuple[float, float]] = []
    problem = fork(3.0)
    found = solve(Relaxation.of(problem), Limits(num_threads=1, on_solution=lambda *news: heard.append(news)))
    assert found.status == "optimal"
    assert all(elapsed_s >= 0 for elapsed_s, _ in heard)
    assert [value for _, value in heard][-1:] in ([], [pytest.approx(found.timed.makespan_s)])
    news: list[Progress] = []
    listen = _listener(Budget(on_progress=news.append))
    assert listen is not None
    listen(0.5, 9.0)
    listen(1.5, 8.0)
    assert news == [Progress(0.5, 1, 9.0), Progress(1.5, 2, 8.0)]
    assert _listener(Budget()) is None


@QUICK
@given(small_problems(max_tasks=5))
def test_answers_are_schedules_of_the_length_that_was_proven(problem: Problem) -> None:
    relaxation = Relaxation.of(problem)
    found = solve(relaxation, Limits(num_threads=1))
    assert isinstance(found, Answer)
    timed = found.timed
    assert isinstance(timed, TimedPlan)
    best = best_makespan(problem)
    assert found.lower_bound_s == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert timed.makespan_s == pytest.approx(best, rel=2e-6, abs=1e-9)
    order = np.lexsort((timed.finish_s, timed.start_s)).astype(np.int32)
    took = problem.device_duration[np.arange(problem.num_tasks), timed.device]
    np.testing.assert_allclose(timed.finish_s - timed.start_s, took, rtol=1e-5, atol=1e-6 * max(best, 1e-9))
    assert len(order) == problem.num_tasks
    assert cpsat_bound(relaxation, 10.0) == pytest.approx(found.lower_bound_s)


def test_an_interrupt_goes_to_the_caller_unless_the_first_schedule_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    relaxation = Relaxation.of(hard())
    monkeypatch.setattr("stretto.graphs.bounds.cpsat.make_instance", press)
    with pytest.raises(KeyboardInterrupt):
        solve(relaxation, Limits(num_threads=1))
    found = solve(relaxation, Limits(num_threads=1, keeps_first=True))
    assert found.status == "feasible"
    assert found.timed.makespan_s == first_schedule(relaxation).makespan_s
    assert 0 < found.lower_bound_s < found.timed.makespan_s


@pytest.mark.parametrize("kind", ["devices", "classes", "project"])
def test_a_search_that_finds_nothing_leaves_the_first_schedule(kind: str) -> None:
    rng = np.random.default_rng(5)
    if kind == "devices":
        problem = hard()
    elif kind == "classes":
        problem = Problem.of(TaskGraph.from_edges(rng.uniform(5, 50, 25), [], []), Cluster.related([1.0, 2.0, 3.0]))
    else:
        demand = rng.integers(1, 4, (30, 2)).astype(np.int32)
        resources = Resources(("a", "b"), np.array([5, 5], np.int32), demand)
        edges = [(int(rng.integers(0, v)), v) for v in range(1, 30)]
        work = rng.uniform(1, 9, 30)
        problem = Problem.of(TaskGraph.from_edges(work, *zip(*edges), resources=resources), Cluster.parse("cpu:1"))
    relaxation = Relaxation.of(problem)
    first = serial_schedule(relaxation) if kind == "project" else first_schedule(relaxation)
    found = solve(relaxation, Limits(time_limit_s=1e-9, num_threads=1))
    assert found.status == "feasible"
    assert found.timed.start_s.tolist() == first.start_s.tolist()
    assert 0 < found.lower_bound_s < first.makespan_s


# The planner --------------------------------------------------------------------------------------


def test_models_that_would_be_too_large_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fork()
    monkeypatch.setattr("stretto.graphs.bounds.cpsat_planner._MAX_CONSTRAINTS", (3 + 4) * 9)
    assert CpSat().supports(problem) is None
    monkeypatch.setattr("stretto.graphs.bounds.cpsat_planner._MAX_CONSTRAINTS", (3 + 4) * 9 - 1)
    assert CpSat().supports(problem) == "3 reads on 3 devices make too large a model"
    assert CpSat().supports(fork(0.0)) is None
    assert CpSat(max_tasks=4).supports(fork(0.0)) is None
    assert CpSat(max_tasks=3).supports(problem) == "4 tasks are more than max_tasks = 3"


def test_the_first_plan_needs_no_solver() -> None:
    problem = hard()
    begin = time.perf_counter()
    plan = _first_plan(problem, begin - 100.0)
    timed = run_in_sequence(problem, plan.assignment, plan.order)
    assert (
        plan.info["objective_s"] == timed.makespan_s == pytest.approx(first_schedule(Relaxation.of(problem)).makespan_s)
    )
    assert (plan.info["status"], plan.info["interrupted"], plan.discipline) == ("interrupted", True, "sequence")
    assert plan.info["elapsed_s"] > 99.0
    assert 0 < plan.info["lower_bound_s"] <= timed.makespan_s
    found = CpSat().plan(problem, Budget(num_threads=1, time_limit_s=60.0))
    assert (found.info["status"], found.info["interrupted"]) == ("optimal", False)
    assert found.info["objective_s"] <= timed.makespan_s
    assert set(found.info) == {"status", "interrupted", "objective_s", "lower_bound_s", "elapsed_s"}
    assert found.info["elapsed_s"] >= 0
