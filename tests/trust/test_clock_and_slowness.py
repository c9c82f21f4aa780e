"""Clocks that jump and devices that dawdle change times, never what is done."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import GreedyDispatcher
from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.engine import Engine, RunOptions
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Work
from stretto.queues.live_order import StrategyOrder
from stretto.runlog import RunLog
from stretto.testing.engine_checks import random_graph

HOUR_S = 3600.0


class Clock:
    """The time of day, until somebody sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset_s, real = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.offset_s)


def dask_engine() -> Engine:
    pytest.importorskip("distributed")
    from stretto.engines.dask.engine import DaskEngine

    return DaskEngine(processes=False)


#: A run on Dask stands still when the clock is set back (docs/reliability.md says so): there it is only set forward.
JUMPS = [
    pytest.param(lambda: LocalEngine(workers="thread"), HOUR_S, id="local-thread-forward"),
    pytest.param(lambda: LocalEngine(workers="thread"), -HOUR_S, id="local-thread-back"),
    pytest.param(lambda: LocalEngine(workers="process"), HOUR_S, id="local-process-forward"),
    pytest.param(lambda: LocalEngine(workers="process"), -HOUR_S, id="local-process-back"),
    pytest.param(dask_engine, HOUR_S, id="dask-forward"),
]


@pytest.mark.parametrize(("make", "jump_s"), JUMPS)
def test_no_task_is_given_up_because_the_clock_was_set(make: Any, jump_s: float, monkeypatch: Any) -> None:
    engine = make()
    clock, graph = Clock(monkeypatch), TaskGraph.from_edges(np.ones(12), [], [])
    work = Work(graph, tuple(Call(slowly, (task,), timeout_s=600.0) for task in range(12)))
    # One task runs while the others end and the clock is set; then nothing happens, and the engine looks for late ones.
    plan = Plan(np.array([0] + [1] * 11, dtype=np.int32), np.arange(12, dtype=np.int32))
    ends: list[int] = []

    def set_the_clock(event: Event) -> None:
        if isinstance(event, TaskFinished):
            ends.append(event.task)
            if len(ends) % 3 == 0:
                clock.offset_s += jump_s

    options = RunOptions(keep="all", on_event=set_the_clock)
    found = engine.run(work, plan, Cluster.parse("cpu:2"), options).check()
    assert found.failures == ()
    assert found.attempts.tolist() == [1] * 12
    assert sorted(ends) == list(range(12))
    if found.engine == "local":
        assert found.makespan_s < HOUR_S
        assert (found.end_s >= found.start_s).all()


def slowly(task: int) -> int:
    time.sleep(2.0 if task == 0 else 0.01)
    return task


def test_the_log_keeps_its_order_when_the_clock_goes_back(tmp_path: Path) -> None:
    now = [10 * HOUR_S]
    log = RunLog.open(tmp_path / "runs.db", clock=lambda: now[0])
    ids = []
    for number in range(5):
        run = log.start("run", f"r{number}", {}, run_id=f"id-{number}")
        run.record("a", at=number)
        now[0] -= HOUR_S
        run.record("b", at=number)
        run.finish("done")
        ids.append(run.id)
    assert log.run("latest").id == ids[-1]
    assert [info.id for info in log.runs()] == ids[::-1]
    assert [info.id for info in log.runs(limit=2)] == ids[:2:-1]
    assert all([event.kind for event in log.events(run_id)] == ["a", "b"] for run_id in ids)


@pytest.mark.parametrize("name", ["fcfs", "sjf", "saf", "expansion", "wfp3", "sjf-believed"])
@pytest.mark.parametrize("shift_s", [-1e6, -1.0, 1e9])
def test_a_live_queue_is_ordered_whatever_the_time_of_day(name: str, shift_s: float) -> None:
    """Slurm's times and ours may come from clocks that disagree: jobs may seem to come from the future."""
    import dataclasses

    from engines.slurm.test_online_orders import make_view

    view = make_view(5)
    view = dataclasses.replace(view, now_s=view.now_s + shift_s)
    assert sorted(StrategyOrder(name).decide(view).order) == view.waiting.tolist()


def test_a_slow_device_gets_less_and_loses_nothing() -> None:
    """One device takes far longer than anybody knew: what is ready goes to the others meanwhile."""
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 60)
    problem = Problem.of(graph, Cluster.parse("cpu:3"))
    slow = problem.cluster.devices[0].name

    def work_here(*inputs: int) -> int:
        time.sleep(0.3 if threading.current_thread().name == f"stretto-{slow}" else 0.005)
        return 1 + sum(inputs)

    work = Work(graph, tuple(Call(work_here) for _ in range(60)))
    found = LocalEngine(workers="thread").play(problem, GreedyDispatcher(), work, RunOptions(keep="all")).check()
    expected: dict[int, int] = {}
    for task in graph.topo.tolist():
        expected[task] = 1 + sum(expected[parent] for parent in work.inputs(task))
    assert found.outputs == expected
    count = Counter(found.device.tolist())
    assert 0 < count[0] < min(count[1], count[2])


_ZOMBIE = """
import os, sys
from stretto.runlog import RunLog
RunLog.open(sys.argv[1]).start("run", "x", {}, run_id="dead")
"""


def test_a_writer_that_is_dead_and_not_buried_is_dead(tmp_path: Path) -> None:
    """In a container nobody may ever ask after an orphan: its run must be open to a resumption all the same."""
    path = tmp_path / "runs.db"
    process = subprocess.Popen([sys.executable, "-c", _ZOMBIE, str(path)])
    stat = Path(f"/proc/{process.pid}/stat")
    deadline = time.monotonic() + 120.0
    while stat.read_text().rsplit(")", 1)[1].split()[0] != "Z":  # it has ended, and we have not asked how
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with RunLog.open(path) as log:
        assert log.run("dead").status == "interrupted"
        log.resume("dead").record("again")
    process.wait()
