"""Faults of workflows and of resumptions, told in plain words by ``stretto run``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.work import Command
from stretto.errors import InvalidInput
from stretto.runlog import RunLog


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["run", *(str(word) for word in words)])
    captured = capsys.readouterr()
    return code, captured.out, " ".join(captured.err.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "".join(f'[[task]]\nname = "{name}"\nrun = "true"\nwrites = ["{x}"]\n' for name, x in ("ax", ("b", "./x"))),
            "[task 'b']: writes './x', which task 'a' writes, too",
        ),
        ('[[task]]\nname = "a"\nrun = "true"\nenv = {"A=B" = "1"}\n', "[task 'a' env]: 'A=B' is not a valid"),
        ('[[task]]\nname = "a"\nrun = "true"\nenv = {"A\\u0000" = "1"}\n', "[task 'a' env]: 'A\\x00' is not a valid"),
        ('[[task]]\nname = "a"\nrun = "true"\nenv = {A = "1\\u0000"}\n', "the value of 'A' contains a NUL character"),
        ('[[task]]\nname = "a"\nrun = "echo \\u0000"\n', "[task 'a' command]: 'echo \\x00' contains a NUL character"),
    ],
)
def test_wrong_workflows_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "flow.toml"
    path.write_text(text)
    code, _, err = run(capsys, path, "-c", "cpu:1")
    assert code == 2
    assert told in err


def test_commands_made_in_python_are_checked_alike() -> None:
    with pytest.raises(InvalidInput, match="is not a valid variable name"):
        Command(("true",), env={"": "x"})


def test_files_of_one_name_in_two_folders_are_two_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    task = '[[task]]\nname = "{0}"\ncwd = "{0}"\nrun = "sleep 0.1; echo {0} > x"\nwrites = ["x"]\n'
    read = '[[task]]\nname = "read"\nrun = "cat one/x two/x > both"\nreads = ["one/x", "two/x"]\n'
    path = tmp_path / "flow.toml"
    path.write_text(task.format("one") + task.format("two") + read)
    assert run(capsys, path, "-c", "cpu:2")[0] == 0
    assert (tmp_path / "both").read_text().split() == ["one", "two"]


def test_an_edited_command_of_a_finished_task_is_noticed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    text = '[[task]]\nname = "a"\nrun = "echo {0} >> log"\n[[task]]\nname = "b"\nrun = "{1}"\nafter = ["a"]\n'
    path.write_text(text.format("first", "false"))
    assert run(capsys, path, "-c", "cpu:1", "--attempts", "1")[0] == 3
    path.write_text(text.format("second", "true"))
    for _ in range(2):  # the notice comes as often as the fault is there
        code, _, err = run(capsys, "--resume", "latest")
        assert code == 0
        assert "task 'a' was edited after finishing" in err
        assert "'b'" not in err
    assert (tmp_path / "log").read_text() == "first\n"


def test_force_without_a_run_to_resume_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "workload:fork-join", "-c", "cpu:1", "--force")
    assert code == 2
    assert "--force works only with --resume" in err


def test_a_run_of_another_machine_is_resumed_by_force(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    path.write_text('[[task]]\nname = "a"\nrun = "true"\n')
    assert run(capsys, path, "-c", "cpu:1")[0] == 0
    with RunLog.open() as log, log.transaction() as connection:
        connection.execute("UPDATE runs SET status='running', host='far', pid=1, pid_started='1 other-boot pid:[1]'")
    code, _, err = run(capsys, "--resume", "latest")
    assert code == 2
    assert "process 1 on far (boot id other-boot" in err
    assert run(capsys, "--resume", "latest", "--force")[0] == 0


def test_tasks_that_ctrl_c_ended_are_called_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "flow.toml"
    path.write_text("".join(f'[[task]]\nname = "t{i}"\nrun = "touch began{i}; sleep 60"\n' for i in range(2)))
    outputs = []
    for words in (["--output", "json"], []):
        for i in range(2):
            (tmp_path / f"began{i}").unlink(missing_ok=True)
        command = [sys.executable, "-m", "stretto.cli.main", "run", str(path), "-c", "cpu:2", *words]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        deadline = time.monotonic() + 120
        while not all((tmp_path / f"began{i}").exists() for i in range(2)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGINT)
        outputs.append(child.communicate(timeout=60)[0])
        assert child.returncode == 130
    found = json.loads(outputs[0])
    assert (found["failures"], sorted(found["cancelled"])) == ([], ["t0", "t1"])
    assert (found["num_failed_attempts"], found["num_cancelled"]) == (0, 2)
    assert "failed" not in outputs[1]
    assert "cancelled" in outputs[1]
