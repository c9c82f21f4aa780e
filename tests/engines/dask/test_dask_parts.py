"""The parts that need no cluster: who is a device, and what is known of tasks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.dask.settings import TaskEstimates
from stretto.engines.dask.survey import DaskWorker, bind, check_names
from stretto.engines.driver.dispatch import LateDispatcher, View
from stretto.errors import Infeasible, InvalidInput

WORKERS = (DaskWorker("tcp://1", "a", 1, "cpu"), DaskWorker("tcp://2", "b", 2, "gpu"))


def test_every_thread_is_a_device_and_shares_its_worker_s_data() -> None:
    made = bind(WORKERS, None, bandwidth=5e7)
    assert [(device.name, device.kind) for device in made.cluster.devices] == [
        ("a", "cpu"),
        ("b/0", "gpu"),
        ("b/1", "gpu"),
    ]
    assert [made.address(device) for device in range(3)] == ["tcp://1", "tcp://2", "tcp://2"]
    assert made.cluster.bandwidth[0, 1] == 5e7
    assert made.cluster.bandwidth[1, 2] > 1e12
    assert made.cluster.latency_s[1, 2] == 0


def test_a_given_cluster_is_narrowed_to_the_workers_that_are_there() -> None:
    cluster = Cluster.uniform([Device("x"), Device("b/1"), Device("a", speed=3.0)], latency_s=0.5)
    found = bind(WORKERS, cluster)
    assert [device.name for device in found.cluster.devices] == ["b/1", "a"]
    assert found.cluster.latency_s.tolist() == [[0.0, 0.5], [0.5, 0.0]]
    assert [found.address(device) for device in range(2)] == ["tcp://2", "tcp://1"]
    with pytest.raises(InvalidInput, match="device 'x'"):
        check_names(WORKERS, cluster)
    with pytest.raises(InvalidInput, match="the workers are a, b"):
        bind(WORKERS, Cluster.uniform([Device("x")]))
    with pytest.raises(Infeasible, match="no workers"):
        bind((), None)


def test_durations_by_kind_fall_back_to_the_mean() -> None:
    known = TaskEstimates.of({"sum": {"cpu": 4.0, "gpu": 1.0}, "add": 2}, {"sum": 8}, 0.5)
    assert known.row("sum", ("gpu", "cpu", "fpga")) == (1.0, 4.0, 2.5)
    assert known.row("add", ("gpu", "cpu")) == (2.0, 2.0)
    assert known.row("mul", ("cpu",)) is None
    assert known.size_bytes == {"sum": 8.0}


def test_a_graph_informs_by_task_and_by_category() -> None:
    graph = TaskGraph.from_edges(
        [1.0, 3.0],
        [0],
        [1],
        100.0,
        task_names=("sum-1", "sum-2"),
        categories=("sum",),
        category=np.zeros(2, dtype=np.int32),
        kinds=("cpu", "gpu"),
        kind_duration_s=np.array([[1.0, 0.1], [3.0, 0.3]]),
    )
    known = TaskEstimates.of(graph, None, 0.5)
    assert known.row("sum-2", ("cpu", "gpu")) == (3.0, 0.3)
    assert known.row("sum", ("cpu", "gpu")) == (2.0, pytest.approx(0.2))
    assert known.size_bytes == {"sum-1": 100.0, "sum-2": 0.0, "sum": 50.0}


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "1", True, {}])
def test_absurd_durations_are_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match="durations"):
        TaskEstimates.of({"sum": bad}, None, 0.5)  # type: ignore[dict-item]


def _view(issued: tuple[tuple[int, ...], ...], ready: tuple[int, ...] = (0, 1, 2, 3)) -> View:
    table = np.array([[8.0, 2.0]] * 4 + [[4.0, 1.0]])
    graph = TaskGraph.from_edges(np.ones(5), [], [], 0.0, kinds=("cpu", "gpu"), kind_duration_s=table)
    problem = Problem.of(graph, Cluster.parse("cpu:1,gpu:1"))
    return View(problem, 0.0, ready, issued, (True, True), (0.0, 0.0))


def test_late_decisions_fill_what_has_room_and_wait_for_what_is_faster() -> None:
    # The faster device takes two; the third would end there at 6, before 8 on the slower one, so it waits; the fourth
    # would end at 8 on either, and goes to the first.
    assert LateDispatcher().choose(_view(((), ()))) == [(0, 1), (1, 1), (3, 0)]
    assert LateDispatcher(num_queued=0).choose(_view(((), ()))) == [(0, 1), (3, 0)]
    assert LateDispatcher().choose(_view(((), (4, 4)), ready=(0,))) == []


def test_a_dispatcher_without_room_waits() -> None:
    dispatcher = LateDispatcher(num_queued=0)
    assert dispatcher.choose(_view(((3,), (0,)), ready=(1, 2))) == []
    assert dispatcher.choose(_view(((3,), ()), ready=(1, 2))) == [(1, 1)]


def test_importing_stretto_loads_neither_dask_nor_ray() -> None:
    code = "import stretto, sys; assert not {'dask', 'distributed', 'ray'} & set(sys.modules); stretto.dask"
    code += "; assert not {'dask', 'distributed', 'ray'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
