"""Stretto's own JSON keeps everything."""

from __future__ import annotations

import json

import numpy as np
import pytest
from format_samples import assert_same, document, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT


@settings(max_examples=150, deadline=None)
@given(graph=graphs())
def test_a_graph_comes_back_bit_for_bit(graph: TaskGraph) -> None:
    written = Document("g.json", FORMAT.write(graph))
    assert FORMAT.matches(written)
    read = FORMAT.read(written)
    assert isinstance(read, TaskGraph)
    assert_same(graph, read)


@settings(max_examples=30, deadline=None)
@given(jobs=st.lists(st.tuples(graphs(), st.floats(1e-9, 1e9)), max_size=3))
def test_a_workload_comes_back_with_its_arrivals(jobs: list[tuple[TaskGraph, float]]) -> None:
    workload = Workload.of([g for g, _ in jobs], arrivals_s=[t for _, t in jobs], name="several")
    read = FORMAT.read(Document("w.json", FORMAT.write(workload)))
    assert isinstance(read, Workload)
    assert read.name == "several"
    assert [job.arrival_s for job in read] == [t for _, t in jobs]
    for (graph, _), job in zip(jobs, read, strict=True):
        assert_same(graph, job.graph)


def test_infinite_durations_are_null() -> None:
    graph = TaskGraph.from_edges(
        [1.0, 2.0], [0], [1], kinds=("gpu",), kind_duration_s=np.array([[np.inf], [0.5]]), name="g"
    )
    body = json.loads(FORMAT.write(graph))
    assert body["kind_duration_s"] == [[None, 0.5]]
    assert FORMAT.read(document(body)).kind_duration_s[0, 0] == np.inf  # type: ignore[union-attr, index]


def _body() -> dict[str, object]:
    return {"format": "stretto-graph", "version": 1, "work_s": [1, 2], "object_task": [0], "object_size": [3.5],
            "read_task": [1], "read_object": [0], "task_names": ["a", "b"]}  # fmt: skip


def test_the_smallest_useful_file() -> None:
    graph = FORMAT.read(document(_body(), "tiny.json"))
    assert isinstance(graph, TaskGraph)
    assert (graph.name, graph.num_tasks, graph.num_edges) == ("tiny", 2, 1)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("wrok_s", [1], "did you mean"),
        ("version", 2, "version 2 is not 1"),
        ("work_s", [1, -2], "-2"),
        ("work_s", [1, "2"], "not a number"),
        ("work_s", [1, True], "not a number"),
        ("work_s", [1, [2]], "not a number"),
        ("work_s", {"a": 1}, "not a list"),
        ("work_s", [1, None], "finite"),
        ("work_s", [1, 10**400], "too large"),
        ("read_task", [1.5], "not a whole number"),
        ("read_task", [-1], "item 0 is -1"),
        ("read_task", [7], "out of range"),
        ("read_task", [0], "cycle"),
        ("read_object", [10**12], "expected 0 to"),
        ("object_size", [], "0 sizes for 1 objects"),
        ("task_names", ["a", "a"], "'a' appears twice"),
        ("task_names", ["a"], "1 names for 2 tasks"),
        ("task_names", ["a", 3], "not a name"),
        ("transfer_unit", "hours", "neither bytes nor seconds"),
        ("category", [0, 1], "not below 0"),
        ("kinds", ["gpu"], "go together"),
        ("cores", [1], "shape"),
        ("meta", 3, "not an object"),
        ("name", 3, "not a name"),
        ("resources", {"names": ["r"], "capacity": [1], "demand": [[1]]}, "2 rows"),
    ],
)
def test_faults_are_named(key: str, value: object, message: str) -> None:
    body = _body() | {key: value}
    with pytest.raises(InvalidInput) as caught:
        FORMAT.read(document(body, "bad.json"))
    assert message in str(caught.value)
    assert caught.value.source == "bad.json"
    assert caught.value.field is not None


def test_a_fault_inside_a_workload_says_which_job() -> None:
    body = {"format": "stretto-workload", "version": 1, "jobs": [{"graph": {"work_s": [1]}}, {"graph": {"work_s": []}}]}
    with pytest.raises(InvalidInput) as caught:
        FORMAT.read(document(body, "w.json"))
    assert caught.value.field == "jobs[1].graph.tasks"


def test_meta_that_is_not_json_is_refused() -> None:
    graph = TaskGraph.from_edges([1.0], [], [], meta={"x": object()})
    with pytest.raises(InvalidInput, match="meta"):
        FORMAT.write(graph)
