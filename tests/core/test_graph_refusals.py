"""What a graph, a builder and a workload refuse, in which words; and what they make of what they accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.csr import find_cycle, topological_order
from stretto.core.graph import Resources, TaskGraph, sequence_of
from stretto.core.problem import merge
from stretto.core.workload import Job, Workload
from stretto.errors import InvalidInput, UnknownName

GRAPH = TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 0], [1, 2], [5.0, 7.0], task_names=("a", "b", "c"))
INT = np.int32


def floats(*values: float) -> np.ndarray:
    return np.array(values)


def ints(*values: int) -> np.ndarray:
    return np.array(values, INT)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"work_s": floats()}, "tasks", "the graph has no tasks"),
        ({"task_names": ("a",)}, "task_names", "1 names for 3 tasks"),
        ({"work_s": floats(1, -2, 3)}, "duration", "task 'b' has duration -2; it must be finite and not negative"),
        ({"work_s": floats(1, 2, np.inf)}, "duration", "task 'c' has duration inf; it must be finite and not negative"),
        ({"cores": floats(1, 2)}, "cores", "cores has shape (2,), expected (3,)"),
        ({"cores": floats(np.nan, 2, 3)}, "cores", "task 'a' has cores nan; it must be finite and not negative"),
        ({"memory_bytes": floats(0, 0, -1)}, "memory_bytes", "task 'c' has memory_bytes -1; it must be finite"),
        ({"resident_bytes": floats(0, np.inf, 0)}, "resident_bytes", "task 'b' has resident_bytes inf"),
        ({"category": ints(0, 1), "categories": ("x", "y")}, "category", "category has shape (2,), expected (3,)"),
        ({"category": ints(0, 1, 2), "categories": ("x", "y")}, "category", "index out of range 0..1"),
        ({"category": ints(0, -1, 0), "categories": ("x", "y")}, "category", "index out of range 0..1"),
        (
            {"kinds": ("cpu",), "kind_duration_s": np.ones((3, 2))},
            "durations",
            "durations have shape (3, 2), expected (3, 1)",
        ),
        (
            {"kinds": ("cpu", "gpu"), "kind_duration_s": np.array([[1, 2], [3, -4], [5, 6.0]])},
            "durations",
            "task 'b' has duration -4.0 on gpu; it must not be negative or NaN (inf = cannot run)",
        ),
        ({"object_size": floats(1)}, "size", "1 sizes for 2 objects"),
        ({"object_size": floats(1, np.nan)}, "size", "an output of task 'a' has size nan; it must be finite"),
        ({"object_task": ints(0, 3)}, "object_task", "index out of range 0..2"),
        ({"read_task": ints(-1, 2)}, "read_task", "index out of range 0..2"),
        ({"read_object": ints(0, 2)}, "read_object", "index out of range 0..1"),
        ({"read_task": ints(1)}, "edges", "read_task and read_object differ in length"),
        ({"object_task": ints(1, 0), "read_task": ints(2, 2)}, "object_task", "objects must be grouped by ascending"),
    ],
)
def test_a_wrong_graph_is_refused(changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(GRAPH, **changes)
    assert words in str(caught.value)
    assert caught.value.field == field


def test_limits_that_are_just_met_are_accepted() -> None:
    limits: dict[str, Any] = {"cores": floats(0, 0, 0), "memory_bytes": floats(0, 1, 2), "work_s": floats(0, 0, 0)}
    assert replace(GRAPH, **limits).num_tasks == 3
    table = np.array([[0.0, np.inf], [1, 2], [np.inf, 0]])
    assert replace(GRAPH, kinds=("cpu", "gpu"), kind_duration_s=table, work_s=floats(np.inf, 1, 1)).kinds == (
        "cpu",
        "gpu",
    )
    assert replace(GRAPH, category=ints(0, 1, 1), categories=("x", "y")).category_name(2) == "y"
    assert GRAPH.category_name(0) == ""


def test_cycles_are_told_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"the graph has a cycle: [ab] -> [ab] -> [ab]$"):
        TaskGraph.from_edges([1, 1, 1], [0, 1, 1], [1, 0, 2], task_names=("a", "b", "c"))
    ring = np.arange(10)
    with pytest.raises(InvalidInput, match=r"cycle: (t\d -> ){8}t\d \(10 tasks\)$"):
        TaskGraph.from_edges(np.ones(10), ring, (ring + 1) % 10)


def test_a_cycle_is_one_and_in_order() -> None:
    source, target = ints(0, 1, 2, 3, 0, 4), ints(1, 2, 3, 1, 4, 5)
    cycle = find_cycle(6, source, target)
    assert sorted(cycle) == [1, 2, 3]
    pairs = set(zip(source.tolist(), target.tolist()))
    assert all(pair in pairs for pair in zip(cycle, [*cycle[1:], cycle[0]]))


@pytest.mark.parametrize("seed", range(20))
def test_a_cycle_is_found_whatever_comes_before_and_after_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = rng.permutation(9).tolist()
    ahead = [(name[a], name[b]) for a in range(9) for b in range(a + 1, 9) if rng.random() < 0.4]
    back = (name[6], name[3])
    edges = sorted({*ahead, (name[3], name[6]), back})
    source, target = np.array(edges, INT).T
    cycle = find_cycle(9, source, target)
    assert len(set(cycle)) == len(cycle) >= 2
    assert all(pair in edges for pair in zip(cycle, [*cycle[1:], cycle[0]]))
    assert topological_order(9, source, target) is None
    kept = np.array([edge for edge in edges if edge != back], INT).T
    order = topological_order(9, kept[0], kept[1])
    assert order is not None
    rank = np.argsort(order)
    assert sorted(order.tolist()) == list(range(9))
    assert np.all(rank[kept[0]] < rank[kept[1]])


def test_edges_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 sources but 1 targets"):
        TaskGraph.from_edges([1, 1], [0, 0], [1])
    with pytest.raises(InvalidInput, match="edge 1 names task 2, but there are 2 tasks"):
        TaskGraph.from_edges([1, 1], [0, 0], [1, 2])
    with pytest.raises(InvalidInput, match="edge 0 names task -1, but there are 2 tasks"):
        TaskGraph.from_edges([1, 1], [-1], [1])


def test_repeated_edges_add_up_and_shared_outputs_are_one() -> None:
    added = TaskGraph.from_edges([1, 1, 1], [0, 0, 0], [1, 2, 1], [5.0, 7.0, 2.0])
    assert sorted(zip(added.edges[1].tolist(), added.edges[2].tolist())) == [(1, 7.0), (2, 7.0)]
    assert added.num_objects == 2
    shared = TaskGraph.from_edges([1, 1, 1, 1], [0, 0, 0], [1, 2, 3], [5.0, 5.0, 6.0], shared_outputs=True)
    assert shared.object_size.tolist() == [5.0, 6.0]
    assert shared.num_edges == 3
    assert shared.index_of == {"t0": 0, "t1": 1, "t2": 2, "t3": 3}


def resources(capacity: list[int], demand: list[list[int]]) -> Resources:
    return Resources(("r", "s"), np.array(capacity, INT), np.array(demand, INT))


def test_a_project_cannot_need_more_than_there_is() -> None:
    fine = resources([2, 3], [[2, 3], [0, 0], [1, 1]])
    assert replace(GRAPH, resources=fine).resources is fine
    with pytest.raises(InvalidInput, match="task 'b' needs 4 of 's', which has 3"):
        replace(GRAPH, resources=resources([2, 3], [[0, 0], [0, 4], [0, 0]]))
    with pytest.raises(InvalidInput, match="task 'a' needs -1 of 'r', which has 2"):
        replace(GRAPH, resources=resources([2, 3], [[-1, 0], [0, 0], [0, 0]]))
    for wrong in (resources([2], [[0, 0]] * 3), resources([2, 3], [[0, 0]] * 2)):
        with pytest.raises(InvalidInput, match="do not fit the tasks and resources"):
            replace(GRAPH, resources=wrong)


def test_a_builder_names_what_is_wrong() -> None:
    build = GraphBuilder("flow")
    first = build.task("one", 1.0, durations={"gpu": 0.5}, cores=2, category="x")
    second = build.task("two", 3.0)
    with pytest.raises(InvalidInput, match="two tasks have the same name") as caught:
        build.task("one", 2.0)
    assert caught.value.field == "task 'one'"
    with pytest.raises(InvalidInput, match="unknown task 'three'") as caught:
        build.find("three", wanted_by="edge 7")
    assert caught.value.field == "edge 7"
    assert build.find("two", wanted_by="x") == second
    assert "two" in build
    assert "three" not in build
    build.edge(first, second, 8.0)
    graph = build.graph()
    assert graph.kind_duration_s is not None
    assert graph.kind_duration_s.tolist() == [[0.5], [3.0]]
    assert (graph.cores is not None, graph.memory_bytes) == (True, None)
    assert [graph.category_name(task) for task in range(2)] == ["x", ""]
    build.edge(second, second)
    with pytest.raises(InvalidInput, match="the task depends on itself") as caught:
        build.graph()
    assert caught.value.field == "task 'two'"


def test_reading_twice_is_reading_once() -> None:
    build = GraphBuilder("flow")
    one, two = build.task("one", 1.0), build.task("two", 1.0)
    handle = build.object(one, 4.0)
    build.read(two, handle)
    build.read(two, handle)
    assert build.graph().num_edges == 1


def test_names_get_numbers_in_order_of_appearance() -> None:
    names, codes = sequence_of(["b", "a", "b", "c"])
    assert (names, codes.tolist()) == (("b", "a", "c"), [0, 1, 0, 2])


def test_a_workload_is_merged_side_by_side() -> None:
    other = replace(GRAPH, name="other", cores=floats(1, 2, 3), kinds=("gpu",), kind_duration_s=np.ones((3, 1)))
    merged, release, ptr = merge(Workload.of([GRAPH, other], arrivals_s=[0.0, 4.0], name="both"))
    assert merged.name == "both"
    assert merged.task_names == ("0/a", "0/b", "0/c", "1/a", "1/b", "1/c")
    assert release.tolist() == [0, 0, 0, 4, 4, 4]
    assert ptr.tolist() == [0, 3, 6]
    assert merged.cores is not None
    assert merged.cores.tolist() == [0, 0, 0, 1, 2, 3]
    assert merged.kind_duration_s is not None
    assert merged.kind_duration_s.tolist() == [[1], [2], [3], [1], [1], [1]]
    assert [a.tolist() for a in merged.edges] == [[0, 0, 3, 3], [1, 2, 4, 5], [5, 7, 5, 7]]
    assert merged.memory_bytes is None
    assert merged.category is None
    same, zeros, one = merge(GRAPH)
    assert same is GRAPH
    assert (zeros.tolist(), one.tolist()) == ([0, 0, 0], [0, 3])


def test_what_cannot_share_a_workload() -> None:
    with pytest.raises(InvalidInput, match="the workload has no jobs"):
        merge(Workload("none", ()))
    with pytest.raises(InvalidInput, match="transfers in bytes and in seconds cannot share a workload"):
        merge(Workload.of([GRAPH, replace(GRAPH, transfer_unit="seconds")]))
    project = replace(GRAPH, resources=resources([2, 3], [[0, 0]] * 3))
    with pytest.raises(InvalidInput, match="planned one at a time"):
        merge(Workload.of([project, GRAPH]))


def test_a_workload_finds_its_graphs() -> None:
    second = replace(GRAPH, name="second")
    work = Workload.of([GRAPH, second], name="w")
    assert (len(work), work.num_tasks, [job.arrival_s for job in work]) == (2, 6, [0.0, 0.0])
    assert work.select("second") is second
    assert work.select("0") is GRAPH
    with pytest.raises(UnknownName, match="did you mean second"):
        work.select("secnod")
    with pytest.raises(UnknownName):
        work.select("2")
    with pytest.raises(InvalidInput, match="1 arrivals for 2 graphs"):
        Workload.of([GRAPH, second], arrivals_s=[1.0])
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidInput, match="must be finite and not negative"):
            Job(GRAPH, wrong)


def test_repeated_edges_leave_the_others_in_order() -> None:
    added = TaskGraph.from_edges([1.0] * 4, [1, 0, 0, 0, 1], [3, 3, 1, 3, 2], [9.0, 5.0, 7.0, 2.0, 4.0])
    assert [column.tolist() for column in added.edges] == [[0, 0, 1, 1], [1, 3, 2, 3], [7, 7, 4, 9]]
    assert TaskGraph.from_edges([1.0] * 3, [0, 0], [2, 1], [1.0, 2.0]).edges[1].tolist() == [2, 1]


def test_what_is_derived_is_no_part_of_a_graph_in_words() -> None:
    words = repr(GRAPH)
    assert "read_object" in words
    derived = ("out_ptr", "object_ptr", "object_reader", "in_ptr", "in_object", "topo")
    assert not any(f"{name}=" in words for name in derived)
    assert [getattr(GRAPH, name).tolist() for name in derived] == [
        [0, 2, 2, 2],
        [0, 1, 2],
        [1, 2],
        [0, 0, 1, 2],
        [0, 1],
        [0, 1, 2],
    ]
    assert {getattr(GRAPH, name).dtype for name in derived} == {np.dtype(np.int32)}


def test_more_about_a_graph_is_another_graph_with_the_same_arrays() -> None:
    told = GRAPH.with_meta(source="x")
    again = told.with_meta(source="y", more=1)
    assert (GRAPH.meta, told.meta, again.meta) == ({}, {"source": "x"}, {"source": "y", "more": 1})
    assert told.work_s is GRAPH.work_s
    assert (told.name, told.task_name(1), told.num_objects) == (GRAPH.name, "b", 2)


def test_a_graph_of_edges_is_called_so_and_shares_equal_outputs_of_one_task_only() -> None:
    graph = TaskGraph.from_edges([1.0] * 4, [0, 0, 1, 1], [2, 3, 2, 3], [5.0, 5.0, 5.0, 6.0], shared_outputs=True)
    assert (graph.name, graph.object_task.tolist(), graph.object_size.tolist()) == ("graph", [0, 1, 1], [5, 5, 6])
    assert graph.read_object.tolist() == [0, 0, 1, 2]
    alone = TaskGraph.from_edges([1.0] * 4, [0, 0, 1, 1], [2, 3, 2, 3], 5.0)
    assert (alone.num_objects, alone.object_size.tolist()) == (4, [5.0] * 4)
    empty = TaskGraph.from_edges([1.0], [], [], shared_outputs=True)
    assert (empty.num_objects, empty.task_name(0)) == (0, "t0")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gpus": floats(0, -1.0, 0)}, "gpus: task 'b' has gpus -1.0; it must be finite and not negative"),
        ({"cores": floats(0, 1e10, 0)}, "cores: task 'b' has cores 10000000000.0; supported: 0, or 1e-06 to 1e+09"),
        (
            {"memory_bytes": floats(0, 0, 1e19)},
            "memory_bytes: task 'c' has memory_bytes 1e+19; supported: 0, or 1e-09 to 1e+18 bytes",
        ),
        (
            {"other_needs": {"io": floats(1, -1.0, 0)}},
            "need of 'io': task 'b' has need of 'io' -1.0; it must be finite and not negative",
        ),
        ({"other_needs": {"io": floats(1, 1)}}, "need of 'io': need of 'io' has shape (2,), expected (3,)"),
        (
            {"object_size": floats(1, 1e13), "transfer_unit": "seconds"},
            "size: an output of task 'a' has size 10000000000000.0; supported: 0, or 1e-12 to 1e+12 s",
        ),
        (
            {"object_size": floats(1, 1e19)},
            "size: an output of task 'a' has size 1e+19; supported: 0, or 1e-09 to 1e+18 bytes",
        ),
    ],
)
def test_numbers_of_a_graph_have_ranges(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(GRAPH, **changes)
    assert str(caught.value) == text


def test_large_data_is_fine_in_bytes_and_not_in_seconds() -> None:
    assert replace(GRAPH, object_size=floats(1, 1e18)).object_size.max() == 1e18
    assert replace(GRAPH, object_size=floats(1, 1e12), transfer_unit="seconds").transfer_unit == "seconds"
