"""Builders, plans, budgets, problems and merged workloads: every column as it was given, in its type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.csr import find_cycle, group, topological_order
from stretto.core.graph import Resources, TaskGraph
from stretto.core.metrics import measure
from stretto.core.plan import Plan
from stretto.core.planner import Budget, no_projects
from stretto.core.pool import Spot
from stretto.core.problem import Problem, merge
from stretto.core.schedule import Schedule
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.queues.strategies import PriorityWeights

INF = float("inf")


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_a_builder_hands_over_all_that_it_was_told() -> None:
    build = GraphBuilder("flow", transfer_unit="seconds")
    build.meta["source"] = "here"
    build.resources = Resources(("saw",), ints(1), np.array([[1], [0], [1]], np.int32))
    late = build.task("late", 3, durations={"gpu": 1, "fpga": INF}, memory_bytes=7, category="x")
    build.task("alone", 2, resident_bytes=5, durations={"gpu": 4})
    early = build.task("early", 1, cores=2)
    big, small = build.object(late, 9), build.object(early, 4)
    build.read(late, small)
    assert (build.num_tasks, big, small) == (3, 0, 1)
    graph = build.graph()
    assert (graph.name, graph.transfer_unit, graph.meta["source"]) == ("flow", "seconds", "here")
    assert graph.resources is build.resources
    assert (graph.task_names, graph.kinds) == (("late", "alone", "early"), ("gpu", "fpga"))
    assert graph.work_s.tolist() == [3, 2, 1]
    columns = (graph.kind_duration_s, graph.cores, graph.memory_bytes, graph.resident_bytes)
    given = [[[1, INF], [4, 2], [1, 1]], [0, 0, 2], [7, 0, 0], [0, 5, 0]]
    for column, expected in zip(columns, given, strict=True):
        assert column is not None
        assert column.tolist() == expected
        assert column.dtype == np.float64
    assert (graph.object_task.tolist(), graph.object_size.tolist()) == ([0, 2], [9, 4])
    assert (graph.read_task.tolist(), graph.read_object.tolist()) == ([0], [1])
    assert (graph.categories, graph.topo.tolist()) == (("x", ""), [1, 2, 0])
    assert graph.category is not None
    assert {a.dtype for a in (graph.object_task, graph.read_task, graph.read_object, graph.category)} == {
        np.dtype(np.int32)
    }
    assert {a.dtype for a in (graph.work_s, graph.object_size)} == {np.dtype(np.float64)}


def test_a_builder_that_was_told_little_leaves_the_rest_open() -> None:
    build = GraphBuilder()
    build.task("only", 1)
    graph = build.graph()
    assert (graph.name, graph.transfer_unit, graph.kinds, graph.categories) == ("graph", "bytes", (), ())
    assert [graph.kind_duration_s, graph.cores, graph.memory_bytes, graph.resident_bytes, graph.category] == [None] * 5
    assert (graph.num_objects, graph.num_edges) == (0, 0)
    assert graph.object_size.dtype == np.float64


def test_a_plan_from_times_is_in_order_of_start() -> None:
    plan = Plan.from_times(
        np.array([1, 0, 1, 0]), np.array([2.0, 0, 0, 0]), np.array([3.0, 0, 4, 0]), ints(3, 1, 0, 2), x=7
    )
    assert (plan.assignment.tolist(), plan.order.tolist()) == ([1, 0, 1, 0], [3, 1, 2, 0])
    assert (plan.discipline, plan.info) == ("sequence", {"x": 7})
    assert (plan.assignment.dtype, plan.order.dtype, plan.rank.dtype) == (np.int32, np.int32, np.int32)
    assert plan.rank.tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seed": -1}, "seed: -1 must not be negative"),
        ({"time_limit_s": 0.0}, "time_limit_s: 0.0 must be positive"),
        ({"time_limit_s": float("nan")}, "time_limit_s: nan must be positive"),
    ],
)
def test_wrong_budgets_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Budget(**wrong)  # type: ignore[arg-type]
    assert str(caught.value) == words
    assert Budget(seed=0, time_limit_s=0.5).num_threads == 2


def test_spot_series_say_what_is_wrong_with_them() -> None:
    one, two = np.zeros(1), np.array([0.0, 1.0])
    assert Spot(one, one, one).bid_usd_per_hour == INF
    for times, prices, hazards, words in (
        (one, two, two, "spot: time, price and hazard need one length"),
        (two + 1, two, two, "spot.time_s: times must start at zero and ascend"),
        (two, -two, two, "spot: prices and hazards must not be negative"),
        (two, two, -two, "spot: prices and hazards must not be negative"),
    ):
        with pytest.raises(InvalidInput) as caught:
            Spot(times, prices, hazards)
        assert str(caught.value) == words
    assert PriorityWeights(max_age_s=0.5, half_life_s=0.5).age == 1000.0


def test_projects_are_declined_by_most_planners() -> None:
    graph = TaskGraph.from_edges([1.0], [], [])
    assert no_projects(Problem.of(graph, Cluster.parse("cpu:1"))) is None
    project = replace(graph, resources=Resources(("saw",), ints(1), np.array([[1]], np.int32)))
    reason = no_projects(Problem.of(project, Cluster.parse("cpu:1")))
    assert reason == "projects with renewable resources need one of: annealing, cp-sat"


# Problems -----------------------------------------------------------------------------------------


def test_links_become_seconds_and_seconds_per_byte() -> None:
    odd = np.array([[7.0, 2.0], [4.0, 7.0]])
    cluster = Cluster((Device("a"), Device("b")), odd, odd)
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 8.0)
    arrays = Problem.of(graph, cluster).arrays
    assert arrays.latency.tolist() == [[0.0, 2.0], [4.0, 0.0]]
    assert arrays.inv_bandwidth.tolist() == [[0.0, 0.5], [0.25, 0.0]]
    assert cluster.latency_s[0, 0] == 7.0  # the cluster's own matrix stays as it is
    timed = Problem.of(replace(graph, transfer_unit="seconds"), cluster).arrays
    assert timed.latency.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert timed.inv_bandwidth.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_problem_knows_whether_moving_is_free() -> None:
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 8.0)
    assert Problem.of(graph, Cluster.parse("cpu:1")).is_free_to_move
    assert not Problem.of(graph, Cluster.parse("cpu:2")).is_free_to_move
    assert Problem.of(TaskGraph.from_edges([1.0, 1.0], [0], [1]), Cluster.parse("cpu:2")).is_free_to_move
    ideal = Cluster.uniform([Device("a"), Device("b")], bandwidth=INF)
    assert Problem.of(graph, ideal).is_free_to_move
    far = Cluster.uniform([Device("a"), Device("b")], bandwidth=INF, latency_s=1.0)
    assert not Problem.of(graph, far).is_free_to_move


def test_a_problem_lists_reads_by_task_and_readers_by_object() -> None:
    graph = TaskGraph.from_edges([1.0] * 4, [0, 0, 1], [2, 1, 2], [5.0, 5.0, 3.0], shared_outputs=True)
    arrays = Problem.of(Workload.of([graph], arrivals_s=[2.5]), Cluster.parse("cpu:2,gpu:1x2")).arrays
    assert arrays.in_ptr.tolist() == [0, 0, 1, 3, 3]
    assert (arrays.in_task.tolist(), arrays.in_size.tolist(), arrays.in_object.tolist()) == (
        [0, 0, 1],
        [5, 5, 3],
        [0, 0, 1],
    )
    assert (arrays.out_ptr.tolist(), arrays.object_task.tolist()) == ([0, 1, 2, 2, 2], [0, 1])
    assert (arrays.object_size.tolist(), arrays.object_ptr.tolist()) == ([5, 3], [0, 2, 3])
    assert sorted(arrays.object_reader[:2].tolist()) == [1, 2]
    assert arrays.object_reader[2] == 2
    assert (arrays.release.tolist(), arrays.topo.tolist()) == ([2.5] * 4, [0, 1, 2, 3])
    assert (arrays.duration.tolist(), arrays.device_class.tolist()) == ([[1.0, 0.5]] * 4, [0, 0, 1])


def test_clusters_are_called_by_what_made_them() -> None:
    assert Cluster.parse("cpu:2,gpu:1").name == "cpu:2,gpu:1"
    assert Cluster.related([1.0]).name == "related"
    assert Cluster.uniform([Device("a")], name="mine").name == "mine"


def test_a_merged_workload_keeps_every_column() -> None:
    first = TaskGraph.from_edges([1.0, 2.0], [0], [1], 3.0, name="a", memory_bytes=np.array([1.0, 2.0]),
                                 categories=("x",), category=ints(0, 0), transfer_unit="seconds")  # fmt: skip
    second = TaskGraph.from_edges([4.0], [], [], name="b", resident_bytes=np.array([9.0]), kinds=("gpu", "cpu"),
                                  kind_duration_s=np.array([[5.0, 6.0]]), transfer_unit="seconds")  # fmt: skip
    third = TaskGraph.from_edges(
        [7.0], [], [], kinds=("fpga",), kind_duration_s=np.array([[8.0]]), transfer_unit="seconds"
    )
    merged, release, ptr = merge(Workload.of([first, second, third], arrivals_s=[0.0, 1.0, 2.0]))
    assert (merged.transfer_unit, merged.kinds) == ("seconds", ("gpu", "cpu", "fpga"))
    assert merged.kind_duration_s is not None
    assert merged.kind_duration_s.tolist() == [[1] * 3, [2] * 3, [5, 6, INF], [INF, INF, 8]]
    assert merged.memory_bytes is not None
    assert merged.resident_bytes is not None
    assert (merged.memory_bytes.tolist(), merged.resident_bytes.tolist()) == ([1, 2, 0, 0], [0, 0, 9, 0])
    assert [merged.category_name(task) for task in range(4)] == ["x", "x", "", ""]
    assert (release.tolist(), ptr.tolist(), ptr.dtype) == ([0, 0, 1, 2], [0, 2, 3, 4], np.int32)
    assert merged.object_size.tolist() == [3.0]


# Order --------------------------------------------------------------------------------------------


def test_groups_keep_the_order_of_their_items() -> None:
    ptr, order = group(ints(2, 0, 2, 0, 2), 4)
    assert (ptr.tolist(), order.tolist()) == ([0, 2, 2, 5, 5], [1, 3, 0, 2, 4])
    assert (ptr.dtype, order.dtype) == (np.int32, np.int32)


def test_orders_go_level_by_level_and_a_cycle_has_none() -> None:
    order = topological_order(5, ints(4, 3, 3, 1), ints(1, 1, 0, 0))
    assert order is not None
    assert order.tolist() == [2, 3, 4, 1, 0]
    assert order.dtype == np.int32
    assert topological_order(3, ints(0, 2, 1), ints(2, 1, 2)) is None
    assert find_cycle(4, ints(0, 2, 1, 3), ints(2, 1, 2, 2)) in ([1, 2], [2, 1])


def test_a_job_that_needs_no_time_and_takes_some_is_slowed_down_without_limit() -> None:
    problem = Problem.of(TaskGraph.from_edges([0.0], [], []), Cluster.parse("cpu:1"))
    late = Schedule(ints(0), np.array([3.0]), np.array([3.0]), "sequence")
    assert measure(problem, late).slowdown.tolist() == [INF]
