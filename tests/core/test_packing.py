"""What tasks need and nodes have in whole units, which columns matter, and weights that devices hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.devices.weights import Weights
from stretto.core.graph import TaskGraph
from stretto.core.nodes.packing import Packing
from stretto.core.nodes.words import size_of


def graph(*tasks: dict[str, Any]) -> TaskGraph:
    build = GraphBuilder("g")
    for number, needs in enumerate(tasks):
        build.task(f"t{number}", 1.0, **needs)
    return build.graph()


def node(name: str = "n", cores: float = 4.0, memory: float = np.inf, **more: Any) -> Device:
    return Device(name, "cpu", 1.0, memory, cores, packs=True, **more)


def packed(work: TaskGraph, *devices: Device) -> Packing:
    found = Packing.of(work, Cluster.uniform(devices))
    assert found is not None
    return found


def test_devices_that_run_one_task_at_a_time_need_no_packing() -> None:
    assert Packing.of(graph({}), Cluster.parse("cpu:2")) is None


def test_cores_are_millionths_and_one_where_none_is_stated() -> None:
    found = packed(graph({"cores": 0.3}, {}, {"cores": 2.0}), node(cores=0.9))
    assert found.names == ("cores",)
    assert found.need.ravel().tolist() == [300_000, 1_000_000, 2_000_000]
    assert found.capacity.tolist() == [[900_000]]
    assert (found.unit, found.packs) == ((1e6,), (True,))
    assert (found.assumed_cores, found.assumed_memory) == (1, 0)
    assert found.amount(0, 300_000) == 0.3


def test_memory_is_whole_bytes_that_round_against_the_plan() -> None:
    found = packed(graph({"memory_bytes": 1.5}, {"memory_bytes": 0.0}, {"memory_bytes": 3}), node(memory=7.9))
    assert found.names == ("cores", "memory")
    assert found.need[:, 1].tolist() == [2, 0, 3]
    assert found.capacity[0].tolist() == [4_000_000, 7]
    assert (found.assumed_cores, found.assumed_memory) == (3, 1)
    assert found.unit == (1e6, 1.0)
    assert packed(graph({"memory_bytes": 1.5}), node()).names == ("cores",)  # without limit it does not matter
    assert packed(graph({}), node(memory=8)).assumed_memory == 1
    assert packed(graph({}), node(), Device("d", "cpu", 1.0, 8.0)).assumed_memory == 0


def test_named_resources_are_as_they_are_or_millionths() -> None:
    tasks = graph({"needs": {"license": 1.0, "io": 0.5}}, {"needs": {"license": 2.0}}, {"gpus": 0.25})
    found = packed(tasks, node(gpus=2.0, resources=(("license", 3.0), ("io", 1.0))))
    units = dict(zip(found.names, found.unit, strict=True))
    assert units == {"cores": 1e6, "license": 1.0, "io": 1e6, "gpus": 1e6}
    need = {name: found.need[:, column].tolist() for column, name in enumerate(found.names)}
    assert need["license"] == [1, 2, 0]
    assert need["io"] == [500_000, 0, 0]
    assert need["gpus"] == [0, 0, 250_000]
    have = dict(zip(found.names, found.capacity[0].tolist(), strict=True))
    assert have == {"cores": 4e6, "license": 3, "io": 1e6, "gpus": 2e6}
    assert found.needs_of(0) == {"cores": 1.0, "license": 1.0, "io": 0.5}
    assert found.needs_of(2) == {"cores": 1.0, "gpus": 0.25}


def test_a_device_beside_nodes_has_one_slot_and_no_other_limit() -> None:
    found = packed(graph({"cores": 2.0}, {"cores": 3.0}), node(), Device("d", "cpu", 1.0, 8.0, 1.0))
    assert found.names == ("slot", "cores")
    assert found.capacity.tolist() == [[np.inf, 4e6], [1, np.inf]]
    assert found.need[:, 0].tolist() == [1, 1]
    assert found.packs == (True, False)
    assert found.needs_of(1) == {"cores": 3.0}  # nothing of a slot
    assert [found.most_at_once(device) for device in (0, 1)] == [2, 1]


def test_the_most_tasks_at_once_are_as_many_of_the_smallest_as_fit() -> None:
    many = [{"cores": 1.0, "memory_bytes": 3.0}] * 5
    assert packed(graph(*many), node()).most_at_once(0) == 4
    assert packed(graph(*many), node(memory=6.0)).most_at_once(0) == 2
    assert packed(graph(*many), node(memory=2.0)).most_at_once(0) == 1  # none fits
    assert packed(graph(*many[:2]), node(cores=40.0)).most_at_once(0) == 2
    free = packed(graph({"cores": 1.0}, {"cores": 1.0, "memory_bytes": 3.0}), node(memory=3.0))
    assert free.most_at_once(0) == 2


def test_beside_memory_are_all_other_resources() -> None:
    tasks = graph({"cores": 2.0, "memory_bytes": 3.0, "gpus": 1.0})
    found = packed(tasks, node(memory=6.0, gpus=1.0), Device("d", "cpu", gpus=1.0))
    assert found.names == ("slot", "cores", "memory", "gpus")
    need, have = found.beside_memory
    assert need.tolist() == [[2e6, 1e6]]
    assert have.tolist() == [[4e6, 1e6], [np.inf, np.inf]]
    assert need.flags.c_contiguous
    assert have.flags.c_contiguous


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ((Device("d", "cpu"),), "1 device"),
        ((node(cores=16), node("m", cores=0.5)), "2 nodes with 16.5 cores"),
        ((node(memory=2e9), node("m", memory=1e9)), "2 nodes with 8 cores, 3 GB"),
        ((node(memory=2e9), node("m")), "2 nodes with 8 cores"),
        ((node(gpus=2.0), Device("d", "cpu"), Device("e", "cpu")), "2 devices and 1 node with 4 cores, 2 GPUs"),
    ],
)
def test_the_size_of_a_cluster_in_words(devices: tuple[Device, ...], words: str) -> None:
    assert size_of(Cluster.uniform(devices)) == words


def test_a_single_weight_is_held_by_each_device_that_reads_it() -> None:
    weights = Weights(np.array([5.5]), np.array([0, 1, 2], np.int32), np.zeros(3, np.int32))
    assert weights.on_devices(np.array([1, 1, 2], np.int32), 4).tolist() == [0.0, 6.0, 6.0, 0.0]
    nothing = Weights(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert nothing.on_devices(np.array([1, 0], np.int32), 2).tolist() == [0.0, 0.0]
