"""The exact models: what stands in them, that their hints are solutions, and what the search is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from ortools.sat.python import cp_model

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.graphs.bounds import cpsat_classes, cpsat_devices, cpsat_project
from stretto.graphs.bounds.cpsat_instance import (
    _MAX_EXACT_TICKS,
    _NEVER,
    _ROUNDED_TICKS,
    Instance,
    _interchangeable,
    _relabel,
    choose_ticks,
    make_instance,
)
from stretto.graphs.bounds.list_schedule import first_schedule
from stretto.graphs.bounds.relaxation import Relaxation
from stretto.graphs.bounds.rounding import Ticks

from .exhaustive import best_makespan, small_problems, small_projects

INF = float("inf")
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fork(size: float = 2.0, devices: str = "cpu:3") -> Problem:
    """A task of 4 s before two of 6 s and one of 2 s; moving takes 2 s."""
    graph = TaskGraph.from_edges([4.0, 6.0, 6.0, 2.0], [0, 0, 0], [1, 2, 3], size, transfer_unit="seconds")
    return Problem.of(graph, Cluster.parse(devices))


def instance_of(problem: Problem, lower_s: float = 0.0) -> Instance:
    relaxation = Relaxation.of(problem)
    return make_instance(relaxation, first_schedule(relaxation), lower_s)


# Instances ----------------------------------------------------------------------------------------


def test_a_problem_in_ticks() -> None:
    found = instance_of(fork(), lower_s=9.0)
    # All times are multiples of two seconds: a tick is two seconds.
    assert (found.ticks.per_s, found.ticks.is_exact) == (0.5, True)
    assert found.length == [[2] * 3, [3] * 3, [3] * 3, [1] * 3]
    assert found.head == [[0] * 3, [2] * 3, [2] * 3, [2] * 3]
    assert found.tail == [[4] * 3, [0] * 3, [0] * 3, [0] * 3]
    off = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert found.edges == [(0, 1, off), (0, 2, off), (0, 3, off)]
    assert (found.lower, found.upper) == (4, 6)
    assert (found.num_devices, found.num_tasks, found.interchangeable) == (3, 4, [[0, 1, 2]])
    device, start = found.hint
    assert start == [0, *(int(s) for s in start[1:])]
    assert device[0] == 0


def test_what_costs_nothing_to_move_is_only_an_order() -> None:
    assert instance_of(fork(0.0)).edges == [(0, 1, None), (0, 2, None), (0, 3, None)]
    graph = TaskGraph.from_edges([4.0, 6.0, 2.0], [0, 0], [1, 2], [0.0, 2.0], transfer_unit="seconds")
    edges = instance_of(Problem.of(graph, Cluster.parse("cpu:2"))).edges
    assert edges == [(0, 1, None), (0, 2, [[0, 1], [1, 0]])]


def test_devices_that_cannot_run_a_task_in_time_are_left_out() -> None:
    table = np.array([[4.0, INF], [4.0, 400.0]])
    graph = TaskGraph.from_edges([1, 1], [], [], kinds=("cpu", "gpu"), kind_duration_s=table)
    found = instance_of(Problem.of(graph, Cluster.parse("cpu:2,gpu:1")))
    assert found.length[0][2] == _NEVER
    assert [found.devices_of(task) for task in range(2)] == [[0, 1], [0, 1]]
    assert found.upper == 1
    tight = Instance(Ticks(1.0, True), 2, [[3, 3]], [[1, 2]], [[2, 2]], [], 0, 6, [], ([0], [0]))
    assert tight.devices_of(0) == [0]


def test_ticks_are_fine_where_times_are_not_whole() -> None:
    odd = Problem.of(TaskGraph.from_edges([1 / 3], [], []), Cluster.parse("cpu:1"))
    assert choose_ticks(odd, None, 2.0) == Ticks(_ROUNDED_TICKS / 2.0, False)
    assert choose_ticks(odd, None, 0.0) == Ticks(1.0, False)
    whole = Problem.of(TaskGraph.from_edges([1.0, 3.0], [], []), Cluster.parse("cpu:1"))
    grid = Ticks(1.0, True)
    assert choose_ticks(whole, grid, float(_MAX_EXACT_TICKS)) == grid
    assert not choose_ticks(whole, grid, float(_MAX_EXACT_TICKS) * 2).is_exact
    # Rounded times leave a little room above the known schedule, whole ones none.
    relaxation = Relaxation.of(odd)
    found = make_instance(relaxation, first_schedule(relaxation), 0.25)
    assert found.upper == _ROUNDED_TICKS + 2
    assert found.lower == int(0.25 * found.ticks.per_s)
    assert found.length == [[_ROUNDED_TICKS]]
    assert instance_of(whole, -1.0).lower == 0


def test_only_devices_that_nothing_tells_apart_are_interchangeable() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 1.0)
    devices = [Device(f"d{i}", speed=speed) for i, speed in enumerate([1.0, 2.0, 1.0, 2.0])]
    assert _interchangeable(Problem.of(graph, Cluster.uniform(devices, bandwidth=1.0))) == [[0, 2], [1, 3]]
    latency = np.zeros((4, 4))
    latency[0, 1] = 1.0
    lopsided = Cluster(tuple(devices), latency, np.ones((4, 4)))
    assert _interchangeable(Problem.of(graph, lopsided)) == []
    bandwidth = np.ones((4, 4))
    bandwidth[3, 0] = 2.0
    assert _interchangeable(Problem.of(graph, Cluster(tuple(devices), np.zeros((4, 4)), bandwidth))) == []


def test_interchangeable_devices_are_named_in_order_of_use() -> None:
    device = np.array([3, 1, 3, 0, 2], np.int32)
    assert _relabel(device, [[0, 1, 3]]) == [0, 1, 0, 3, 2]
    assert _relabel(device, []) == [3, 1, 3, 0, 2]
    assert _relabel(np.array([4, 4], np.int32), [[1, 4]]) == [1, 1]


# Models -------------------------------------------------------------------------------------------


def follow_hint(model: Any) -> tuple[int, float]:
    """Solve a model with every variable that has a hint fixed to it."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    code = solver.solve(model)
    return code, solver.objective_value


def optimum(model: Any) -> float:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


def domain(variable: Any) -> list[int]:
    return list(variable.proto.domain)


@QUICK
@given(small_problems(max_tasks=5, whole=True))
def test_models_of_devices_have_the_optimum_and_their_hint_is_a_solution(problem: Problem) -> None:
    found = instance_of(problem)
    best = best_makespan(problem) * found.ticks.per_s
    built = cpsat_devices.build(found)
    assert optimum(built.model) == pytest.approx(best)
    code, value = follow_hint(built.model)
    assert code == cp_model.OPTIMAL
    assert value <= found.upper
    assert domain(built.makespan) == [found.lower, found.upper]
    for task, start in enumerate(built.start):
        fits = found.devices_of(task)
        first = min(found.head[task][d] for d in fits)
        last = max(found.upper - found.tail[task][d] - found.length[task][d] for d in fits)
        assert domain(start) == [first, max(first, last)]
        assert sorted(built.choice[task]) == fits


def test_a_model_of_devices_pays_for_transfers() -> None:
    # One of the two long tasks waits 2 s for its data: 4 + 2 + 6 seconds are six ticks.
    assert optimum(cpsat_devices.build(instance_of(fork())).model) == 6.0
    assert optimum(cpsat_devices.build(instance_of(fork(0.0))).model) == 5.0


@QUICK
@given(small_problems(max_tasks=6, whole=True))
def test_models_of_classes_have_the_optimum_where_nothing_costs(problem: Problem) -> None:
    graph = problem.graph
    free = TaskGraph.from_edges(
        graph.work_s, *graph.edges[:2], 0.0, kinds=graph.kinds, kind_duration_s=graph.kind_duration_s
    )
    problem = Problem.of(free, problem.cluster)
    found = instance_of(problem)
    built = cpsat_classes.build(found, problem.arrays.device_class.tolist())
    assert optimum(built.model) == pytest.approx(best_makespan(problem) * found.ticks.per_s)
    code, value = follow_hint(built.model)
    assert code == cp_model.OPTIMAL
    assert value <= found.upper
    assert domain(built.makespan) == [found.lower, found.upper]
    assert sorted(device for group in built.groups for device in group) == list(range(problem.num_devices))


@QUICK
@given(small_projects())
def test_models_of_projects_have_the_first_schedule_as_a_solution(problem: Problem) -> None:
    relaxation = Relaxation.of(problem)
    known = cpsat_project.serial_schedule(relaxation)
    model, starts, ticks = cpsat_project.build(relaxation, known, 0.0)
    code, value = follow_hint(model)
    assert code == cp_model.OPTIMAL
    assert value == pytest.approx(known.makespan_s * ticks.per_s)
    for task, start in enumerate(starts):
        first = ticks.floor(float(relaxation.head[task, 0]))
        after = ticks.floor(float(relaxation.duration[task, 0])) + ticks.floor(float(relaxation.tail[task, 0]))
        assert domain(start) == [first, max(first, ticks.floor(known.makespan_s) - after)]


def test_classes_give_each_task_the_device_that_was_free_longest() -> None:
    problem = Problem.of(TaskGraph.from_edges([4.0, 2.0, 4.0, 2.0, 0.0], [], []), Cluster.parse("cpu:2,gpu:1"))
    built = cpsat_classes.build(instance_of(problem), [0, 0, 1])
    assert built.groups == [[0, 1], [2]]
    assert cpsat_classes.assign(built, [0, 0, 1, 0, 0], [0, 0, 0, 2, 3]) == [1, 0, 2, 0, 1]
    with pytest.raises(AssertionError, match="never runs more tasks"):
        cpsat_classes.assign(built, [0, 0, 0, 0, 0], [0, 0, 0, 1, 2])
