"""The process engine under fire: tasks that kill their worker, raise, hang and allocate too much, all at once."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.plan import DISCIPLINES
from stretto.engines.driver.events import Event, TaskFinished
from stretto.engines.engine import RunOptions
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Work
from stretto.testing.engine_checks import random_graph, random_plan

TROUBLE = ("kill", "raise", "hang", "memory", "exit")


def work_of(task: int, trouble: str | None, folder: Path) -> Call:
    def compute(*inputs: np.ndarray) -> np.ndarray:
        flag = folder / str(task)
        if trouble is not None and not flag.exists():
            flag.touch()
            cause(trouble)
        (folder / f"ran-{task}-{time.monotonic_ns()}").touch()
        return np.full(2000, float(task)) + sum(inputs)

    # The second attempt must get through within it, on a busy machine, too.
    return Call(compute, timeout_s=4.0 if trouble == "hang" else None)


def cause(trouble: str) -> None:
    if trouble == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "exit":
        os._exit(0)
    if trouble == "hang":
        time.sleep(600)
    raise MemoryError if trouble == "memory" else ValueError("chaos")


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("seed", [0, 1])
def test_everything_ends_right_and_is_recorded_once(discipline: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 60)
    troubles = [str(rng.choice(TROUBLE)) if rng.random() < 0.25 else None for _ in range(60)]
    work = Work(graph, tuple(work_of(task, troubles[task], tmp_path) for task in range(60)))
    cluster = Cluster.parse("cpu:3")
    events: list[Event] = []
    options = RunOptions(discipline=discipline, keep="all", on_event=events.append)  # type: ignore[arg-type]
    engine = LocalEngine(workers="process", max_restarts=30)
    found = engine.run(work, random_plan(rng, graph, cluster), cluster, options).check()

    expected: dict[int, np.ndarray] = {}
    for task in graph.topo.tolist():
        expected[task] = np.full(2000, float(task)) + sum(expected[parent] for parent in work.inputs(task))
        assert np.array_equal(found.outputs[task], expected[task])
    ends = Counter(event.task for event in events if isinstance(event, TaskFinished))
    assert ends == Counter(range(60))
    runs = Counter(int(path.name.split("-")[1]) for path in tmp_path.glob("ran-*"))
    assert runs == Counter(range(60)), "no task that ended ran again"
    blamed = {failure.task: failure.blame for failure in found.failures}
    names = {"kill": "worker", "exit": "worker", "raise": "task", "hang": "timeout", "memory": "memory"}
    assert blamed == {task: names[trouble] for task, trouble in enumerate(troubles) if trouble is not None}
    assert len(found.failures) == len(blamed)
    source, target, _ = graph.edges
    assert (found.end_s[source] <= found.start_s[target]).all()
