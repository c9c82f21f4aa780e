"""A local run whose process is killed again and again: nothing on record is repeated, nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crash_local_run as crash_run
import pytest

from processes import is_running
from stretto.engines.outputs import digest

_LONG = [pytest.param(workers, 100, marks=pytest.mark.long, id=f"{workers}-100") for workers in ("thread", "process")]


def expected_digests() -> dict[str, str | None]:
    """Return what every task puts out when nobody disturbs it."""
    work, sums = crash_run.make_work(Path(os.devnull)), {}
    for task in work.graph.topo.tolist():
        sums[task] = task + sum(sums[parent] for parent in work.inputs(task))
    return {work.graph.task_name(task): digest(value) for task, value in sums.items()}


@pytest.mark.parametrize(("workers", "num_kills"), [("thread", 4), ("process", 4), *_LONG])
def test_what_is_on_record_never_runs_again(tmp_path: Path, workers: str, num_kills: int) -> None:
    words = [sys.executable, crash_run.__file__, str(tmp_path / "runs"), workers, str(num_kills), "17"]
    (tmp_path / "runs").mkdir()
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    runs: list[dict[str, Any]] = json.loads(done.stdout)
    tally: Counter[str] = Counter()
    for run in runs:
        check_run(run, tally)
    assert tally["kills"] >= num_kills
    print(f"{workers}: {dict(tally)} in {len(runs)} runs")


def check_run(run: dict[str, Any], tally: Counter[str]) -> None:
    lines = [tuple(line.split()) for line in run["lines"]]
    for kill in run["kills"]:
        before, after = lines[: kill["num_lines"]], lines[kill["num_lines"] :]
        recorded = {name.removeprefix("t") for name in kill["recorded"]}
        ended = {task for word, task in before if word == "end"}
        assert len(kill["recorded"]) == len(recorded), "an end is on record twice"
        assert recorded <= ended, "an end is on record that never was"
        assert not recorded & {task for word, task in after if word == "begin"}, "a task on record ran again"
        tally["kills"] += 1
        tally["ended and not yet on record"] += len(ended - recorded)
    assert run["statuses"] == ["done"], "one run, resumed, not several"
    assert dict(run["ends"]) == expected_digests()
    assert len(run["ends"]) == crash_run.NUM_TASKS
    tally["tasks"] += len(run["ends"])
    tally["repeated"] += sum(word == "begin" for word, _ in lines) - crash_run.NUM_TASKS


_ORPHANS = """
import os, sys, time
from pathlib import Path
import numpy as np
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Command, Work

workers, folder = sys.argv[1], Path(sys.argv[2])

def note_and_sleep():
    (folder / "call").write_text(str(os.getpid()))
    time.sleep(600)

command = Command.shell(f"echo $$ > {folder}/new && mv {folder}/new {folder}/command; sleep 600; true")
work = Work(TaskGraph.from_edges([1.0, 1.0], [], []), (Call(note_and_sleep), command))
plan = Plan(np.array([0, 1], dtype=np.int32), np.array([0, 1], dtype=np.int32))
LocalEngine(workers=workers).run(work, plan, Cluster.parse("cpu:2"), RunOptions())
"""


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_nothing_outlives_a_killed_run(tmp_path: Path, workers: str) -> None:
    """Otherwise a resumed run would do what an orphan is still doing."""
    process = subprocess.Popen([sys.executable, "-c", _ORPHANS, workers, str(tmp_path)])
    marks = [tmp_path / "call", tmp_path / "command"]
    try:
        until(lambda: all(mark.exists() and mark.read_text().strip() for mark in marks), "the tasks do not begin")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    pids = [int(mark.read_text()) for mark in marks]
    until(lambda: not any(is_running(pid) for pid in pids), "a task outlived its run")


def until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)
