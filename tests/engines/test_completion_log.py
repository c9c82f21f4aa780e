"""The completion log: whole entries survive whatever was cut, and a resumed run enters them once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.engines.completion_log import Completion, CompletionLog, completion_log_path, read_completions
from stretto.engines.driver.events import TaskFinished
from stretto.engines.event_writer import EventWriter, catch_up, finished_before
from stretto.engines.work import Call, Work
from stretto.runlog import RunLog
from stretto.testing.engine_checks import random_graph

ENDS = [
    Completion("a", {"end_s": 1.5}, b"x" * 10),
    Completion("b", {"digest": None}, None),
    Completion("c", {"end_s": 2.0}, b"end1 in it"),
]


def write(path: Path) -> bytes:
    book = CompletionLog(path)
    for end in ENDS:
        book.add(end)
    book.close(is_entered=False)
    return path.read_bytes()


def test_what_was_added_is_read(tmp_path: Path) -> None:
    write(tmp_path / "ends" / "one")
    assert list(read_completions(tmp_path / "ends" / "one")) == ENDS
    assert list(read_completions(tmp_path / "none")) == []


def test_every_cut_leaves_the_whole_entries(tmp_path: Path) -> None:
    data = write(tmp_path / "one")
    counts = []
    for length in range(len(data) + 1):
        (tmp_path / "cut").write_bytes(data[:length])
        found = list(read_completions(tmp_path / "cut"))
        assert found == ENDS[: len(found)]
        counts.append(len(found))
    assert sorted(counts) == counts
    assert counts[-1] == 3
    assert counts[-2] == 2


def test_entries_after_a_torn_one_are_found(tmp_path: Path) -> None:
    data = write(tmp_path / "one")
    (tmp_path / "torn").write_bytes(data[:20] + data)
    assert list(read_completions(tmp_path / "torn")) == ENDS


@pytest.mark.parametrize("at", range(0, 120, 7))
def test_a_flipped_byte_never_makes_another_end(tmp_path: Path, at: int) -> None:
    data = bytearray(write(tmp_path / "one"))
    data[at % len(data)] ^= 0x55
    (tmp_path / "flipped").write_bytes(bytes(data))
    assert all(end in ENDS for end in read_completions(tmp_path / "flipped"))


def test_a_resumed_run_enters_what_only_the_book_knows_and_that_once(tmp_path: Path) -> None:
    graph = random_graph(np.random.default_rng(0), 5)
    work, cluster = Work(graph, tuple(Call(int) for _ in range(5))), Cluster.parse("cpu:2")
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("run", "killed", {})
        writer = EventWriter(run, work, cluster)  # its thread is never started: nothing reaches the log
        for task, value in ((0, 7), (1, np.arange(1000.0)), (2, "word")):
            writer.on_done(TaskFinished(task, 0, 1, 0.0, 1.0, "mark"), value)
        writer.on_output(2, "word")
        writer.on_event(TaskFinished(2, 0, 1, 0.0, 1.0, "mark"))
        assert catch_up(run, work) == 3
        assert catch_up(run, work) == 0
        done = finished_before(log, run.id, work)
        assert not completion_log_path(log, run.id).exists()
    assert sorted(done) == [0, 1, 2]
    assert (done[0], done[2]) == (7, "word")
    assert done[1].tolist() == list(range(1000))


def test_a_run_that_ends_leaves_no_book(tmp_path: Path) -> None:
    graph = random_graph(np.random.default_rng(0), 2)
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("run", "whole", {})
        with EventWriter(run, Work(graph, (Call(int), Call(int))), Cluster.parse("cpu:1")) as writer:
            writer.on_done(TaskFinished(0, 0, 1, 0.0, 1.0, None), 3)
            writer.on_output(0, 3)
            writer.on_event(TaskFinished(0, 0, 1, 0.0, 1.0, None))
        assert len(log.events(run.id, kinds=["task-finished"])) == 1
        assert not completion_log_path(log, run.id).exists()
