"""The simulator's facade: small executions worked out by hand, and refusals that name the fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device, Links
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.errors import Infeasible, InvalidInput, InvalidPlan, UnknownName
from stretto.graphs.simulator import simulate


def plan_of(assignment: list[int], order: list[int] | None = None, discipline: str = "work-conserving") -> Plan:
    ranked = order if order is not None else list(range(len(assignment)))
    return Plan(np.array(assignment, dtype=np.int32), np.array(ranked, dtype=np.int32), discipline)  # type: ignore[arg-type]


@pytest.fixture
def fan() -> Problem:
    """One task whose three outputs of 6 bytes go to another device at 2 bytes/s, after 1 s of latency."""
    graph = TaskGraph.from_edges([1, 1, 1, 1], [0, 0, 0], [1, 2, 3], 6.0, name="fan")
    return Problem.of(graph, Cluster.related([1.0, 1.0], bandwidth=2.0, latency_s=1.0))


@pytest.mark.parametrize(
    ("contention", "arrivals"),
    [
        ("none", [5.0, 5.0, 5.0]),  # each: 1 + 1 + 6 / 2
        ("fifo", [5.0, 9.0, 13.0]),  # 4 s each, one after another
        ("fair", [11.0, 11.0, 11.0]),  # 18 bytes at 2 bytes/s from second 2 on
    ],
)
def test_contention_on_one_link(fan: Problem, contention: str, arrivals: list[float]) -> None:
    schedule = simulate(fan, plan_of([0, 1, 1, 1]), contention=contention, record_transfers=True)  # type: ignore[arg-type]
    assert schedule.transfers is not None
    assert schedule.transfers.finish_s.tolist() == arrivals
    assert schedule.makespan_s == max(arrivals[2] + 1, arrivals[0] + 3)


def test_shared_link_gives_each_flow_its_max_min_rate() -> None:
    """Two flows share a link of 3 bytes/s, but one is held to 1 byte/s elsewhere: the other gets 2."""
    graph = TaskGraph.from_edges([0, 0, 0, 0], [0, 1], [2, 3], [4.0, 4.0])
    routes = {(0, 2): [0, 1], (1, 3): [0]}
    flat = [routes.get((a, b), []) for a in range(4) for b in range(4)]
    links = Links(
        ("shared", "narrow"),
        np.array([3.0, 1.0]),
        np.cumsum([0] + [len(route) for route in flat]).astype(np.int32),
        np.array([link for route in flat for link in route], dtype=np.int32),
    )
    cluster = replace(Cluster.related([1.0] * 4, bandwidth=100.0), links=links)
    schedule = simulate(Problem.of(graph, cluster), plan_of([0, 1, 2, 3]), contention="fair")
    assert schedule.start_s.tolist() == [0.0, 0.0, 4.0, 2.0]


def test_one_object_travels_once() -> None:
    graph = TaskGraph.from_edges([1, 1, 1], [0, 0], [1, 2], 4.0, shared_outputs=True)
    problem = Problem.of(graph, Cluster.related([1.0, 1.0], bandwidth=1.0))
    schedule = simulate(problem, plan_of([0, 1, 1]), contention="fifo", record_transfers=True)
    assert schedule.transfers is not None
    assert schedule.transfers.finish_s.tolist() == [5.0]
    assert schedule.finish_s.tolist() == [1.0, 6.0, 7.0]


def test_disciplines_differ_where_the_next_task_is_late() -> None:
    """Device 1 holds ``late``, first in the plan, and ``early``: only one discipline waits for ``late``."""
    graph = TaskGraph.from_edges([3, 1, 1], [0], [1], 0.0, task_names=("slow", "late", "early"))
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    plan = plan_of([0, 1, 1], [0, 1, 2])
    assert simulate(problem, plan, discipline="sequence").start_s.tolist() == [0.0, 3.0, 4.0]
    assert simulate(problem, plan, discipline="work-conserving").start_s.tolist() == [0.0, 3.0, 0.0]
    assert simulate(problem, plan).discipline == "work-conserving"


def test_jobs_wait_for_their_arrival() -> None:
    graph = TaskGraph.from_edges([2.0], [], [])
    problem = Problem.of(Workload.of([graph, graph], arrivals_s=[5.0, 1.0]), Cluster.parse("cpu:1"))
    assert simulate(problem, plan_of([0, 0])).start_s.tolist() == [5.0, 1.0]


def test_noise_has_mean_one_and_the_given_variation() -> None:
    problem = Problem.of(TaskGraph.from_edges(np.ones(40_000), [], []), Cluster.parse("cpu:1"))
    plan = plan_of([0] * 40_000)
    one = simulate(problem, plan, noise=0.4, seed=1)
    took = np.diff(one.finish_s, prepend=0.0)
    assert took.mean() == pytest.approx(1.0, abs=0.01)
    assert took.std() == pytest.approx(0.4, abs=0.02)
    np.testing.assert_array_equal(one.finish_s, simulate(problem, plan, noise=0.4, seed=1).finish_s)
    assert not np.array_equal(one.finish_s, simulate(problem, plan, noise=0.4, seed=2).finish_s)


def memory_problem(limit: float) -> Problem:
    """Two producers of 3 bytes each on one device; a reader of both elsewhere."""
    build = GraphBuilder("memory")
    tasks = [build.task(name, 1.0, memory_bytes=2.0) for name in ("left", "right", "both")]
    build.edge(tasks[0], tasks[2], 3.0)
    build.edge(tasks[1], tasks[2], 3.0)
    devices = [Device("near", memory_bytes=limit), Device("far", memory_bytes=8.0)]
    return Problem.of(build.graph(), Cluster.uniform(devices, bandwidth=1.0))


def test_memory_makes_a_task_wait_for_an_outgoing_transfer() -> None:
    """With 5 bytes, ``right`` waits until the output of ``left`` has gone, at second 4; with 8 it does so at once."""
    plan = plan_of([0, 0, 1])
    assert simulate(memory_problem(8.0), plan).start_s.tolist() == [0.0, 1.0, 5.0]
    assert simulate(memory_problem(5.0), plan).start_s.tolist() == [0.0, 4.0, 8.0]
    assert simulate(memory_problem(5.0), plan, memory_limits=False).start_s.tolist() == [0.0, 1.0, 5.0]


def test_exhausted_memory_names_device_and_task() -> None:
    with pytest.raises(Infeasible, match=r"'near'.*4 bytes.*'left'"):
        simulate(memory_problem(4.0), plan_of([0, 0, 1]))


def test_residents_beyond_the_limit_are_refused_at_once() -> None:
    build = GraphBuilder("weights")
    build.task("big", 1.0, resident_bytes=6.0)
    build.task("small", 1.0, resident_bytes=3.0)
    problem = Problem.of(build.graph(), Cluster.uniform([Device("gpu0", memory_bytes=8.0)]))
    with pytest.raises(Infeasible, match=r"'gpu0'.*9 bytes resident.*8.*'big'"):
        simulate(problem, plan_of([0, 0]))


def test_an_order_that_contradicts_the_graph_is_named() -> None:
    graph = TaskGraph.from_edges([1, 1], [0], [1], task_names=("first", "second"))
    problem = Problem.of(graph, Cluster.parse("cpu:1"))
    for contention in ("none", "fifo", "fair"):
        with pytest.raises(InvalidPlan, match=r"cpu0 waits with 'second' for 'first'"):
            simulate(problem, plan_of([0, 0], [1, 0], "sequence"), contention=contention)  # type: ignore[arg-type]
    assert simulate(problem, plan_of([0, 0], [1, 0])).makespan_s == 2.0


def test_wrong_plans_are_refused_with_the_task(fan: Problem) -> None:
    picky = TaskGraph.from_edges([1.0], [], [], task_names=("shader",), kinds=("cpu", "gpu"))
    object.__setattr__(picky, "kind_duration_s", np.array([[np.inf, 1.0]]))
    with pytest.raises(InvalidPlan, match=r"'shader' cannot run on device 'cpu0'"):
        simulate(Problem.of(picky, Cluster.parse("cpu:1,gpu:1")), plan_of([0]))
    with pytest.raises(InvalidPlan, match=r"'t2' is assigned to device 2"):
        simulate(fan, plan_of([0, 1, 2, 1]))
    with pytest.raises(InvalidPlan, match=r"'t1' appears twice"):
        simulate(fan, plan_of([0, 1, 1, 1], [0, 1, 1, 2]))
    with pytest.raises(InvalidPlan, match=r"position 3 .* task 9"):
        simulate(fan, plan_of([0, 1, 1, 1], [0, 1, 2, 9]))
    with pytest.raises(InvalidPlan, match=r"shape \(2,\), expected \(4,\)"):
        simulate(fan, plan_of([0, 1]))
    with pytest.raises(InvalidPlan, match="float64"):
        simulate(fan, replace(plan_of([0, 1, 1, 1]), assignment=np.zeros(4)))


def test_wrong_options_are_refused(fan: Problem) -> None:
    plan = plan_of([0, 1, 1, 1])
    with pytest.raises(UnknownName, match="fifo"):
        simulate(fan, plan, contention="fifi")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="sequence"):
        simulate(fan, plan, discipline="sequences")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="noise"):
        simulate(fan, plan, noise=-0.1)
    with pytest.raises(InvalidInput, match="seed"):
        simulate(fan, plan, seed=-1)


def test_projects_share_resources_rather_than_devices() -> None:
    resources = Resources(("crew",), np.array([2], dtype=np.int32), np.array([[1], [1], [2]], dtype=np.int32))
    graph = TaskGraph.from_edges([2, 3, 1], [0], [2], resources=resources)
    problem = Problem.of(graph, Cluster.parse("shop:1"))
    schedule = simulate(problem, plan_of([0, 0, 0]))
    assert schedule.start_s.tolist() == [0.0, 0.0, 3.0]
    slower = simulate(problem, plan_of([0, 0, 0]), noise=0.5, seed=4)
    assert slower.finish_s[0] - slower.start_s[0] != 2.0


@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
def test_cost_per_task_does_not_explode(contention: str) -> None:
    """A chain of thousands of tasks and a broadcast to thousands of readers both run through."""
    n = 20_000
    chain = TaskGraph.from_edges(np.ones(n), np.arange(n - 1), np.arange(1, n), 1.0)
    wide = TaskGraph.from_edges(np.ones(n), np.zeros(n - 1, dtype=int), np.arange(1, n), 1.0, shared_outputs=True)
    assignment = [task % 8 for task in range(n)]
    for graph in (chain, wide):
        problem = Problem.of(graph, Cluster.related([1.0] * 8, bandwidth=1.0))
        schedule = simulate(problem, plan_of(assignment), contention=contention)  # type: ignore[arg-type]
        expected = 2 * n - 1 if graph is chain else 2 + (n // 8)
        assert schedule.makespan_s == expected
