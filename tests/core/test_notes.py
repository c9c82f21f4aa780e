"""What a plan takes for granted: each sentence where it belongs, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.devices.weights import Weights
from stretto.core.graph import Resources, TaskGraph
from stretto.core.graph_facts import graph_facts, typical_work_s
from stretto.core.notes import assumptions, graph_notes, has_memory_limit, problem_notes, verdict
from stretto.core.problem import Problem
from stretto.core.provenance import are_objects_in_memory, duration_basis, merged_meta, open_dims

PLAIN = TaskGraph.from_edges([1.0, 2.0, 4.0], [0, 0], [1, 2], [8e6, 8e6])
ONE_KIND = Cluster.parse("cpu:2")
DIMS = "Open dimensions of the model were taken as"
LIMITED = Cluster.uniform([Device("a", "cpu", memory_bytes=1e9), Device("b", "cpu")], bandwidth=1e9)


def told(**meta: Any) -> TaskGraph:
    return replace(PLAIN, meta=meta)


@pytest.mark.parametrize(
    ("meta", "notes"),
    [
        ({}, []),
        ({"durations": "measured"}, []),
        ({"durations": "assumed (by the generator)"}, []),
        ({"durations": "assumed (roofline)"}, ["Durations are assumed (roofline), not measured."]),
        ({"open_dims": {"n": 4}}, ["Open dimensions of the model were taken as n=4 (set with --dim n=N)."]),
        ({"open_dims": {"?": 1}}, ["Open dimensions of the model were taken as ?=1."]),
        (
            {"open_dims": {"?": 1, **{f"d{i}": i for i in range(7)}}},
            [f"{DIMS} ?=1, d0=0, d1=1, d2=2, d3=3, d4=4 and 2 more (set with --dim d0=N)."],
        ),
        (
            {"open_dims": {f"d{i}": i for i in range(6)}},
            ["Open dimensions of the model were taken as d0=0, d1=1, d2=2, d3=3, d4=4, d5=5 (set with --dim d0=N)."],
        ),
        ({"memory_ignored": "too odd"}, ["The memory of tasks was ignored: too odd; 0 bytes are assumed."]),
        ({"num_unknown_dims": 3}, ["3 dimensions inside the model could not be inferred and were taken as 1."]),
        ({"num_unknown_loops": 2}, ["2 loops do not state how often they run and were counted as one round."]),
        (
            {"num_unknown_dims": 3, "open_dims": {"n": 4}},
            ["Open dimensions of the model were taken as n=4 (set with --dim n=N)."],
        ),
    ],
)  # fmt: skip
def test_notes_on_a_graph(meta: dict[str, Any], notes: list[str]) -> None:
    assert list(graph_notes(told(**meta))) == notes


def test_needs_that_devices_do_not_look_at_are_said() -> None:
    cores = replace(PLAIN, cores=np.ones(3))
    note = "Packing is not modeled: a device runs one task at a time."
    assert problem_notes(Problem.of(PLAIN, ONE_KIND)) == ()
    assert problem_notes(Problem.of(cores, ONE_KIND)) == (note,)
    memory = replace(PLAIN, memory_bytes=np.ones(3))
    assert problem_notes(Problem.of(memory, ONE_KIND)) == (note,)
    in_memory = replace(memory, meta={"objects": "memory"})
    assert note not in problem_notes(Problem.of(in_memory, ONE_KIND))
    project = replace(cores, resources=Resources(("crew",), np.array([1], np.int32), np.ones((3, 1), np.int32)))
    assert problem_notes(Problem.of(project, Cluster.parse("shop:1"))) == ()


def test_what_nodes_assume_of_tasks_is_counted() -> None:
    build = GraphBuilder("g")
    build.task("a", 1.0, cores=1.0)
    build.task("b", 1.0, memory_bytes=5.0)
    node = Device("n", "cpu", 1.0, 1e9, 4.0, packs=True)
    alone = Problem.of(build.graph(), Cluster.uniform([node]))
    cores = "1 of 2 tasks state no cores: 1 core each is assumed."
    memory = "1 of 2 tasks state no memory: 0 bytes each are assumed."
    assert problem_notes(alone) == (cores, memory)
    beside = Problem.of(build.graph(), Cluster.uniform([node, Device("d", "cpu")], bandwidth=1e9))
    assert problem_notes(beside)[2] == "Devices beside the nodes run one task at a time, whatever it needs."
    assert assumptions(alone) == ["tasks need what was assumed"]
    files = Problem.of(replace(PLAIN, cores=np.ones(3), memory_bytes=np.ones(3)), Cluster.uniform([node]))
    assert problem_notes(files) == (
        "Data between tasks is assumed to be files: it does not count against the memory of nodes.",
    )
    kept = replace(files.graph, meta={"objects": "memory"})
    assert problem_notes(Problem.of(kept, Cluster.uniform([node]))) == ()
    assert not assumptions(files)


def test_recorded_machines_are_named_as_such() -> None:
    cluster = replace(Cluster.uniform([Device("n", "cpu", 1.0, np.inf, 4.0, packs=True)]), name="recorded")
    first = problem_notes(Problem.of(replace(PLAIN, cores=np.ones(3)), cluster))[0]
    assert first.startswith("The nodes are the machines that the file names.")
    assert first.endswith("all pairs are joined by 1 GB/s.")


def test_memory_that_was_not_checked_is_said() -> None:
    assert has_memory_limit(Problem.of(PLAIN, LIMITED))
    assert not has_memory_limit(Problem.of(PLAIN, ONE_KIND))
    start = "Memory limits were not checked for "
    assert problem_notes(Problem.of(PLAIN, LIMITED)) == (f"{start}tasks: the graph does not state their needs.",)
    arguments = told(argument_bytes=2e6)
    assert problem_notes(Problem.of(arguments, LIMITED)) == (f"{start}arguments (2 MB).",)
    seconds = TaskGraph.from_edges([1.0, 1.0], [0], [1], [2.0], transfer_unit="seconds")
    assert problem_notes(Problem.of(seconds, LIMITED)) == (f"{start}data, whose size the graph does not state.",)
    resident = replace(PLAIN, resident_bytes=np.full(3, 1e6))
    assert problem_notes(Problem.of(resident, LIMITED)) == ()
    weights = replace(PLAIN, weights=Weights(np.array([5e6]), np.array([1], np.int32), np.array([0], np.int32)))
    assert problem_notes(Problem.of(weights, LIMITED)) == ()


def test_memory_that_is_nowhere_limited_is_taken_to_be_everywhere() -> None:
    held = replace(PLAIN, resident_bytes=np.full(3, 1e6), meta={"argument_bytes": 2e6})
    assert problem_notes(Problem.of(held, ONE_KIND)) == (
        "Memory is not planned for: weights (3 MB) and arguments (2 MB) are taken to be everywhere.",
    )
    odd = told(argument_bytes="many")
    assert problem_notes(Problem.of(odd, ONE_KIND)) == ()
    weights = replace(PLAIN, weights=Weights(np.array([5e6]), np.array([1], np.int32), np.array([0], np.int32)))
    assert problem_notes(Problem.of(weights, ONE_KIND)) == (
        "No device states its memory: weights and data fit wherever they are put.",
    )


def test_links_that_nobody_builds_are_asked_about() -> None:
    slow = Cluster(ONE_KIND.devices, np.zeros((2, 2)), np.array([[1e9, 999.0], [5.0, 1e9]]))
    assert problem_notes(Problem.of(PLAIN, slow)) == (
        "The fastest link carries 999 B/s: is a unit missing in the cluster?",
    )
    for enough in ([[1e9, 1000.0], [5.0, 1e9]], [[1e9, 5.0], [1000.0, 1e9]]):
        assert problem_notes(Problem.of(PLAIN, Cluster(ONE_KIND.devices, np.zeros((2, 2)), np.array(enough)))) == ()
    three = np.full((3, 3), 5.0)
    for a, b in ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)):
        rates = three.copy()
        rates[a, b] = 77.0
        (note,) = problem_notes(Problem.of(PLAIN, Cluster(Cluster.parse("cpu:3").devices, np.zeros((3, 3)), rates)))
        assert "77 B/s" in note
    alone = Cluster(Cluster.parse("cpu:1").devices, np.zeros((1, 1)), np.full((1, 1), 5.0))
    assert problem_notes(Problem.of(PLAIN, alone)) == ()
    nothing = TaskGraph.from_edges([1.0, 1.0], [0], [1], 0.0)
    assert problem_notes(Problem.of(nothing, slow)) == ()
    seconds = TaskGraph.from_edges([1.0, 1.0], [0], [1], [2.0], transfer_unit="seconds")
    assert problem_notes(Problem.of(seconds, slow)) == ()


def test_verdicts_name_their_conditions() -> None:
    plain, guessed = Problem.of(PLAIN, ONE_KIND), Problem.of(told(durations="assumed (so)"), ONE_KIND)
    assert verdict(plain, np.inf) == "not judged: the lower bound is zero"
    assert verdict(plain, 0.0) == "proven optimal"
    assert verdict(plain, 0.2) == "at most 20.0 % above optimal"
    assert verdict(guessed, 0.2) == "at most 20.0 % above its lower bound"
    assert verdict(guessed, 0.0) == "at its lower bound when tasks take the assumed time"
    cores = replace(PLAIN, cores=np.ones(3))
    one = "a device runs one task at a time"
    assert verdict(Problem.of(cores, ONE_KIND), 0.0) == f"optimal when {one}"
    fits = "memory suffices (not checked)"
    assert verdict(Problem.of(cores, LIMITED), 0.0) == f"optimal when {one} and {fits}"
    both = Problem.of(replace(cores, meta={"durations": "assumed (so)"}), LIMITED)
    assert verdict(both, 0.0) == f"at its lower bound when tasks take the assumed time and {one} and {fits}"


def test_where_durations_come_from_is_kept_when_graphs_become_one() -> None:
    assert duration_basis(told(durations="estimated (by a user)")) == "estimated (by a user)"
    assert duration_basis(told(durations="guessed")) == duration_basis(told(durations=3)) == "as given"
    assert merged_meta([told(durations="measured"), told(durations="measured")]) == {"durations": "measured"}
    both = merged_meta([told(durations="measured"), told(durations="assumed (so)")])
    assert both == {"durations": "assumed (so); measured"}
    assert merged_meta([told(durations="measured"), told(durations="recorded")]) == {}
    alike = merged_meta([told(durations="estimated (b)"), told(durations="estimated (a)")])
    assert alike == {"durations": "estimated (a); estimated (b)"}
    dims = merged_meta([told(open_dims={"n": 1}, objects="memory"), told(open_dims={"m": 2})])
    assert dims == {"durations": "as given", "objects": "memory", "open_dims": {"n": 1, "m": 2}}
    assert open_dims(told(open_dims="n")) == {}
    assert not are_objects_in_memory(PLAIN)
    assert are_objects_in_memory(replace(PLAIN, resident_bytes=np.zeros(3)))


def test_a_graph_at_a_glance() -> None:
    graph = TaskGraph.from_edges([1.0, 2.0, 4.0, 8.0], [0, 0, 1], [1, 2, 3], [8.0, 6.0, 4.0])
    found = graph_facts(graph, bandwidth=2.0)
    assert (found.num_tasks, found.num_edges, found.depth, found.width) == (4, 3, 3, 2)
    assert (found.work_s, found.critical_path_s, found.data, found.bandwidth) == (15.0, 11.0, 18.0, 2.0)
    assert found.ccr == pytest.approx((18 / 3) / 2.0 / (15 / 4))
    assert (found.kinds, found.categories, found.resources, found.notes) == ((), {}, (), ())
    assert found.answer.endswith("so equal devices make it at most 1.36 times as fast as one.")
    assert found.to_json()["answer"] == found.answer
    assert found.to_json()["width"] == 2
    seconds = TaskGraph.from_edges([1.0, 3.0], [0], [1], [8.0], transfer_unit="seconds")
    assert graph_facts(seconds, bandwidth=2.0).ccr == 4.0
    assert graph_facts(TaskGraph.from_edges([0.0, 0.0], [0], [1], [8.0])).ccr == 0.0
    lonely = graph_facts(TaskGraph.from_edges([5.0], [], []))
    assert (lonely.ccr, lonely.depth, lonely.width, lonely.critical_path_s) == (0.0, 1, 1, 5.0)


def test_work_that_is_not_stated_is_that_of_the_fastest_kind() -> None:
    build = GraphBuilder("g")
    build.task("a", np.inf, durations={"cpu": 4.0, "gpu": 1.5}, category="x")
    build.task("b", np.inf, durations={"cpu": 2.0, "gpu": 3.0}, category="y")
    build.task("c", np.inf, durations={"cpu": 2.0, "gpu": 3.0}, category="y")
    found = graph_facts(build.graph())
    assert typical_work_s(build.graph()).tolist() == [1.5, 2.0, 2.0]
    assert (found.kinds, found.categories) == (("cpu", "gpu"), {"y": 2, "x": 1})
    assert list(found.categories) == ["y", "x"]
