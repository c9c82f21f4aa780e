"""The local engine: results, blame, retries, memory, resumption; with threads and with processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import is_running
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.driver.events import Event, TaskFinished, TaskStarted
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.local.arena import Arena, Attached, unlink_chunks
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Action, Call, Command, Timed, Work
from stretto.errors import EngineFailure

WORKERS = ("thread", "process")
both = pytest.mark.parametrize("workers", WORKERS)


def diamond(*actions: Action) -> Work:
    return Work(TaskGraph.from_edges(np.ones(4), [0, 0, 1, 2], [1, 2, 3, 3]), actions)


def alone(*actions: Action) -> Work:
    return Work(TaskGraph.from_edges(np.ones(len(actions)), [], []), actions)


def plan_of(*assignment: int) -> Plan:
    return Plan(np.array(assignment, dtype=np.int32), np.arange(len(assignment), dtype=np.int32))


def run(workers: str, work: Work, plan: Plan, cluster: str = "cpu:2", **options: Any) -> RunResult:
    engine = LocalEngine(workers=workers)  # type: ignore[arg-type]
    return engine.run(work, plan, Cluster.parse(cluster), RunOptions(**options))


@both
def test_outputs_flow_along_the_edges(workers: str) -> None:
    def make() -> np.ndarray:
        return np.arange(100_000.0)

    work = diamond(
        Call(make),
        Call(lambda x: x * 2),
        Call(lambda x: {"sum": float(x.sum()), "parts": (x[:3], "text", None, 7)}),
        Call(lambda a, b: (a[1:4], b["sum"], b["parts"][0], b["parts"][1:])),
    )
    found = run(workers, work, plan_of(0, 1, 0, 1), keep="all").check()
    doubled, total, part, rest = found.outputs[3]
    assert doubled.tolist() == [2.0, 4.0, 6.0]
    assert total == np.arange(100_000.0).sum()
    assert part.tolist() == [0.0, 1.0, 2.0]
    assert tuple(rest) == ("text", None, 7)
    assert found.device.tolist() == [0, 1, 0, 1]
    assert found.attempts.tolist() == [1, 1, 1, 1]
    assert len(set(found.digests)) == 4
    assert (found.start_s[[1, 2, 3, 3]] >= found.end_s[[0, 0, 1, 2]]).all()


@both
def test_digests_do_not_depend_on_the_device(workers: str) -> None:
    work = diamond(Call(lambda: np.arange(9.0)), Call(np.sin), Call(np.cos), Call(np.add))
    here = run(workers, work, plan_of(0, 0, 0, 0)).digests
    assert None not in here
    assert run(workers, work, plan_of(0, 1, 0, 1)).digests == here


@both
def test_a_failing_task_is_tried_elsewhere_and_then_blamed(workers: str) -> None:
    def fail() -> None:
        raise ValueError("no luck today")

    found = run(workers, alone(Call(fail), Call(lambda: 1)), plan_of(0, 1), max_attempts=3)
    assert found.status == "failed"
    assert [failure.blame for failure in found.failures] == ["task"] * 3
    assert {failure.device for failure in found.failures} == {0, 1}
    assert "no luck today" in found.failures[0].reason
    with pytest.raises(EngineFailure, match="no luck today"):
        found.check()


@both
def test_keep_going_runs_what_does_not_depend_on_the_failure(workers: str) -> None:
    graph = TaskGraph.from_edges(np.ones(4), [0, 2], [1, 3])
    work = Work(graph, (Call(int, ("x",)), Call(lambda x: x), Call(lambda: 5), Call(lambda x: x + 1)))
    found = run(workers, work, plan_of(0, 0, 0, 1), keep_going=True, max_attempts=1)
    assert found.status == "failed"
    assert found.is_finished.tolist() == [False, False, True, True]
    assert found.outputs == {3: 6}


@both
def test_a_task_that_fails_once_succeeds_at_the_second_attempt(workers: str, tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def once() -> str:
        if not flag.exists():
            flag.touch()
            raise RuntimeError("first time")
        return "fine"

    found = run(workers, alone(Call(once)), plan_of(0)).check()
    assert found.attempts.tolist() == [2]
    assert found.outputs == {0: "fine"}


def test_a_killed_worker_is_blamed_restarted_and_its_queue_repeated(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def die_once() -> str:
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    actions = (Call(die_once), *(Call(lambda n=n: n) for n in range(5)))
    found = run("process", alone(*actions), plan_of(0, 0, 0, 0, 0, 0), keep="all").check()
    assert [(failure.task, failure.blame) for failure in found.failures] == [(0, "worker")]
    assert "signal 9" in found.failures[0].reason
    assert found.outputs == {0: "alive", 1: 0, 2: 1, 3: 2, 4: 3, 5: 4}
    assert found.attempts.tolist() == [2, 1, 1, 1, 1, 1]


def test_a_device_whose_worker_keeps_dying_is_lost_and_its_tasks_move() -> None:
    def die_on_the_first_device(home: int) -> int:
        if _device_name().endswith("-0"):
            os._exit(7)
        return home

    actions = tuple(Call(die_on_the_first_device, (n,)) for n in range(6))
    engine = LocalEngine(workers="process", max_restarts=1)
    found = engine.run(alone(*actions), plan_of(0, 0, 0, 1, 1, 1), Cluster.parse("cpu:2"), RunOptions(keep="all"))
    assert found.check().outputs == {n: n for n in range(6)}
    assert set(found.device.tolist()) == {1}


def _device_name() -> str:
    import multiprocessing

    return multiprocessing.current_process().name


@both
def test_a_hung_task_times_out_and_the_rest_runs(workers: str) -> None:
    hang = threading.Event()
    work = alone(Call(hang.wait, timeout_s=0.15), Call(lambda: 1), Call(lambda: 2))
    found = run(workers, work, plan_of(0, 0, 1), max_attempts=1, keep_going=True)
    hang.set()
    assert [(f.task, f.blame) for f in found.failures] == [(0, "timeout")]
    assert found.is_finished.tolist() == [False, True, True]


@both
def test_commands_read_write_fail_and_time_out(workers: str, tmp_path: Path) -> None:
    here = str(tmp_path)
    work = diamond(
        Command.shell("echo data > made", cwd=here, writes=("made",)),
        Command(("cat", "made"), cwd=here, reads=("made",)),
        Command.shell("echo $WORD", env={"WORD": "hello"}),
        Command.shell("exit 3"),
    )
    found = run(workers, work, plan_of(0, 1, 0, 1), keep="all", max_attempts=1)
    assert found.outputs == {0: b"", 1: b"data\n", 2: b"hello\n"}
    assert found.failures[0].reason == "exit code 3"
    late = run(workers, alone(Command(("sleep", "30"), timeout_s=0.2)), plan_of(0), max_attempts=1)
    assert late.failures[0].blame == "timeout"
    absent = run(workers, alone(Command(("true",), writes=("nowhere/x",))), plan_of(0), max_attempts=1)
    assert "nowhere/x" in absent.failures[0].reason
    unknown = run(workers, alone(Command(("no-such-program-here",))), plan_of(0), max_attempts=1)
    assert "cannot be started" in unknown.failures[0].reason


@both
def test_memory_of_a_device_is_limited(workers: str) -> None:
    devices = [Device("small", memory_bytes=500_000), Device("large", memory_bytes=50_000_000)]
    work = diamond(Call(np.zeros, (100_000,)), Call(np.sum), Call(np.max), Call(lambda a, b: float(a + b)))
    engine = LocalEngine(workers=workers)  # type: ignore[arg-type]
    found = engine.run(work, plan_of(0, 0, 1, 1), Cluster.uniform(devices), RunOptions()).check()
    assert found.failures[0].blame == "memory"
    assert found.device.tolist()[0] == 1  # moved to where it fits
    assert found.outputs == {3: 0.0}


@both
def test_finished_tasks_of_an_earlier_run_are_not_run_again(workers: str) -> None:
    work = diamond(Call(int, ("no",)), Call(int, ("no",)), Call(np.negative), Call(np.add))
    array = np.arange(5000.0)
    found = run(workers, work, plan_of(0, 1, 0, 1), done={0: array, 1: array * 3}).check()
    assert found.outputs[3].tolist() == (array * 2).tolist()
    assert found.attempts.tolist() == [0, 0, 1, 1]


@both
def test_every_end_is_announced_once_and_in_order(workers: str) -> None:
    events: list[Event] = []
    outputs: dict[int, Any] = {}
    work = diamond(*(Timed(0.001) for _ in range(4)))
    found = run(workers, work, plan_of(0, 1, 0, 1), on_event=events.append, on_output=outputs.__setitem__).check()
    ends = [event.task for event in events if isinstance(event, TaskFinished)]
    starts = [event.task for event in events if isinstance(event, TaskStarted)]
    assert sorted(ends) == sorted(starts) == [0, 1, 2, 3]
    assert ends[0] == 0
    assert ends[3] == 3
    assert outputs[3] == found.outputs[3]
    assert found.is_timed


@both
def test_inputs_cannot_be_changed_since_others_read_them(workers: str) -> None:
    def spoil(x: np.ndarray) -> None:
        x[:] = -1

    work = diamond(Call(lambda: np.ones(1000)), Call(spoil), Call(np.sum), Call(np.add))
    for device in (0, 1):
        found = run(workers, work, plan_of(0, device, 0, 0), max_attempts=1)
        assert [failure.task for failure in found.failures] == [1]
        assert "read-only" in found.failures[0].reason


@both
def test_interrupting_keeps_what_was_done(workers: str) -> None:
    ended: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, TaskFinished):
            ended.append(event.task)
            if event.task == 0:
                os.kill(os.getpid(), signal.SIGINT)

    work = diamond(Timed(0.001), Timed(600.0), Timed(600.0), Timed(600.0))
    begin = time.monotonic()
    found = run(workers, work, plan_of(0, 1, 0, 1), on_event=watch)
    assert found.status == "interrupted"
    assert found.is_finished.tolist() == [True, False, False, False]
    assert time.monotonic() - begin < 500
    with pytest.raises(EngineFailure, match="interrupted"):
        found.check()


@both
def test_interrupting_ends_running_commands(workers: str, tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    def watch(event: Event) -> None:
        if isinstance(event, TaskStarted):
            threading.Thread(target=interrupt_when, args=(mark,)).start()

    command = Command.shell(f"echo $$ > {mark}.part; mv {mark}.part {mark}; exec sleep 300")
    found = run(workers, alone(command), plan_of(0), on_event=watch)
    assert found.status == "interrupted"
    number = int(mark.read_text())
    deadline = time.monotonic() + 120
    while is_running(number) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(number)


def interrupt_when(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


def test_no_shared_memory_stays_behind() -> None:
    before = set(os.listdir("/dev/shm"))
    work = diamond(Call(np.zeros, (200_000,)), Call(np.cos), Call(np.sin), Call(np.add))
    run("process", work, plan_of(0, 1, 0, 1)).check()
    assert {name for name in set(os.listdir("/dev/shm")) - before if f"stretto-{os.getpid()}-" in name} == set()


def test_objects_that_are_no_data_cannot_leave_a_process() -> None:
    found = run("process", alone(Call(object)), plan_of(0), max_attempts=1)
    assert "cannot be sent or stored" in found.failures[0].reason
    assert run("thread", alone(Call(object)), plan_of(0)).digests == (None,)


def test_memory_is_used_again_unless_somebody_looks_at_it() -> None:
    attached, arena = Attached(), Arena(f"stretto-test-{os.getpid()}")
    try:
        first, second = (arena.put(np.full(5000, value)) for value in (1.0, 2.0))
        copies = [attached.copy(first)]
        place = id(copies[0])
        attached.release(copies)  # type: ignore[arg-type]
        again = attached.copy(second)
        assert id(again) == place
        view = np.frombuffer(again)
        assert view[0] == 2.0
        attached.release([again])  # type: ignore[list-item]
        assert id(attached.copy(first)) != place
        assert view[0] == 2.0
    finally:
        attached.close()
        unlink_chunks(arena.prefix)


def test_blocks_are_used_again() -> None:
    arena = Arena(f"stretto-test-{os.getpid()}")
    try:
        ref = arena.put(np.zeros(5000))
        assert arena.used_bytes == 1 << 16
        arena.free([ref])
        assert arena.used_bytes == 0
        assert arena.put(np.ones(4200))[:2] == ref[:2]
        assert arena.put(np.ones(4200))[:2] != ref[:2]
    finally:
        unlink_chunks(arena.prefix)
