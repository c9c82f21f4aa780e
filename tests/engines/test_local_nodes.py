"""The local engine on nodes: tasks side by side, on cores of their own, within the memory that they state."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Command, Work
from stretto.errors import InvalidInput

CORES_SEEN = (sys.executable, "-c", "import os, time; time.sleep(0.3); print(sorted(os.sched_getaffinity(0)))")
NUM_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def graph_of(needs: list[float], *, seconds: float = 0.3, memory_bytes: float = 0.0) -> TaskGraph:
    build = GraphBuilder("wide")
    for index, cores in enumerate(needs):
        build.task(f"t{index}", seconds, cores=cores, memory_bytes=memory_bytes)
    return build.graph()


def run(work: Work, cluster: str, engine: LocalEngine | None = None) -> RunResult:
    n = work.graph.num_tasks
    plan = Plan(np.zeros(n, dtype=np.int32), np.arange(n, dtype=np.int32), "work-conserving")
    options = RunOptions(keep="all", max_attempts=1, keep_going=True)
    return (engine or LocalEngine()).run(work, plan, Cluster.parse(cluster), options)


def most_at_once(result: RunResult) -> int:
    return max(int(((result.start_s <= t) & (t < result.end_s)).sum()) for t in result.start_s)


def test_four_wide_tasks_share_a_node() -> None:
    result = run(Work.timed(graph_of([4.0] * 4)), "node:1*16c")
    assert result.status == "done"
    assert most_at_once(result) == 4
    narrow = run(Work.timed(graph_of([4.0] * 4, seconds=0.1)), "node:1*8c")
    assert most_at_once(narrow) == 2


@pytest.mark.skipif(NUM_CORES < 2, reason="needs two cores")
def test_commands_are_pinned_to_cores_of_their_own() -> None:
    work = Work(graph_of([1.0, 1.0, 2.0]), (Command(CORES_SEEN),) * 3)
    result = run(work, "node:1*2c")
    seen = [json.loads(result.outputs[task]) for task in range(3)]
    assert [len(cores) for cores in seen] == [1, 1, 2]
    assert seen[0] != seen[1]
    assert sorted(seen[0] + seen[1]) == seen[2]
    assert most_at_once(result) == 2


def test_nodes_larger_than_the_machine_are_not_pinned_and_said_so() -> None:
    work = Work(graph_of([1.0]), (Command(CORES_SEEN),))
    result = run(work, f"node:1*{NUM_CORES + 7}c")
    assert len(json.loads(result.outputs[0])) == NUM_CORES
    assert any("tasks were not pinned" in note for note in result.notes)


def test_a_command_gets_the_memory_that_it_states() -> None:
    greedy = Command((sys.executable, "-c", "print(len(bytearray(400_000_000)))"))
    tight = Work(graph_of([1.0], memory_bytes=100e6), (greedy,))
    failed = run(tight, "node:1*1c1GB")
    assert failed.status == "failed"
    assert "MemoryError" in failed.failures[-1].reason
    roomy = Work(graph_of([1.0], memory_bytes=900e6), (greedy,))
    assert run(roomy, "node:1*1c1GB").status == "done"
    assert run(tight, "node:1*1c1GB", LocalEngine(limits_memory=False)).status == "done"


def test_memory_is_shared_by_the_tasks_of_a_node() -> None:
    result = run(Work.timed(graph_of([1.0] * 3, seconds=0.15, memory_bytes=3e9)), "node:1*8c8GB")
    assert result.status == "done"
    assert most_at_once(result) == 2


def test_processes_cannot_be_nodes() -> None:
    with pytest.raises(InvalidInput, match="nodes that pack need workers=thread"):
        run(Work.timed(graph_of([1.0])), "node:1*2c", LocalEngine(workers="process"))
