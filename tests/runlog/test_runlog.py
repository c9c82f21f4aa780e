"""The run log keeps what was recorded, once, in order, and tells the living from the dead."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest

from stretto.errors import InvalidInput, UnknownName
from stretto.runlog import RunLog


@pytest.fixture
def log(tmp_path: Path) -> RunLog:
    ticks = count()
    return RunLog.open(tmp_path / "deep" / "runs.db", clock=lambda: float(next(ticks)))


def test_events_come_back_in_order(log: RunLog) -> None:
    run = log.start("run", "montage", {"seed": 3})
    numbers = [run.record("finish", f"t{i}", device=i % 2, seconds=0.5) for i in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert [event.subject for event in log.events(run.id, after=2)] == ["t2", "t3", "t4"]
    run.record("tick")
    assert [event.seq for event in log.events(run.id, kinds=["tick"])] == [6]
    assert log.events(run.id, limit=1)[0].fields == {"device": 0, "seconds": 0.5}
    assert log.run(run.id).num_events == 6


def test_an_event_counts_once(log: RunLog) -> None:
    run = log.start("steer", "queue", {})
    assert run.record_once("reward", "job 7", value=1.5)
    assert not run.record_once("reward", "job 7", value=9.0)
    assert [event.fields["value"] for event in log.events(run.id)] == [1.5]


def test_a_batch_is_all_or_nothing(log: RunLog) -> None:
    run = log.start("run", "x", {})
    with pytest.raises(InvalidInput), run.batch():
        run.record("b", value=run.record("a") * float("nan"))
    assert log.events(run.id) == []
    with run.batch():
        run.record("a")
        run.record("b")
    assert [event.seq for event in log.events(run.id)] == [1, 2]


def test_runs_are_found_by_kind_status_and_beginning(log: RunLog) -> None:
    first = log.start("run", "one", {}, run_id="aa-1")
    log.start("train", "two", {}, run_id="ab-2")
    first.finish("done", {"makespan_s": 2.0})
    assert [info.id for info in log.runs()] == ["ab-2", "aa-1"]
    assert [info.id for info in log.runs(status="done")] == ["aa-1"]
    assert [info.id for info in log.runs(kind="train")] == ["ab-2"]
    assert log.run("aa").summary == {"makespan_s": 2.0}
    assert log.run("latest").id == "ab-2"
    for unclear in ("a", "zz", ""):
        with pytest.raises(UnknownName):
            log.run(unclear)
    with pytest.raises(InvalidInput, match="already"):
        log.start("run", "again", {}, run_id="aa-1")


def test_artifacts_replace_each_other(log: RunLog) -> None:
    run = log.start("run", "x", {})
    run.attach("plan.json", b"{}")
    run.attach("plan.json", b"[]")
    assert log.artifacts(run.id) == ["plan.json"]
    assert log.artifact(run.id, "plan.json") == b"[]"
    assert log.artifact(run.id, "none") is None
    log.delete(run.id)
    assert log.artifact(run.id, "plan.json") is None


def test_fingerprint_ignores_time_alone(log: RunLog) -> None:
    prints = []
    for value in (1, 1, 2):
        run = log.start("run", "x", {})
        run.record("finish", "t", value=value)
        prints.append(log.fingerprint(run.id))
    assert prints[0] == prints[1] != prints[2]


def test_what_json_cannot_hold_is_refused(log: RunLog) -> None:
    run = log.start("run", "x", {})
    for bad in (float("nan"), object()):
        with pytest.raises(InvalidInput, match="run log"):
            run.record("finish", "t", value=bad)
    assert log.run(run.id).num_events == 0


def test_threads_share_a_log(log: RunLog) -> None:
    run = log.start("run", "x", {})
    threads = [threading.Thread(target=lambda: [run.record("e") for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in log.events(run.id)] == list(range(1, 201))


def test_files_that_are_no_log_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database" * 100)
    with pytest.raises(InvalidInput, match=r"notes\.txt"):
        RunLog.open(text)
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(InvalidInput, match="version 99"):
        RunLog.open(newer)
    with pytest.raises(InvalidInput, match="no run log here"):
        RunLog.open(tmp_path / "none.db", is_read_only=True)


_WRITER = """
import sys
from stretto.runlog import RunLog
run = RunLog.open(sys.argv[1]).start("run", "x", {}, run_id="killed")
number = 0
while True:
    number = run.record("step", str(number))
    print(number, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 3, 20, 117])
def test_a_killed_writer_loses_nothing_it_was_told_is_recorded(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "runs.db"
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(lines)]
        if lines > 1:
            with RunLog.open(path) as other, pytest.raises(InvalidInput, match=f"process {writer.pid}"):
                other.resume("killed")
        os.kill(writer.pid, signal.SIGKILL)
        told += [int(line) for line in writer.stdout]
    log = RunLog.open(path)
    assert log.run("killed").status == "interrupted"
    kept = log.events("killed")
    assert len(kept) >= told[-1]
    assert [event.seq for event in kept] == list(range(1, len(kept) + 1))
    assert log.resume("killed").record("step") == len(kept) + 1
    assert log.run("killed").status == "running"
