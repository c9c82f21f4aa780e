"""The batch script of a task, run here by a plain shell: once, in order, with what happened written down."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from stretto.engines.slurm.engine.run_folder import COMMON, EXIT_TIMEOUT, EXIT_TOO_EARLY, Entry, read_log, script
from stretto.engines.work import Action, Call, Command, Timed
from stretto.errors import InvalidInput

SETTINGS = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "5", "SLURMD_NODENAME": "n1"}


def write(
    folder: Path, task: int, action: Action, *, tries: int = 2, needs: tuple[int, ...] = (), after: tuple[int, ...] = ()
) -> Path:
    (folder / "common.sh").write_text(COMMON)
    path = folder / f"{task}.sh"
    path.write_text(script(folder, task, action, 0.01, tries=tries, needs=needs, after=after))
    return path


def run(path: Path) -> int:
    return subprocess.run(["/bin/sh", str(path)], env=SETTINGS, timeout=60, check=False).returncode


def entries(folder: Path, task: int) -> list[Entry]:
    return read_log((folder / f"{task}.log").read_text())


def test_says_when_and_where_it_ran_and_keeps_its_output(tmp_path: Path) -> None:
    before = time.time()
    assert run(write(tmp_path, 3, Command(("echo", "hello")))) == 0
    start, end = entries(tmp_path, 3)
    assert (start.kind, start.attempt, start.node) == ("start", 1, "n1")
    assert (end.kind, end.attempt, end.exit_code, end.word) == ("end", 1, 0, "ok")
    assert before <= start.at_s <= end.at_s <= time.time()
    assert (tmp_path / "3.out").read_bytes() == b"hello\n"


def test_what_has_ended_well_is_not_done_again(tmp_path: Path) -> None:
    path = write(tmp_path, 0, Command.shell(f"echo x >> {tmp_path}/count"))
    assert [run(path), run(path), run(path)] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "x\n"


def test_two_at_once_do_it_once(tmp_path: Path) -> None:
    path = write(tmp_path, 0, Command.shell(f"sleep 0.3; echo x >> {tmp_path}/count"))
    both = [subprocess.Popen(["/bin/sh", str(path)], env=SETTINGS) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert (tmp_path / "count").read_text() == "x\n"


def test_a_failure_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    path = write(tmp_path, 0, Command.shell("echo bad >&2; exit 7"), tries=3)
    assert run(path) == 1
    ends = [entry for entry in entries(tmp_path, 0) if entry.kind == "end"]
    assert [(entry.attempt, entry.exit_code, entry.word) for entry in ends] == [
        (1, 7, "again"),
        (2, 7, "again"),
        (3, 7, "over"),
    ]
    assert (tmp_path / "0.err3").read_text() == "bad\n"
    assert run(path) == 1  # a job that is started once more does not get more tries
    assert len(entries(tmp_path, 0)) == 6


def test_a_second_attempt_may_succeed(tmp_path: Path) -> None:
    path = write(tmp_path, 0, Command.shell(f"test -e {tmp_path}/flag || {{ touch {tmp_path}/flag; exit 1; }}"))
    assert run(path) == 0
    assert [entry.word for entry in entries(tmp_path, 0) if entry.kind == "end"] == ["again", "ok"]


def test_an_attempt_that_was_killed_does_not_count_as_a_failure(tmp_path: Path) -> None:
    path = write(tmp_path, 0, Command.shell("true"), tries=1)
    (tmp_path / "0.log").write_text("start 1 100.5 4 n1\n")
    assert run(path) == 0
    assert [(entry.kind, entry.attempt) for entry in entries(tmp_path, 0)] == [("start", 1), ("start", 2), ("end", 2)]


@pytest.mark.parametrize(
    ("log", "code"),
    [(None, EXIT_TOO_EARLY), ("start 1 1.0 5 n1\n", EXIT_TOO_EARLY), ("end 1 2.0 0 ok\n", 0), ("done ok\n", 0)],
)
def test_waits_for_what_it_needs(tmp_path: Path, log: str | None, code: int) -> None:
    path = write(tmp_path, 1, Command(("true",)), needs=(0,))
    if log is not None:
        (tmp_path / "0.log").write_text(log)
    assert run(path) == code
    assert (tmp_path / "1.log").exists() is (code == 0)


@pytest.mark.parametrize(
    ("log", "code"),
    [("start 1 1.0 5 n1\n", EXIT_TOO_EARLY), ("end 1 2.0 7 again\n", EXIT_TOO_EARLY), ("end 1 2.0 7 over\n", 0)],
)
def test_waits_for_its_turn(tmp_path: Path, log: str, code: int) -> None:
    path = write(tmp_path, 1, Command(("true",)), after=(0,))
    (tmp_path / "0.log").write_text(log)
    assert run(path) == code


def test_arguments_arrive_as_they_are(tmp_path: Path) -> None:
    nasty = ["a b", "$(touch gone)", "`id`", "'", '"', "\\", "*", "\n", "", "-n", "ü", "$HOME", ";exit 3"]
    action = Command(("printf", "%s|", *nasty), cwd=str(tmp_path), env={"WORD": "$x 'y'"})
    assert run(write(tmp_path, 0, action)) == 0
    assert (tmp_path / "0.out").read_text() == "|".join(nasty) + "|"
    assert not (tmp_path / "gone").exists()


def test_variables_files_and_limits(tmp_path: Path) -> None:
    env = Command.shell('echo "$WORD"', env={"WORD": "it's $x"})
    assert run(write(tmp_path, 0, env)) == 0
    assert (tmp_path / "0.out").read_text() == "it's $x\n"
    assert run(write(tmp_path, 1, Command(("true",), cwd=str(tmp_path), reads=("absent",)), tries=1)) == 1
    assert "absent is not there" in (tmp_path / "1.err1").read_text()
    assert run(write(tmp_path, 2, Command(("true",), cwd=str(tmp_path), writes=("made",)), tries=1)) == 1
    assert "made was not made" in (tmp_path / "2.err1").read_text()
    assert run(write(tmp_path, 3, Command(("touch", "made"), cwd=str(tmp_path), writes=("made",)))) == 0
    assert run(write(tmp_path, 4, Command(("sleep", "30"), timeout_s=0.2), tries=1)) == 1
    assert entries(tmp_path, 4)[-1].exit_code == EXIT_TIMEOUT
    assert run(write(tmp_path, 5, Timed(2.0, "spin"))) == 0
    start, end = entries(tmp_path, 5)
    assert end.at_s - start.at_s >= 0.02


def test_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="commands"):
        write(tmp_path, 0, Call(print))
    with pytest.raises(InvalidInput, match="variable"):
        write(tmp_path, 0, Command(("true",), env={"A;B": "1"}))
    with pytest.raises(InvalidInput, match="command"):
        write(tmp_path, 0, Command(()))


def test_a_line_that_is_being_written_is_left_for_later() -> None:
    assert read_log("start 1 5.0 3 n1\nend 1 6.0 0 o") == [Entry("start", 1, 5.0, node="n1")]
