"""The machines that a recorded workflow names, as nodes that pack."""

from __future__ import annotations

import pytest

import stretto
from real_data import find_data
from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.nodes.recorded import recorded_cluster
from stretto.errors import InvalidInput
from stretto.graphs.evaluate import evaluate


def recorded(*machines: object) -> TaskGraph:
    build = GraphBuilder("run")
    build.task("a", 2.0, cores=2)
    build.task("b", 2.0)
    build.meta["machines"] = list(machines)
    return build.graph()


BIG = {"nodeName": "m", "cpu": {"coreCount": 4}, "memoryInBytes": 8_000_000_000}


def test_each_machine_is_a_node_with_its_cores_and_memory() -> None:
    problem = stretto.problem(recorded(BIG, BIG), "recorded")
    assert [(d.name, d.cores, d.memory_bytes, d.packs) for d in problem.cluster.devices] == [
        ("m-0", 4.0, 8e9, True),
        ("m-1", 4.0, 8e9, True),
    ]
    notes = evaluate(problem, "heft").notes
    assert any(note.startswith("The nodes are the machines that the file names. Assumed:") for note in notes)
    assert "1 of 2 tasks state no cores: 1 core each is assumed." in notes


def test_machines_keep_the_names_that_tell_them_apart() -> None:
    other = {"nodeName": "n", "cpu": {"count": 2.5}, "memoryInBytes": 0}
    cluster = recorded_cluster(recorded(BIG, other))
    told = [(d.name, d.machine, d.kind, d.speed, d.cores, d.memory_bytes, d.gpus) for d in cluster.devices]
    assert told == [("m", "m", "cpu", 1.0, 4.0, 8e9, 0.0), ("n", "n", "cpu", 1.0, 2.5, float("inf"), 0.0)]
    assert (cluster.name, float(cluster.bandwidth[0, 1])) == ("recorded", 1e9)
    nameless = recorded_cluster(recorded({"cpu": {"coreCount": 1}}, {"cpu": {"coreCount": 1}}))
    assert [device.name for device in nameless.devices] == ["machine-0", "machine-1"]


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (recorded(), "names no machines"),
        (recorded({"nodeName": "x"}), "machine 'x': states no cores"),
        (recorded("x"), "machine 'machine': states no cores"),
        (recorded({"cpu": {"coreCount": 0}}), "states no cores"),
        (recorded({"cpu": {"coreCount": "4"}}), "states no cores"),
    ],
)
def test_what_is_not_recorded_is_not_guessed(graph: TaskGraph, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        stretto.problem(graph, "recorded")


DATA = find_data()


@pytest.mark.skipif(DATA is None, reason="the recorded workflows are not here (STRETTO_DATA)")
def test_plans_beat_recorded_runs() -> None:
    assert DATA is not None
    files = sorted((DATA / "wfformat").glob("*.json*"))[::10]
    assert files
    shorter = 0
    for path in files:
        problem = stretto.problem(str(path), "recorded")
        shorter += evaluate(problem, "heft").makespan_s < float(problem.graph.meta["makespan_s"])
    assert shorter >= 0.9 * len(files)
