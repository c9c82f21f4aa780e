"""Every planner of the catalog keeps the contract, on small instances of every shape."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from planner_oracles import check_plan, critical_path_bound, decode_in_sequence

from stretto.catalog import PLANNERS
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import DISCIPLINES
from stretto.core.planner import Budget, Planner
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.errors import StrettoError
from stretto.registry import construct

HETEROGENEOUS = "cpu:2x1.0,gpu:1x3.0@100B/s"


def chain() -> Problem:
    return Problem.of(TaskGraph.from_edges([1, 2, 3, 4], [0, 1, 2], [1, 2, 3], 50.0), Cluster.parse(HETEROGENEOUS))


def fork_join() -> Problem:
    source = [0] * 6 + [1, 2, 3, 4, 5, 6]
    target = [1, 2, 3, 4, 5, 6] + [7] * 6
    graph = TaskGraph.from_edges([1, 4, 4, 4, 4, 4, 4, 1], source, target, 30.0)
    return Problem.of(graph, Cluster.parse(HETEROGENEOUS))


def layered() -> Problem:
    rng = np.random.default_rng(7)
    layers = [range(5 * i, 5 * i + 5) for i in range(6)]
    edges = [(a, b) for up, low in zip(layers, layers[1:], strict=False) for a in up for b in low if rng.random() < 0.4]
    source, target = np.array(edges).T
    graph = TaskGraph.from_edges(rng.uniform(0.5, 5, 30), source, target, rng.uniform(0, 200, len(edges)))
    return Problem.of(graph, Cluster.parse("cpu:3x1.0,gpu:2x2.5@80B/s"))


def kinds() -> Problem:
    build = GraphBuilder("kinds")
    tasks = [build.task(f"c{i}", 2.0, durations={"cpu": 2.0, "gpu": math.inf}) for i in range(3)]
    tasks += [build.task(f"g{i}", 2.0, durations={"cpu": math.inf, "gpu": 1.0}) for i in range(3)]
    tasks += [build.task(f"b{i}", 2.0, durations={"cpu": 3.0, "gpu": 1.0}) for i in range(3)]
    for a, b in [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (0, 8)]:
        build.edge(tasks[a], tasks[b], 40.0)
    return Problem.of(build.graph(), Cluster.parse("cpu:2,gpu:2@100B/s"))


def zero_length() -> Problem:
    # Numbered against the dependencies, with tasks and transfers that take no time.
    graph = TaskGraph.from_edges([0, 0, 2, 0, 1, 0], [5, 4, 3, 2, 5], [4, 3, 2, 1, 0], [0, 10, 0, 10, 0])
    return Problem.of(graph, Cluster.parse(HETEROGENEOUS))


def nothing_takes_time() -> Problem:
    return Problem.of(TaskGraph.from_edges(np.zeros(5), [3, 4], [0, 1], 1.0), Cluster.parse("cpu:2"))


def single_task() -> Problem:
    return Problem.of(TaskGraph.from_edges([3.0], [], []), Cluster.parse(HETEROGENEOUS))


def disconnected() -> Problem:
    return Problem.of(TaskGraph.from_edges(np.arange(1.0, 13.0), [0, 4], [1, 5], 20.0), Cluster.parse(HETEROGENEOUS))


def shared_outputs() -> Problem:
    build = GraphBuilder("shared")
    root = build.task("root", 1.0)
    both = build.object(root, 100.0), build.object(root, 10.0)
    for i in range(6):
        reader = build.task(f"r{i}", 2.0 + i)
        build.read(reader, both[0])
        if i % 2:
            build.read(reader, both[1])
    return Problem.of(build.graph(), Cluster.parse(HETEROGENEOUS))


def release_times() -> Problem:
    one = TaskGraph.from_edges([1, 2, 3], [0, 0], [1, 2], 50.0)
    two = TaskGraph.from_edges([5, 0, 1], [0, 1], [1, 2], 10.0)
    return Problem.of(Workload.of([one, two, one], arrivals_s=[4.0, 0.0, 2.5]), Cluster.parse(HETEROGENEOUS))


def one_device() -> Problem:
    return Problem.of(TaskGraph.from_edges([1, 2, 3, 4], [0, 0], [2, 3], 50.0), Cluster.parse("cpu:1"))


def transfers_in_seconds() -> Problem:
    graph = TaskGraph.from_edges([1, 2, 3, 4], [0, 0, 1, 2], [1, 2, 3, 3], [1, 2, 3, 4], transfer_unit="seconds")
    return Problem.of(graph, Cluster.parse(HETEROGENEOUS))


INSTANCES: list[Callable[[], Problem]] = [
    chain,
    fork_join,
    layered,
    kinds,
    zero_length,
    nothing_takes_time,
    single_task,
    disconnected,
    shared_outputs,
    release_times,
    one_device,
    transfers_in_seconds,
]


def make(name: str) -> Planner:
    planner: Planner = construct("planner", name, PLANNERS, {})
    return planner


def budget(seed: int = 5) -> Budget:
    return Budget(seed=seed, time_limit_s=0.3, num_threads=1)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda make_problem: make_problem.__name__)
@pytest.mark.parametrize("name", PLANNERS)
def test_plans_are_complete_allowed_and_executable(name: str, instance: Callable[[], Problem]) -> None:
    problem, planner = instance(), make(name)
    if planner.supports(problem) is not None:
        with pytest.raises(StrettoError):
            planner.plan(problem, budget())
        return
    plan = planner.plan(problem, budget())
    check_plan(problem, plan)
    assert plan.discipline in DISCIPLINES
    _, finish = decode_in_sequence(problem, plan)
    assert critical_path_bound(problem) * (1 - 1e-9) <= max(finish) < math.inf


@pytest.mark.parametrize("name", [name for name, target in PLANNERS.items() if ".placement." in target])
@pytest.mark.parametrize("instance", [layered, release_times], ids=lambda make_problem: make_problem.__name__)
def test_the_same_seed_gives_the_same_plan(name: str, instance: Callable[[], Problem]) -> None:
    first, second = (make(name).plan(instance(), budget()) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
    assert first.order.tolist() == second.order.tolist()


@pytest.mark.parametrize("name", PLANNERS)
def test_a_reason_is_given_for_projects_that_a_planner_does_not_support(name: str) -> None:
    resources = Resources(("crew",), np.array([2], dtype=np.int32), np.ones((3, 1), dtype=np.int32))
    graph = TaskGraph.from_edges([1, 2, 3], [0, 1], [1, 2], resources=resources)
    problem = Problem.of(graph, Cluster.parse("cpu:3"))
    planner = make(name)
    reason = planner.supports(problem)
    if reason is None:
        check_plan(problem, planner.plan(problem, budget()))
    else:
        assert len(reason) > 10


@pytest.mark.parametrize("name", PLANNERS)
def test_an_unknown_parameter_is_refused_by_name(name: str) -> None:
    with pytest.raises(StrettoError, match="no_such_parameter"):
        construct("planner", name, PLANNERS, {"no_such_parameter": 1})
