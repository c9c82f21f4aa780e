"""Schedules as Chrome traces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule, Transfers
from stretto.files.chrome_trace import write_trace


def ints(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, dtype=np.int32)


@pytest.fixture
def problem() -> Problem:
    graph = TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 0], [1, 2], [1e9, 2e9], task_names=("a", "b", 'c "x"'))
    devices = [Device("d0", machine="left"), Device("d1", "gpu", machine="right"), Device("d2", machine="right")]
    return Problem.of(graph, Cluster.uniform(devices, bandwidth=1e9))


@pytest.fixture
def schedule() -> Schedule:
    # Both objects go to d1, at overlapping times.
    moves = Transfers(ints(0, 1), ints(0, 0), ints(1, 1), np.array([1.0, 1.0]), np.array([2.0, 3.0]))
    return Schedule(ints(0, 1, 1), np.array([0.0, 2.0, 4.0]), np.array([1.0, 4.0, 7.0]), "sequence", "none", moves)


def events(data: bytes, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(data)["traceEvents"] if event["ph"] == phase]


def test_tasks_in_microseconds_on_their_devices(problem: Problem, schedule: Schedule) -> None:
    spans = [e for e in events(write_trace(problem, schedule), "X") if e["cat"] != "transfer"]
    assert [(e["name"], e["ts"], e["dur"], e["tid"]) for e in spans] == [
        ("a", 0.0, 1e6, 0),
        ("b", 2e6, 2e6, 1),
        ('c "x"', 4e6, 3e6, 1),
    ]
    assert [e["pid"] for e in spans] == [0, 1, 1]


def test_machines_are_processes_and_devices_threads(problem: Problem, schedule: Schedule) -> None:
    meta = events(write_trace(problem, schedule), "M")
    assert [e["args"]["name"] for e in meta if e["name"] == "process_name"] == ["left", "right"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in meta if e["name"] == "thread_name"}
    assert threads[0, 0] == "d0 (cpu)"
    assert threads[1, 1] == "d1 (gpu)"


def test_transfers_have_rows_without_overlap_and_arrows(problem: Problem, schedule: Schedule) -> None:
    data = write_trace(problem, schedule)
    moves = [e for e in events(data, "X") if e["cat"] == "transfer"]
    assert sorted(e["args"]["size_bytes"] for e in moves) == [1e9, 2e9]
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in moves:
        rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) == 2
    for spans in rows.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
    starts, finishes = events(data, "s"), events(data, "f")
    assert {e["id"] for e in starts} == {e["id"] for e in finishes} == {0, 1}
    assert all(e["ts"] == 1e6 for e in starts)


def test_rows_are_reused_when_transfers_follow_each_other(problem: Problem, schedule: Schedule) -> None:
    moves = Transfers(ints(0, 1), ints(0, 0), ints(1, 1), np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    one = Schedule(schedule.device, schedule.start_s, schedule.finish_s, "sequence", "fifo", moves)
    spans = [e for e in events(write_trace(problem, one), "X") if e["cat"] == "transfer"]
    assert len({e["tid"] for e in spans}) == 1


def test_without_recorded_transfers(problem: Problem, schedule: Schedule) -> None:
    bare = Schedule(schedule.device, schedule.start_s, schedule.finish_s, "work-conserving")
    data = write_trace(problem, bare)
    assert len(events(data, "X")) == 3
    assert json.loads(data)["otherData"]["makespan_s"] == 7.0
