"""Graphs at a glance, weights on devices and columns of builders, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.devices.weights import Weights, merged_weights, resident_of_devices, resident_of_tasks
from stretto.core.graph import Resources, TaskGraph, check_table
from stretto.core.graph_facts import graph_facts
from stretto.core.problem import Problem, merge
from stretto.core.workload import Workload
from stretto.errors import InvalidInput


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def diamond() -> TaskGraph:
    """a -> (b, c) -> d, with an output of a that nobody reads, and one of b that c and d read."""
    build = GraphBuilder("diamond")
    a, b, c, d = (build.task(name, work) for name, work in (("a", 1.0), ("b", 2.0), ("c", 4.0), ("d", 8.0)))
    build.object(a, 100.0)
    build.edge(a, b, 10.0)
    shared = build.object(b, 7.0)
    build.read(c, shared)
    build.read(d, shared)
    build.edge(c, d, 30.0)
    build.meta["durations"] = "measured"
    return build.graph()


def test_data_that_nobody_reads_does_not_count() -> None:
    found = graph_facts(diamond())
    assert (found.name, found.num_tasks, found.num_objects, found.num_edges) == ("diamond", 4, 4, 4)
    assert found.data == 10 + 7 + 30  # each object once
    assert (found.depth, found.width, found.work_s, found.critical_path_s) == (4, 1, 15.0, 15.0)
    assert (found.transfer_unit, found.bandwidth, found.durations) == ("bytes", 1e9, "measured")
    assert found.ccr == pytest.approx((10 + 7 + 7 + 30) / 4 / 1e9 / (15 / 4))
    assert (found.resources, found.notes) == ((), ())


def test_the_heaviest_path_is_not_the_longest() -> None:
    graph = TaskGraph.from_edges([1.0, 9.0, 1.0, 1.0, 1.0], [0, 0, 2, 3], [1, 2, 3, 4])
    found = graph_facts(graph)
    assert (found.depth, found.width, found.critical_path_s, found.data, found.ccr) == (4, 2, 10.0, 0.0, 0.0)
    project = replace(graph, resources=Resources(("crew", "saw"), ints(1, 1), np.zeros((5, 2), np.int32)))
    assert graph_facts(project).resources == ("crew", "saw")


def test_a_graph_without_work_has_no_share_of_communication() -> None:
    assert graph_facts(TaskGraph.from_edges([0.0, 1.0], [0], [1], 4e9)).ccr == pytest.approx(4.0 / 0.5)
    assert graph_facts(TaskGraph.from_edges([0.5, 0.5], [0], [1], 1e9)).ccr == pytest.approx(2.0)


# Weights ------------------------------------------------------------------------------------------


def weights() -> Weights:
    """Three weights of 10.5, 20 and 40 bytes; nobody reads the second one, and task 1 reads two."""
    return Weights(np.array([10.5, 20.0, 40.0]), ints(2, 1, 1), ints(0, 0, 2))


def test_weights_by_task_and_by_device() -> None:
    found = weights()
    assert found.num_weights == 3
    assert found.read_by(4) == [[], [0, 2], [0], []]
    assert found.on_devices(ints(0, 0, 1, 2), 4).tolist() == [51, 11, 0, 0]
    assert found.on_devices(ints(3, 3, 3, 3), 4).tolist() == [0, 0, 0, 51]
    assert found.at_first_reader(4).tolist() == [0, 51, 0, 0]
    assert found.of_readers(4).tolist() == [0, 51, 11, 0]
    for column in (found.on_devices(ints(0, 0, 1), 2), found.at_first_reader(3), found.of_readers(3)):
        assert column.dtype == np.float64


def test_what_stays_on_devices_is_resident_bytes_and_weights() -> None:
    plain = TaskGraph.from_edges([1.0] * 3, [], [])
    assert resident_of_tasks(plain).tolist() == [0, 0, 0]
    assert resident_of_devices(plain, ints(0, 1, 1), 2).tolist() == [0, 0]
    own = replace(plain, resident_bytes=np.array([1.5, 2.0, 0.0]))
    assert resident_of_tasks(own).tolist() == [2, 2, 0]
    assert resident_of_devices(own, ints(1, 1, 0), 3).tolist() == [0, 4, 0]
    both = replace(own, weights=weights())
    assert resident_of_tasks(both).tolist() == [2, 53, 0]
    assert resident_of_devices(both, ints(1, 1, 0), 3).tolist() == [11, 55, 0]


@pytest.mark.parametrize(
    ("size", "task", "item", "text"),
    [
        ([1.0, -1.0], [0], [0], "weights: weight 1 has -1.0 bytes; it must be finite and not negative"),
        ([1.0, 1e19], [0], [0], "weights: weight 1 has 1e+19 bytes; supported: 0, or 1e-09 to 1e+18 bytes"),
        ([1.0], [0, 1], [0], "weights: 2 tasks for 1 weights"),
        ([1.0, 2.0], [0], [2], "weights.item: index out of range 0..1"),
        ([1.0, 2.0], [0], [-1], "weights.item: index out of range 0..1"),
        ([1.0], [3], [0], "weights.task: index out of range 0..2"),
        ([1.0], [-1], [0], "weights.task: index out of range 0..2"),
    ],
)
def test_what_is_wrong_with_weights(size: list[float], task: list[int], item: list[int], text: str) -> None:
    graph = TaskGraph.from_edges([1.0] * 3, [], [])
    with pytest.raises(InvalidInput) as caught:
        replace(graph, weights=Weights(np.array(size), ints(*task), ints(*item)))
    assert str(caught.value) == text


def test_weights_of_merged_graphs_keep_their_readers() -> None:
    plain = TaskGraph.from_edges([1.0] * 2, [], [])
    weighted = replace(TaskGraph.from_edges([1.0] * 3, [], []), weights=weights())
    assert merged_weights([plain, plain]) is None
    found = merged_weights([plain, weighted, plain, weighted])
    assert found is not None
    assert found.size_bytes.tolist() == [10.5, 20, 40] * 2
    assert found.task.tolist() == [4, 3, 3, 9, 8, 8]
    assert found.item.tolist() == [0, 0, 2, 3, 3, 5]
    assert (found.task.dtype, found.item.dtype) == (np.int32, np.int32)


# Builders and merged graphs -----------------------------------------------------------------------


def test_a_builder_keeps_named_needs_gpus_and_weights() -> None:
    build = GraphBuilder("needs")
    a = build.task("a", 1.0, gpus=1, needs={"io": 2})
    b = build.task("b", 1.0, needs={"license": 1, "io": 0.5})
    c = build.task("c", 1.0)
    first, second = build.weight(5), build.weight(7.5)
    for task, weight in ((a, first), (c, second), (a, first), (b, second)):
        build.read_weight(task, weight)
    graph = build.graph()
    assert {name: column.tolist() for name, column in graph.other_needs.items()} == {
        "io": [2, 0.5, 0], "license": [0, 1, 0],
    }  # fmt: skip
    assert graph.gpus is not None
    assert graph.gpus.tolist() == [1, 0, 0]
    assert graph.weights is not None
    assert graph.weights.size_bytes.tolist() == [5, 7.5]
    assert graph.weights.read_by(3) == [[0], [1], [1]]
    plain = GraphBuilder()
    plain.task("a", 1.0)
    assert (plain.graph().weights, plain.graph().gpus, plain.graph().other_needs) == (None, None, {})
    unread = GraphBuilder()
    unread.task("a", 1.0)
    unread.weight(3.0)
    found = unread.graph().weights
    assert found is not None
    assert (found.num_weights, found.read_by(1)) == (1, [[]])


def test_a_task_that_reads_its_own_output_is_named() -> None:
    build = GraphBuilder()
    build.task("a", 1.0)
    b = build.task("b", 1.0)
    build.read(b, build.object(b, 1.0))
    with pytest.raises(InvalidInput) as caught:
        build.graph()
    assert str(caught.value) == "task 'b': the task depends on itself"


def test_a_merged_workload_keeps_needs_gpus_and_where_durations_come_from() -> None:
    def one(name: str, gpus: float, needs: dict[str, float], durations: str) -> TaskGraph:
        build = GraphBuilder(name)
        build.task("t", 1.0, gpus=gpus, needs=needs)
        build.meta["durations"] = durations
        return build.graph()

    graphs = [one("a", 0, {"io": 1}, "measured"), one("b", 2, {"license": 3}, "measured"), one("c", 0, {}, "measured")]
    merged, _, _ = merge(Workload.of(graphs))
    assert merged.gpus is not None
    assert merged.gpus.tolist() == [0, 2, 0]
    assert {name: column.tolist() for name, column in merged.other_needs.items()} == {
        "io": [1, 0, 0], "license": [0, 3, 0],
    }  # fmt: skip
    assert merged.meta == {"durations": "measured"}
    assert (merged.cores, merged.memory_bytes, merged.resident_bytes, merged.weights) == (None,) * 4


def test_tables_of_durations_are_limited() -> None:
    check_table(10_000_000, ["cpu", "gpu"])
    with pytest.raises(InvalidInput) as caught:
        check_table(10_000_001, ["cpu", "gpu"])
    assert str(caught.value) == (
        "durations: 10,000,001 tasks with durations for 2 kinds of devices; the table has at most 20,000,000 entries"
    )


def test_projects_are_no_work_for_nodes() -> None:
    graph = TaskGraph.from_edges(
        [1.0], [], [], name="house", resources=Resources(("saw",), ints(1), np.ones((1, 1), np.int32))
    )
    node = Cluster.uniform([Device("n", cores=4.0, packs=True)])
    with pytest.raises(InvalidInput, match=r"cluster: graph 'house' has renewable resources of its own") as caught:
        Problem.of(graph, node)
    assert caught.value.field == "cluster"
    assert Problem.of(graph, Cluster.parse("shop:1")).packing is None
    assert Problem.of(TaskGraph.from_edges([1.0], [], []), node).packing is not None


def test_the_sum_of_all_times_counts_arrivals_work_and_the_slowest_transfers() -> None:
    """Each part alone is within the range of 1e18 s, and so are two of them."""
    one = TaskGraph.from_edges([1e12, 1e12], [0], [1], 1e18)
    work = Workload.of([one] * 400, arrivals_s=[1e12] * 400)
    link = 1e18 / 1e15  # 1e15 s per transfer
    Problem.of(Workload.of([one] * 400), Cluster.parse(f"cpu:2x1@{link}B/s"))
    with pytest.raises(InvalidInput, match=r"would take up to 1\.0008e\+18 s on cluster") as caught:
        Problem.of(Workload.of([one] * 1000), Cluster.parse(f"cpu:2x1@{link * 1.0012}B/s"))
    assert caught.value.field == "duration"
    assert Problem.of(work, Cluster.parse("cpu:1")).num_tasks == 800
