"""Plans on a real Slurm: order, placement, output, failures, and going on with a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline, Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.engines.driver.events import Event, TaskFailed, TaskFinished, TaskStarted
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.engine.engine import SlurmEngine
from stretto.engines.slurm.engine.run_folder import RunFolder, run_folder_for
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.engines.work import Command, Timed, Work
from stretto.errors import EngineFailure, InvalidInput
from stretto.graphs.planners.heft import Heft
from stretto.graphs.workloads.random_dag import random_dag
from stretto.testing.engine_checks import EngineTrial, check_engine

NODES = Cluster.uniform([Device(f"n{number}") for number in range(1, 5)])
CHAIN = TaskGraph.from_edges([1.0] * 3, [0, 1], [1, 2])
ON_ONE = Plan(np.array([0, 0, 0], np.int32), np.array([0, 1, 2], np.int32))


def engine(bed: Testbed, folder: Path) -> SlurmEngine:
    return SlurmEngine(conf=str(bed.conf), folder=str(folder), queue_s=1.0)


def order_on(result: RunResult, plan: Plan, device: int) -> tuple[list[int], list[int]]:
    planned = [task for task in plan.order.tolist() if plan.assignment[task] == device]
    return planned, sorted(planned, key=lambda task: result.start_s[task])


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("discipline", ["sequence", "work-conserving"])
def test_a_plan_runs_where_and_in_the_order_it_says(bed: Testbed, tmp_path: Path, discipline: Discipline) -> None:
    graph = random_dag(num_tasks=16, seed=3)
    plan = Heft().plan(Problem.of(graph, NODES), Budget(0, None, 1, None))
    work = Work.timed(graph, 0.05 / float(np.mean(graph.work_s)))
    events: list[Event] = []
    options = RunOptions(discipline=discipline, keep="all", on_event=events.append)
    result = engine(bed, tmp_path / "run").run(work, plan, NODES, options).check()
    assert result.discipline == discipline
    source, target, _ = graph.edges
    assert np.all(result.end_s[source] <= result.start_s[target])
    for device in range(4):
        planned, found = order_on(result, plan, device)
        one_at_a_time = sorted(planned, key=lambda task: result.end_s[task])
        assert one_at_a_time == found
        if discipline == "sequence":
            assert found == planned
        logs = [(tmp_path / "run" / f"{task}.log").read_text().split()[4] for task in planned]
        assert logs == [f"n{device + 1}"] * len(planned)
    twin = SimulatedEngine().run(work, plan, NODES, RunOptions(discipline=discipline, keep="all"))
    assert result.digests == twin.digests
    assert result.outputs == twin.outputs
    assert sum(isinstance(event, TaskStarted) for event in events) == 16
    assert sum(isinstance(event, TaskFinished) for event in events) == 16


@pytest.mark.usefixtures("client")
def test_priorities_decide_among_what_is_ready(bed: Testbed, tmp_path: Path) -> None:
    """A device that is busy when ten tasks become ready takes them in the plan's order, not in that of submission."""
    rng = np.random.default_rng(0)
    graph = TaskGraph.from_edges([1.0] * 11, [0] * 10, list(range(1, 11)))
    plan = Plan(np.zeros(11, np.int32), np.array([0, *(1 + rng.permutation(10))], np.int32), "work-conserving")
    result = engine(bed, tmp_path / "run").run(Work.timed(graph, 0.02), plan, NODES, RunOptions()).check()
    planned, found = order_on(result, plan, 0)
    assert found == planned


@pytest.mark.usefixtures("client")
def test_commands_keep_their_output_and_are_tried_again(bed: Testbed, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    commands = (
        Command.shell("echo one"),
        Command.shell(f"test -e {flag} || {{ touch {flag}; echo sorry >&2; exit 4; }}; echo two"),
        Command.shell("pwd", cwd=str(tmp_path)),
    )
    options = RunOptions(keep="all", max_attempts=2)
    result = engine(bed, tmp_path / "run").run(Work(CHAIN, commands), ON_ONE, NODES, options).check()
    assert dict(result.outputs) == {0: b"one\n", 1: b"two\n", 2: f"{tmp_path}\n".encode()}
    assert result.attempts.tolist() == [1, 2, 1]
    (failure,) = result.failures
    assert (failure.task, failure.attempt, failure.blame) == (1, 1, "task")
    assert failure.reason == "exit code 4: sorry"


def failing() -> tuple[Work, Plan]:
    """0 fails; 1 needs it, 2 only stands behind it, 3 has nothing to do with it."""
    graph = TaskGraph.from_edges([1.0] * 4, [0], [1])
    bad = Command.shell("exit 3")
    good = Command.shell("sleep 0.1; echo fine")
    plan = Plan(np.array([0, 0, 0, 1], np.int32), np.array([0, 1, 2, 3], np.int32))
    return Work(graph, (bad, good, good, good)), plan


@pytest.mark.usefixtures("client")
def test_what_does_not_need_a_failed_task_goes_on_where_wanted(bed: Testbed, tmp_path: Path) -> None:
    work, plan = failing()
    options = RunOptions(max_attempts=2, keep_going=True, keep="all")
    result = engine(bed, tmp_path / "run").run(work, plan, NODES, options)
    assert result.status == "failed"
    assert sorted(result.outputs) == [2, 3]
    assert [failure.task for failure in result.failures] == [0, 0]
    with pytest.raises(EngineFailure, match="task 0"):
        result.check()


def test_otherwise_nothing_more_begins(bed: Testbed, client: SlurmClient, tmp_path: Path) -> None:
    work, plan = failing()
    result = engine(bed, tmp_path / "run").run(work, plan, NODES, RunOptions(max_attempts=1))
    assert result.status == "failed"
    assert np.isnan(result.start_s[1])
    assert not [job for job in client.queue() if not job.is_ended]


@pytest.mark.usefixtures("client")
def test_a_run_is_taken_up_where_it_is(bed: Testbed, tmp_path: Path) -> None:
    count = tmp_path / "count"
    work = Work(CHAIN, tuple(Command.shell(f"echo {task} >> {count}") for task in range(3)))
    first = engine(bed, tmp_path / "run").run(work, ON_ONE, NODES, RunOptions()).check()
    again = engine(bed, tmp_path / "run").run(work, ON_ONE, NODES, RunOptions()).check()
    assert count.read_text() == "0\n1\n2\n"
    assert np.array_equal(first.start_s, again.start_s)
    other = Work(CHAIN, (Command(("true",)),) * 3)
    with pytest.raises(InvalidInput, match="different work"):
        engine(bed, tmp_path / "run").run(other, ON_ONE, NODES, RunOptions())


@pytest.mark.usefixtures("client")
def test_tasks_that_ended_elsewhere_are_not_run(bed: Testbed, tmp_path: Path) -> None:
    work = Work.timed(CHAIN, 0.02)
    whole = SimulatedEngine().run(work, ON_ONE, NODES, RunOptions(keep="all"))
    options = RunOptions(done={0: whole.outputs[0]}, keep="all")
    result = engine(bed, tmp_path / "run").run(work, ON_ONE, NODES, options).check()
    assert np.isnan(result.start_s[0])
    assert not (tmp_path / "run" / "0.slurm").exists()
    assert {task: result.outputs[task] for task in (1, 2)} == {task: whole.outputs[task] for task in (1, 2)}


@pytest.mark.usefixtures("client")
def test_a_job_that_somebody_cancels_fails(bed: Testbed, client: SlurmClient, tmp_path: Path) -> None:
    def cancel(event: Event) -> None:
        if isinstance(event, TaskStarted):
            client.cancel(job.job_id for job in client.queue() if job.name.startswith("stretto-"))

    graph = TaskGraph.from_edges([1.0], [], [])
    plan = Plan(np.zeros(1, np.int32), np.zeros(1, np.int32))
    work = Work(graph, (Timed(30.0),))
    result = engine(bed, tmp_path / "run").run(work, plan, NODES, RunOptions(on_event=cancel))
    assert [failure.blame for failure in result.failures if isinstance(failure, TaskFailed)] == ["cancelled"]


def test_one_process_follows_a_run_at_a_time(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run"), pytest.raises(EngineFailure, match="another process"):
        RunFolder(tmp_path / "run", patience_s=0.1)
    # One that was killed may leave a program behind that holds the folder for a moment.
    first = RunFolder(tmp_path / "run")
    words = ["/bin/sh", "-c", 'sleep 0.5; touch "$1"', "heir", str(tmp_path / "ended")]
    heir = subprocess.Popen(words, pass_fds=[first.lock_fd])
    with first:
        pass
    with RunFolder(tmp_path / "run"):
        assert (tmp_path / "ended").exists()
    heir.wait()


@pytest.mark.usefixtures("client")
def test_keeps_the_contract_of_engines(bed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # each run makes a folder of its own
    # Slurm learns of an end, and passes over its queue, within seconds.
    trial = EngineTrial(num_tasks=10, cluster=NODES, scale=0.02, latency_s=5.0, has_calls=False)
    passed = check_engine(SlurmEngine(conf=str(bed.conf), queue_s=1.0), trial)
    assert len(passed) >= 3
    assert len(list(tmp_path.glob("stretto-run-*"))) >= 3


def test_an_unfinished_run_of_the_same_work_is_taken_up(tmp_path: Path) -> None:
    work = Work.timed(CHAIN, 0.02)
    first = run_folder_for(work, ON_ONE, "sequence", tmp_path)
    assert first == run_folder_for(work, ON_ONE, "sequence", tmp_path)
    first.mkdir()
    (first / "0.log").write_text("start 1 5.0 3 n1\nend 1 6.0 0 ok\n")
    assert run_folder_for(work, ON_ONE, "sequence", tmp_path) == first
    others = [
        run_folder_for(Work.timed(CHAIN, 0.03), ON_ONE, "sequence", tmp_path),
        run_folder_for(work, Plan(ON_ONE.assignment + 1, ON_ONE.order), "sequence", tmp_path),
        run_folder_for(work, ON_ONE, "work-conserving", tmp_path),
    ]
    assert len({first, *others}) == 4
    for task in (1, 2):
        (first / f"{task}.log").write_text("done ok\n")
    second = run_folder_for(work, ON_ONE, "sequence", tmp_path)
    assert second != first  # all has ended well: whoever runs it again wants it run again
    second.mkdir()
    (second / "0.log").write_text("start 1 5.0 3 n1\nend 1 6.0 9 over\n")
    assert run_folder_for(work, ON_ONE, "sequence", tmp_path) not in (first, second)


def test_says_why_it_is_not_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = SlurmEngine(conf=str(tmp_path / "slurm.conf"))
    assert nowhere.available() is not None
    monkeypatch.setenv("PATH", os.devnull)
    assert nowhere.available() is not None


@pytest.mark.usefixtures("client")
def test_tasks_run_side_by_side_on_a_node_that_packs(bed: Testbed, tmp_path: Path) -> None:
    """Four tasks of one core on a node of two: two at a time, whatever their order says."""
    build = GraphBuilder("packed")
    for index in range(4):
        build.task(f"t{index}", 1.0, cores=1)
    graph = build.graph()
    cluster = Cluster.uniform([Device("n1", cores=2.0, gpus=0.0, packs=True, machine="n1")])
    plan = Plan(np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
    result = engine(bed, tmp_path / "run").run(Work.timed(graph), plan, cluster, RunOptions()).check()
    at_once = [int(((result.start_s <= t) & (t < result.end_s)).sum()) for t in result.start_s + 1e-3]
    assert max(at_once) == 2
