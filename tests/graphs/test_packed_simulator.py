"""Nodes that pack: the kernels equal the reference, schedules are valid, and the cases of the semantics hold."""

from __future__ import annotations

import numpy as np
import pytest
from packed_cases import random_plan, random_problem
from test_against_reference import assert_same, outcome

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.validate import check_schedule, check_work_conserving
from stretto.errors import InvalidPlan
from stretto.graphs.conditions import CONTENTIONS
from stretto.graphs.simulator import simulate


def compare_with_reference(seed: int) -> bool:
    """Execute one random case both ways and check the schedule; return whether it ran to its end."""
    rng = np.random.default_rng([seed, 28])
    with_memory, with_links = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
    problem = random_problem(rng, with_memory=with_memory, with_links=with_links)
    plan = random_plan(rng, problem)
    options = {"discipline": DISCIPLINES[seed % 2], "contention": CONTENTIONS[seed // 2 % 3]}
    noise = 0.3 if rng.random() < 0.2 else 0.0
    assert_same(problem, plan, noise=noise, **options)
    ran = outcome(simulate, problem, plan, options)
    if isinstance(ran, str):
        return False
    check_schedule(problem, ran)
    if options["discipline"] == "work-conserving" and not with_memory:
        check_work_conserving(problem, ran)
    return True


def test_random_cases_equal_the_reference() -> None:
    ran = sum(compare_with_reference(seed) for seed in range(600))
    assert ran >= 350


@pytest.mark.long
def test_ten_thousand_random_cases_equal_the_reference() -> None:
    assert sum(compare_with_reference(seed) for seed in range(600, 11_000)) >= 6_000


def four_wide_tasks() -> TaskGraph:
    build = GraphBuilder("four")
    for name in "abcd":
        build.task(name, 10.0, cores=4)
    return build.graph()


def run(graph: TaskGraph, cluster: str, discipline: str = "sequence") -> Schedule:
    n = graph.num_tasks
    plan = Plan(np.zeros(n, dtype=np.int32), np.arange(n, dtype=np.int32), discipline)  # type: ignore[arg-type]
    return simulate(Problem.of(graph, Cluster.parse(cluster)), plan)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_four_tasks_of_four_cores_run_together_on_sixteen(discipline: str) -> None:
    assert run(four_wide_tasks(), "node:1*16c", discipline).makespan_s == 10.0
    assert run(four_wide_tasks(), "node:1*15c", discipline).makespan_s == 20.0
    assert run(four_wide_tasks(), "cpu:1", discipline).makespan_s == 40.0


def test_a_sequence_waits_where_a_work_conserving_node_goes_on() -> None:
    build = GraphBuilder("order")
    build.task("long", 3.0, cores=2)
    build.task("wide", 1.0, cores=3)
    build.task("small", 1.0, cores=1)
    graph = build.graph()
    assert run(graph, "node:1*3c", "sequence").start_s.tolist() == [0.0, 3.0, 4.0]
    assert run(graph, "node:1*3c", "work-conserving").start_s.tolist() == [0.0, 3.0, 0.0]


def test_memory_of_tasks_is_shared_by_a_node() -> None:
    build = GraphBuilder("memory")
    for name in "abc":
        build.task(name, 5.0, cores=1, memory_bytes=3e9)
    assert run(build.graph(), "node:1*8c8GB").finish_s.tolist() == [5.0, 5.0, 10.0]


def test_the_validator_refuses_what_does_not_fit() -> None:
    problem = Problem.of(four_wide_tasks(), Cluster.parse("node:1*12c"))
    zeros = np.zeros(4)
    schedule = Schedule(np.zeros(4, dtype=np.int32), zeros, zeros + 10.0, "sequence")
    with pytest.raises(InvalidPlan, match=r"node 'node0' holds 16 of 12 cores at 0 s"):
        check_schedule(problem, schedule)
    late = Schedule(
        np.zeros(4, dtype=np.int32), np.array([0.0, 0.0, 10.0, 20.0]), np.array([10.0, 10.0, 20.0, 30.0]), "sequence"
    )
    check_schedule(problem, late)
    with pytest.raises(InvalidPlan, match=r"node 'node0' has room for task 'c' from 0 s, but starts it at 10 s"):
        check_work_conserving(problem, late)


def test_validator_counts_devices_beside_nodes() -> None:
    problem = Problem.of(four_wide_tasks(), Cluster.parse("cpu:1,node:1*16c"))
    both = Schedule(np.array([0, 0, 1, 1], dtype=np.int32), np.zeros(4), np.full(4, 10.0), "sequence")
    with pytest.raises(InvalidPlan, match="device 'cpu0' runs task"):
        check_schedule(problem, both)
