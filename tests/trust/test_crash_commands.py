"""Commands of a run that is killed again and again: what ended is on record, although nobody was left to be told."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.engines.completion_log import await_writers, completion_log_path, read_completions
from stretto.engines.workflow_file import load_workflow
from stretto.runlog import RunLog

NUM_TASKS = 24
#: Each task says when it begins and ends, and then is gone: a kill finds many of them at their end.
TASK = """
[[task]]
name = "t{0}"
run = "echo begin {0} >> lines; sleep 0.0{1}; echo end {0} >> lines"
"""
_LONG = [pytest.param(workers, 30, marks=pytest.mark.long, id=f"{workers}-30") for workers in ("thread", "process")]


@pytest.mark.parametrize(("workers", "num_kills"), [("thread", 2), ("process", 1), *_LONG])
def test_commands_that_end_as_their_run_is_killed_are_on_record(tmp_path: Path, workers: str, num_kills: int) -> None:
    flow = tmp_path / "flow.toml"
    flow.write_text("".join(TASK.format(i, i % 7) for i in range(NUM_TASKS)))
    rng = random.Random(7)
    for number in range(num_kills):
        home = tmp_path / f"home-{number}"
        (tmp_path / "lines").write_text("")
        words = [sys.executable, "-m", "stretto.cli.main", "run", str(flow), "-c", "cpu:4", "-e", f"workers={workers}"]
        env = {**os.environ, "STRETTO_HOME": str(home)}
        process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = rng.randint(1, NUM_TASKS - 8)
        deadline = time.monotonic() + 120.0
        while (tmp_path / "lines").read_text().count("end") < wanted:
            assert time.monotonic() < deadline, "the tasks do not run"
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        check(flow, home)


def check(flow: Path, home: Path) -> None:
    with RunLog.open(home / "runs.db") as log:
        run_id = log.run("latest").id
        path = completion_log_path(log, run_id)
        time.sleep(0.05)
        assert await_writers(path)
        lines = (flow.parent / "lines").read_text().splitlines()
        recorded = {event.subject for event in log.events(run_id, kinds=["task-finished"])}
        ends = {end.task: end for end in read_completions(path)}
    ended = {f"t{line.split()[1]}" for line in lines if line.startswith("end")}
    missing = ended - recorded - ends.keys()
    assert not missing, f"{len(missing)} of {len(ended)} tasks ended and are not on record"
    assert (recorded | ends.keys()) <= ended
    work = load_workflow(flow)
    assert all(end.fields["end_s"] >= end.fields["start_s"] >= 0 and end.output is not None for end in ends.values())
    assert ends.keys() <= work.graph.index_of.keys()
