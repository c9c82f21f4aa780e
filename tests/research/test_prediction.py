"""The prediction of one plan: copies belong to their first reader, and tasks beside others are slower."""

from __future__ import annotations

import numpy as np
import pytest
from research.engines.prediction import copies_s, overlap, predict

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.calibrate import Calibration

CLUSTER = Cluster.parse("cpu:2")


def plan_of(*assignment: int) -> Plan:
    return Plan(np.array(assignment, dtype=np.int32), np.arange(len(assignment), dtype=np.int32), "work-conserving")


def measured(task_s: list[float], alone_s: list[float]) -> Calibration:
    return Calibration(np.array(task_s), np.array(alone_s), same_s=0.5, cross_s=0.75, latency_s=1.0, bandwidth=100.0)


def test_the_first_reader_of_a_device_pays_for_the_copy() -> None:
    """Task 0 makes 200 bytes that 1, 2 and 3 read."""
    graph = TaskGraph.from_edges(np.ones(4), [0, 0, 0], [1, 2, 3], 200.0)
    assert copies_s(graph, plan_of(0, 0, 1, 1), 1.0, 100.0).tolist() == [0.0, 0.0, 3.0, 0.0]
    assert copies_s(graph, plan_of(0, 0, 0, 0), 1.0, 100.0).tolist() == [0.0] * 4


def test_alone_and_in_company() -> None:
    graph = TaskGraph.from_edges(np.ones(2), [], [])
    found = measured([4.0, 4.0], [2.0, 2.0])
    assert predict(found, graph, CLUSTER, plan_of(0, 0)).makespan_s == pytest.approx(2 * 2.5)
    assert predict(found, graph, CLUSTER, plan_of(0, 1)).makespan_s == pytest.approx(4.5)


def test_a_copy_keeps_its_reader_busy() -> None:
    """0 -> 1 on another device: a hop of 0.25, a copy of 3, and nothing else at work meanwhile."""
    graph = TaskGraph.from_edges(np.ones(2), [0], [1], 200.0)
    found = predict(measured([4.0, 4.0], [2.0, 2.0]), graph, CLUSTER, plan_of(0, 1))
    assert found.makespan_s == pytest.approx(2.5 + 0.25 + 2.5 + 3.0)
    assert overlap(found, 2).tolist() == [0.0, 0.0]


def test_a_measurement_in_company_that_was_lucky_is_no_gain() -> None:
    graph = TaskGraph.from_edges(np.ones(2), [], [])
    found = measured([1.0, 1.0], [2.0, 2.0])
    assert predict(found, graph, CLUSTER, plan_of(0, 0)).makespan_s == pytest.approx(2 * 1.5)
