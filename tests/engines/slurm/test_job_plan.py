"""What a plan becomes: dependencies, order of submission, slots."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline, Plan
from stretto.core.problem import Problem
from stretto.engines.slurm.client.jobs import SlurmNode
from stretto.engines.slurm.engine.job_plan import JobPlan, Slot, minutes, slots_of
from stretto.engines.work import Work
from stretto.errors import Infeasible, InvalidInput

# 0 -> 1 -> 3, 0 -> 2 -> 3, and 4 alone
GRAPH = TaskGraph.from_edges([1.0] * 5, [0, 0, 1, 2], [1, 2, 3, 3])
PLAN = Plan(np.array([0, 0, 1, 1, 1], np.int32), np.array([0, 4, 2, 1, 3], np.int32))


def node(name: str, num_cpus: int = 4, num_gpus: int = 0, state: str = "IDLE") -> SlurmNode:
    return SlurmNode(name, num_cpus, num_gpus, 1e9, state, (), ("all",))


def job_plan(discipline: Discipline, slots: list[Slot]) -> JobPlan:
    problem = Problem.of(GRAPH, Cluster.parse("cpu:2x2.0"))
    return JobPlan.of(Work.timed(GRAPH), PLAN, problem, slots, discipline)


WHOLE = [Slot("n1", 4, 0, True), Slot("n2", 4, 0, True)]


def test_a_sequence_is_a_chain_per_device() -> None:
    found = job_plan("sequence", WHOLE)
    assert found.needs == ((), (0,), (0,), (1, 2), ())
    # On device 1 tasks stand as 4, 2, 3; that 3 is behind 2 follows from its needs.
    assert found.after == ((), (), (4,), (), ())
    assert found.priority is None
    assert found.seconds == (0.5,) * 5
    assert [slot.node for slot in found.slots] == ["n1", "n1", "n2", "n2", "n2"]


def test_work_conserving_has_priorities_in_place_of_chains() -> None:
    found = job_plan("work-conserving", WHOLE)
    assert found.after == ((),) * 5
    assert found.priority == (5, 2, 3, 1, 4)


@pytest.mark.parametrize("discipline", ["sequence", "work-conserving"])
def test_everything_is_submitted_behind_what_it_waits_for(discipline: Discipline) -> None:
    found = job_plan(discipline, WHOLE)
    place = {task: at for at, task in enumerate(found.order)}
    assert sorted(place) == list(range(5))
    for task in range(5):
        for other in (*found.needs[task], *found.after[task]):
            assert place[other] < place[task]
            assert task in found.dependents[other]


def test_devices_that_share_a_node_need_a_sequence() -> None:
    shared = [Slot("n1", 2, 0, False), Slot("n1", 2, 0, False)]
    assert job_plan("sequence", shared).after[2] == (4,)
    with pytest.raises(InvalidInput, match="sequence"):
        job_plan("work-conserving", shared)


def test_machines_that_are_called_as_nodes_are_meant() -> None:
    cluster = Cluster.uniform([Device("a", machine="n2"), Device("b", machine="n2"), Device("c", machine="n1")])
    found = slots_of(cluster, [node("n1"), node("n2")])
    assert found == [Slot("n2", 2, 0, False), Slot("n2", 2, 0, False), Slot("n1", 4, 0, True)]


def test_others_get_nodes_of_their_own_and_gpus_those_that_have_some() -> None:
    nodes = [node("n1"), node("n2", num_gpus=2), node("n3", state="DOWN"), node("n4")]
    found = slots_of(Cluster.parse("cpu:2,gpu:1"), nodes)
    assert [(slot.node, slot.num_gpus, slot.is_whole_node) for slot in found] == [
        ("n1", 0, True),
        ("n4", 0, True),
        ("n2", 2, True),
    ]


def test_where_nodes_are_few_devices_share_them() -> None:
    found = slots_of(Cluster.parse("cpu:4"), [node("n1", 4), node("n2", 4)])
    assert [(slot.node, slot.num_cpus, slot.is_whole_node) for slot in found] == [
        ("n1", 2, False),
        ("n2", 2, False),
        ("n1", 2, False),
        ("n2", 2, False),
    ]
    assert found[0].options() == {"nodelist": "n1", "nodes": 1, "ntasks": 1, "cpus-per-task": 2}


@pytest.mark.parametrize(
    ("cluster", "nodes"),
    [("gpu:1", [node("n1")]), ("cpu:5", [node("n1", 4)]), ("cpu:1", [node("n1", state="DOWN")]), ("cpu:1", [])],
)
def test_what_does_not_fit_is_infeasible(cluster: str, nodes: list[SlurmNode]) -> None:
    with pytest.raises(Infeasible):
        slots_of(Cluster.parse(cluster), nodes)


@pytest.mark.parametrize(("seconds", "expected"), [(0.1, 1), (60.0, 1), (60.1, 2), (3600.0, 60)])
def test_minutes_are_rounded_up(seconds: float, expected: int) -> None:
    assert minutes(seconds) == expected


def packed_graph() -> TaskGraph:
    build = GraphBuilder("needs")
    build.task("small", 1.0, cores=1)
    build.task("wide", 1.0, cores=3.5, memory_bytes=3e9, gpus=1)
    return build.graph()


def test_tasks_of_a_node_ask_for_what_they_need() -> None:
    graph = packed_graph()
    big = SlurmNode("n1", 8, 2, 16e9, "IDLE", (), ("all",))
    cluster = Cluster.parse("node:1*8c16GB2g")
    slots = slots_of(cluster, [big])
    plan = Plan(np.zeros(2, np.int32), np.arange(2, dtype=np.int32))
    found = JobPlan.of(Work.timed(graph), plan, Problem.of(graph, cluster), slots, "sequence")
    assert found.after == ((), ())
    assert found.priority == (2, 1)
    asked = [slot.options() for slot in found.slots]
    assert [options["cpus-per-task"] for options in asked] == [1, 4]
    assert "mem" not in asked[0]
    assert asked[1]["mem"] == "2862M"
    assert asked[1]["gres"] == "gpu:1"
    assert all("exclusive" not in options for options in asked)


def test_a_node_must_be_as_large_as_it_says() -> None:
    small = SlurmNode("n1", 4, 0, 8e9, "IDLE", (), ("all",))
    with pytest.raises(Infeasible, match="has 8 cores, but 'n1' of Slurm only 4"):
        slots_of(Cluster.parse("node:1*8c"), [small])
    with pytest.raises(Infeasible, match="bytes of memory"):
        slots_of(Cluster.parse("node:1*4c64GB"), [small])
    with pytest.raises(Infeasible, match="describe it as one"):
        slots_of(Cluster.parse("node:2*2c"), [small])
