"""The Dask engine keeps the contract: placement, order, exactly once, and what happens when things break."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.dask.engine import DaskEngine, node_options
from stretto.engines.driver.events import TaskFinished, TaskStarted
from stretto.engines.engine import RunOptions
from stretto.engines.outputs import digest
from stretto.engines.work import Call, Command, Timed, Work
from stretto.errors import InvalidInput
from stretto.graphs.workloads.factorizations import cholesky

TWO = Cluster.parse("cpu:2")


def chain(num_tasks: int) -> TaskGraph:
    return TaskGraph.from_edges([1.0] * num_tasks, range(num_tasks - 1), range(1, num_tasks), 1.0)


def alternate(num_tasks: int) -> stretto.Plan:
    order = np.arange(num_tasks, dtype=np.int32)
    return stretto.Plan((order % 2).astype(np.int32), order)


def test_calls_get_the_outputs_of_their_parents() -> None:
    actions = (Call(int, (3,)), *(Call(lambda value, more: value * 2 + more, (at,)) for at in range(4)))
    outputs: dict[int, Any] = {}
    events: list[Any] = []
    options = RunOptions(keep="all", on_output=outputs.__setitem__, on_event=events.append)
    result = DaskEngine(processes=False).run(Work(chain(5), actions), alternate(5), TWO, options).check()
    assert outputs == result.outputs == {0: 3, 1: 6, 2: 13, 3: 28, 4: 59}
    assert not result.is_timed
    assert [event.task for event in events if isinstance(event, TaskStarted)] == [0, 1, 2, 3, 4]
    assert [event.task for event in events if isinstance(event, TaskFinished)] == [0, 1, 2, 3, 4]


def test_a_failing_task_is_blamed_and_tried_elsewhere(tmp_path: Path) -> None:
    seen = tmp_path / "tries"

    def fail_twice() -> str:
        with seen.open("a") as log:
            log.write("x")
        if len(seen.read_text()) < 3:
            raise ValueError("not yet")
        return "done"

    work = Work(TaskGraph.from_edges([1.0], [], [], 0.0), (Call(fail_twice),))
    result = DaskEngine(processes=False).run(work, alternate(1), TWO, RunOptions()).check()
    assert result.outputs == {0: "done"}
    assert result.attempts.tolist() == [3]
    assert [(failure.blame, failure.device) for failure in result.failures] == [("task", 0), ("task", 1)]
    assert "not yet" in result.failures[0].reason


def test_after_the_last_attempt_the_run_has_failed() -> None:
    work = Work(chain(3), (Call(int), Call(divmod, (0,)), Call(int)))
    result = DaskEngine(processes=False).run(work, alternate(3), TWO, RunOptions(max_attempts=2))
    assert result.status == "failed"
    assert len(result.failures) == 2
    assert "ZeroDivisionError" in result.failures[0].reason
    assert np.isnan(result.end_s).tolist() == [False, True, True]


def test_an_output_that_cannot_be_sent_is_its_task_s_fault() -> None:
    work = Work(chain(2), (Call(lambda: (at for at in range(3))), Call(list)))
    result = DaskEngine(processes=False).run(work, alternate(2), TWO, RunOptions(max_attempts=1, digests=False))
    assert result.status == "failed"
    assert [(failure.task, failure.blame) for failure in result.failures] == [(0, "task")]
    assert "generator" in result.failures[0].reason


def test_commands_run_on_workers(tmp_path: Path) -> None:
    actions = (
        Command(("/bin/sh", "-c", "echo one > a.txt"), cwd=str(tmp_path), writes=("a.txt",)),
        Command(("cat", "a.txt"), cwd=str(tmp_path), reads=("a.txt",)),
    )
    result = DaskEngine(processes=False).run(Work(chain(2), actions), alternate(2), TWO, RunOptions()).check()
    assert result.outputs == {1: b"one\n"}


def test_a_slow_command_is_stopped() -> None:
    work = Work(TaskGraph.from_edges([1.0], [], [], 0.0), (Command(("sleep", "600"), timeout_s=0.2),))
    result = DaskEngine(processes=False).run(work, alternate(1), TWO, RunOptions(max_attempts=1))
    assert [failure.blame for failure in result.failures] == ["timeout"]


def test_tasks_of_an_earlier_run_are_not_run_again() -> None:
    actions = (Call(lambda: 1 // 0), Call(lambda value: value + 1), Call(lambda value: value + 1))
    work = Work(chain(3), actions)
    result = DaskEngine(processes=False).run(work, alternate(3), TWO, RunOptions(done={0: 40})).check()
    assert result.outputs == {2: 42}
    assert result.attempts.tolist() == [0, 1, 1]


def test_a_dead_worker_s_tasks_and_data_are_made_again(tmp_path: Path) -> None:
    marks = tmp_path / "killed"

    def kill_once(value: int) -> int:
        if not marks.exists():
            marks.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return value + 1

    # 0 and 1 on the first worker, which dies in 1; 2 on the other one needs the output of 0, which died too.
    graph = TaskGraph.from_edges([1.0] * 4, [0, 0, 1, 2], [1, 2, 3, 3], 1.0)
    actions = (Call(lambda: 10), Call(kill_once), Call(lambda value: value + 2), Call(lambda a, b: a + b))
    plan = stretto.Plan(np.array([0, 0, 1, 0], dtype=np.int32), np.arange(4, dtype=np.int32))
    result = DaskEngine().run(Work(graph, actions), plan, TWO, RunOptions()).check()
    assert result.outputs == {3: 23}
    assert [failure.blame for failure in result.failures if failure.task == 1] == ["worker"]
    assert result.attempts[1] == 2


def test_a_task_that_hangs_is_given_up(tmp_path: Path) -> None:
    marks = tmp_path / "hung"

    def hang_once() -> str:
        if not marks.exists():
            marks.write_text("")
            time.sleep(600)
        return "awake"

    work = Work(TaskGraph.from_edges([1.0], [], [], 0.0), (Call(hang_once, timeout_s=5.0),))
    result = DaskEngine().run(work, alternate(1), TWO, RunOptions()).check()
    assert result.outputs == {0: "awake"}
    assert [failure.blame for failure in result.failures] == ["timeout"]


def test_a_cluster_that_runs_already(processes: tuple[Any, Any]) -> None:
    cluster, _ = processes
    named = Cluster.uniform([stretto.Device("a"), stretto.Device("b")])
    work = Work(chain(4), (Timed(0.001),) * 4)
    result = DaskEngine(address=cluster.scheduler_address).run(work, alternate(4), named, RunOptions()).check()
    assert result.device.tolist() == [0, 1, 0, 1]
    assert result.is_timed
    with pytest.raises(InvalidInput, match="no worker has this name"):
        DaskEngine(address=cluster.scheduler_address).run(work, alternate(4), TWO, RunOptions())


def test_late_decisions_run_everything_once() -> None:
    graph = cholesky(num_tiles=6)
    cluster = Cluster.parse("cpu:3")
    work = Work.timed(graph, 0.2 / float(graph.work_s.sum()))
    engine = DaskEngine(processes=False)
    result = engine.play(Problem.of(graph, cluster), stretto.dask.LateDispatcher(), work, RunOptions()).check()
    assert result.attempts.tolist() == [1] * graph.num_tasks
    assert set(result.device.tolist()) == {0, 1, 2}


@pytest.mark.long
def test_workers_that_keep_dying_change_nothing_but_the_time() -> None:
    from stretto.testing.engine_checks import expected_outputs, random_graph, random_plan

    rng = np.random.default_rng(7)
    cluster = Cluster.parse("cpu:2,gpu:1x2.0")
    graph = random_graph(rng, 150)
    work, plan = Work.timed(graph, 0.02), random_plan(rng, graph, cluster)
    ends: list[int] = []
    kills: list[int] = []
    others = _worker_pids()  # of the clusters of other tests

    def kill_now_and_then(event: Any) -> None:
        if isinstance(event, TaskFinished):
            ends.append(event.task)
            if len(ends) % 20 == 0 and len(kills) < 3:
                alive = [pid for pid in _worker_pids() if pid not in others]
                if len(alive) == 3:  # on a busy machine the last one killed may not be back yet
                    kills.append(alive[len(kills)])
                    os.kill(kills[-1], signal.SIGKILL)

    result = DaskEngine().run(work, plan, cluster, RunOptions(on_event=kill_now_and_then)).check()
    assert len(ends) >= graph.num_tasks
    assert set(ends) == set(range(graph.num_tasks))
    expected = {task: digest(output) for task, output in expected_outputs(work).items()}
    assert dict(enumerate(result.digests)) == expected
    assert {failure.blame for failure in result.failures} <= {"worker", "input", "device"}
    assert len(kills) >= 1
    assert any(failure.blame == "worker" for failure in result.failures)


def _worker_pids() -> list[int]:
    """Return the processes of this test's own workers: children that Dask's nannies have started."""
    import psutil

    return sorted(
        child.pid
        for child in psutil.Process().children(recursive=True)
        # Dask gives them a title of their own where setproctitle is installed.
        if any(word in " ".join(child.cmdline()) for word in ("spawn_main", "dask worker")) and child.num_threads() > 1
    )


def test_tasks_run_side_by_side_on_a_node_that_packs() -> None:
    """A worker with the threads and resources of its node; three tasks of two cores on five: two at a time."""
    build = GraphBuilder("packed")
    for index in range(3):
        build.task(f"t{index}", 0.4, cores=2)
    graph = build.graph()
    plan = stretto.Plan(np.zeros(3, np.int32), np.arange(3, dtype=np.int32), "work-conserving")
    engine = DaskEngine(processes=False)
    result = engine.run(Work.timed(graph), plan, Cluster.parse("node:1*5c8GB"), RunOptions()).check()
    at_once = [int(((result.start_s <= t) & (t < result.end_s)).sum()) for t in result.start_s + 1e-3]
    assert max(at_once) == 2


def test_a_worker_has_what_its_node_has() -> None:
    build = GraphBuilder("packed")
    build.task("a", 1.0, cores=2, memory_bytes=1e9)
    problem = Problem.of(build.graph(), Cluster.parse("cpu:1,node:1*4c8GB"))
    assert node_options(problem, 0) == {}
    assert node_options(problem, 1) == {"nthreads": 1, "resources": {"cores": 4.0, "memory": 8e9}}
