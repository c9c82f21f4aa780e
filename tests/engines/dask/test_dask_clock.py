"""A run on Dask goes on when the time of day is set back."""

from __future__ import annotations

import time

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.dask.clock_watch import let_go
from stretto.engines.dask.engine import DaskEngine
from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.engine import RunOptions
from stretto.engines.work import Call, Work

HOUR_S = 3600.0


def slowly(task: int) -> int:
    time.sleep(0.5 if task == 0 else 0.01)
    return task


@pytest.mark.parametrize("jump_s", [-HOUR_S, HOUR_S])
def test_a_run_goes_on_when_the_clock_is_set(jump_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed.batched

    real, offset_s = time.time, [0.0]

    def fake() -> float:
        return real() + offset_s[0]

    # Dask has its own name for the function: on a machine whose clock is set, both say the same.
    monkeypatch.setattr(time, "time", fake)
    monkeypatch.setattr(distributed.batched, "time", fake)
    ends: list[int] = []

    def set_the_clock(event: Event) -> None:
        if isinstance(event, TaskFinished):
            ends.append(event.task)
            if len(ends) % 3 == 0:
                offset_s[0] += jump_s

    graph = TaskGraph.from_edges(np.ones(12), [], [])
    work = Work(graph, tuple(Call(slowly, (task,), timeout_s=600.0) for task in range(12)))
    plan = Plan(np.array([0] + [1] * 11, dtype=np.int32), np.arange(12, dtype=np.int32))
    options = RunOptions(keep="all", on_event=set_the_clock)
    began_s = time.monotonic()
    found = DaskEngine(processes=False).run(work, plan, Cluster.parse("cpu:2"), options).check()
    assert time.monotonic() - began_s < HOUR_S / 2
    assert found.outputs == {task: task for task in range(12)}
    assert found.attempts.tolist() == [1] * 12
    assert not found.failures


def test_a_sender_that_is_made_otherwise_is_left_alone() -> None:
    let_go(object())
