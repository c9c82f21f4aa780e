"""Plans as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.plan_json import plan_to_json, read_plan


@pytest.fixture
def problem() -> Problem:
    graph = TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 1], [1, 2], task_names=("a", "b", "c"))
    return Problem.of(graph, Cluster.parse("cpu:1,gpu:1"))


def _read(body: Any, problem: Problem) -> Plan:
    return read_plan(Document("plan.json", json.dumps(body).encode()), problem)


def test_a_plan_comes_back(problem: Problem) -> None:
    plan = Plan(np.array([0, 1, 0], dtype=np.int32), np.array([0, 1, 2], dtype=np.int32), "work-conserving")
    body = plan_to_json(plan, problem)
    assert body["devices"] == ["cpu0", "gpu0"]
    read = _read({"policy": "heft", "makespan_s": 6.0, **body}, problem)
    np.testing.assert_array_equal(read.assignment, plan.assignment)
    np.testing.assert_array_equal(read.order, plan.order)
    assert read.assignment.dtype == read.order.dtype == np.int32
    assert read.discipline == "work-conserving"
    assert read.info == {"policy": "heft", "makespan_s": 6.0}


def test_names_mappings_and_other_orders_of_devices(problem: Problem) -> None:
    expected = [1, 0, 1]
    for body in (
        {"assignment": ["gpu0", "cpu0", "gpu0"], "order": ["a", "b", "c"]},
        {"assignment": {"c": "gpu0", "a": 1, "b": "cpu0"}, "order": [0, 1, 2]},
        {"assignment": [0, 1, 0], "order": [2, 1, 0], "devices": ["gpu0", "cpu0"], "tasks": ["c", "b", "a"]},
    ):
        plan = _read(body, problem)
        assert plan.assignment.tolist() == expected
        assert plan.order.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"assignment": [0, 1]}, "assignment", "2 devices for 3 tasks"),
        ({"assignment": [0, 1, 2]}, "assignment[2]", "device 2 does not exist; there are 2"),
        ({"assignment": [0, 1, "gpu1"]}, "assignment[2]", "did you mean gpu0"),
        ({"assignment": [0, 1, -1]}, "assignment[2]", "device -1"),
        ({"assignment": [0, 1, 1.5]}, "assignment[2]", "1.5"),
        ({"assignment": [0, 1, True]}, "assignment[2]", "True"),
        ({"assignment": {"a": 0, "b": 0, "z": 0}}, "assignment[z]", "unknown task 'z'"),
        ({"assignment": None}, "assignment", "expected a list"),
        ({"order": [0, 1]}, "order", "'c' is missing"),
        ({"order": [0, 1, 1]}, "order[2]", "appears twice"),
        ({"order": [0, 1, "b"]}, "order[2]", "appears twice"),
        ({"order": [0, 1, 3]}, "order[2]", "task 3 does not exist"),
        ({"order": "abc"}, "order", "expected a list"),
        ({"discipline": "lazy"}, "discipline", "'lazy'"),
        ({"devices": ["cpu0", "tpu0"]}, "devices", "unknown device 'tpu0'"),
    ],
)
def test_faults_are_named(problem: Problem, change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _read({"assignment": [0, 1, 0], "order": [0, 1, 2], **change}, problem)
    assert caught.value.source == "plan.json"
    assert caught.value.field == field
    assert message in caught.value.message


def test_not_an_object(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="expected an object"):
        _read([1, 2], problem)
