"""Late decisions and release times on the local engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.engines.driver.dispatch import GreedyDispatcher
from stretto.engines.engine import RunOptions
from stretto.engines.local.engine import LocalEngine
from stretto.engines.outputs import digest
from stretto.engines.work import Call, Work
from stretto.graphs.evaluate import planner_named
from stretto.testing.engine_checks import expected_outputs, random_graph

both = pytest.mark.parametrize("workers", ["thread", "process"])


def engine(workers: Any) -> LocalEngine:
    return LocalEngine(workers=workers)


@both
@pytest.mark.parametrize("is_timed", [True, False])
def test_a_dispatcher_places_every_task_while_the_run_goes_on(workers: str, is_timed: bool) -> None:
    graph = random_graph(np.random.default_rng(0), 60)
    problem = Problem.of(graph, Cluster.parse("cpu:2,gpu:1x3.0"))
    actions = tuple(Call(lambda *inputs, n=task: n + sum(inputs)) for task in range(60))
    work = Work.timed(graph, 0.0005) if is_timed else Work(graph, actions)
    found = engine(workers).play(problem, GreedyDispatcher(), work, RunOptions(keep="all")).check()
    assert set(found.device.tolist()) == {0, 1, 2}
    source, target, _ = graph.edges
    assert (found.end_s[source] <= found.start_s[target]).all()
    if is_timed:
        assert found.digests == tuple(digest(value) for _, value in sorted(expected_outputs(work).items()))
    else:
        sums: dict[int, int] = {}
        for task in graph.topo.tolist():
            sums[task] = task + sum(sums[parent] for parent in work.inputs(task))
        assert found.outputs == sums


@both
def test_nothing_starts_before_its_release(workers: str) -> None:
    one = TaskGraph.from_edges([1.0, 1.0], [0], [1])
    load = Workload.of([one, one, one], arrivals_s=[0.0, 40.0, 80.0])
    problem = Problem.of(load, Cluster.parse("cpu:2"))
    scale = 0.002
    plan = planner_named("mct", {}).plan(problem, Budget())
    work = Work.timed(problem.graph, scale)
    found = engine(workers).play(problem, plan, work, RunOptions()).check()
    assert (found.start_s >= problem.arrays.release * scale).all()


@both
def test_what_was_done_before_is_not_placed_again(workers: str) -> None:
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], 8.0)
    problem = Problem.of(graph, Cluster.parse("cpu:2"))
    work = Work(graph, (Call(int, ("no",)), Call(lambda x: x + 1)))
    found = engine(workers).play(problem, GreedyDispatcher(), work, RunOptions(done={0: 41})).check()
    assert found.outputs == {1: 42}


@both
def test_timed_transfers_take_their_time_and_overlap(workers: str) -> None:
    # 0 sends 200 bytes to each of 1 and 2 at 100 bytes per second: both wait two seconds, at the same time.
    graph = TaskGraph.from_edges([1.0, 1.0, 1.0, 1.0], [0, 0], [1, 2], 200.0)
    scale = 0.02
    plan = Plan(np.array([0, 1, 2, 1], dtype=np.int32), np.array([0, 3, 1, 2], dtype=np.int32), "work-conserving")
    found = engine(workers).run(Work.timed(graph, scale), plan, Cluster.parse("cpu:3@100B/s"), RunOptions()).check()
    for reader in (1, 2):
        assert found.start_s[reader] - found.end_s[0] >= 2.0 * scale
    assert found.start_s[3] < found.start_s[1], "a device is not kept busy by what is on its way to it"
