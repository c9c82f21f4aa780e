"""``stretto run`` and ``stretto engines``: on record, resumable after Ctrl-C and after a kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main
from stretto.engines.completion_log import await_writers, completion_log_path, read_completions
from stretto.runlog import RunLog

WORKFLOW = """
name = "sums"

[[task]]
name = "make"
run = "echo make >> log; seq 10 > numbers"
writes = ["numbers"]

[[task]]
name = "add"
argv = ["awk", "{ s += $1 } END { print s }", "numbers"]
reads = ["numbers"]

[[task]]
name = "count"
run = "echo count >> log; echo $WORD; wc -l < numbers"
reads = ["numbers"]
env = { WORD = "lines" }

[[task]]
name = "end"
run = "echo end >> log"
after = ["add", "count"]
seconds = 0.5
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    path = tmp_path / "sums.toml"
    path.write_text(WORKFLOW)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    code, out, err = run(capsys, "run", *words, "--output", "json")
    assert code == 0, err
    return json.loads(out)


def test_a_workflow_of_commands_runs_in_order_and_is_on_record(
    capsys: pytest.CaptureFixture[str], workflow: Path
) -> None:
    found = run_json(capsys, workflow, "-c", "cpu:2")
    assert found["status"] == "done"
    assert not found["is_timed"]
    assert found["attempts"] == [1, 1, 1, 1]
    assert found["device"] == found["planned_device"]
    assert (workflow.parent / "log").read_text().split() == ["make", "count", "end"]
    with RunLog.open() as log:
        info = log.run(found["run_id"])
        assert info.status == "done"
        assert info.summary["num_done_now"] == 4
        ends = log.events(info.id, kinds=["task-finished"])
        assert ends[0].subject == "make"
        assert {event.subject for event in ends} == {"make", "add", "count", "end"}
        assert len(log.events(info.id, kinds=["task-started"])) == 4


def test_a_failed_run_goes_on_where_it_stopped(capsys: pytest.CaptureFixture[str], workflow: Path) -> None:
    workflow.write_text(WORKFLOW.replace("echo end >> log", "test -e permission && echo end >> log"))
    code, out, err = run(capsys, "run", workflow, "-c", "cpu:1", "--attempts", "2", "--output", "json")
    assert code == 3
    found = json.loads(out)
    assert found["status"] == "failed"
    assert [(f["task"], f["blame"], f["attempt"]) for f in found["failures"]] == [
        ("end", "task", 1),
        ("end", "task", 2),
    ]
    assert f"--resume {found['run_id']}" in err
    (workflow.parent / "permission").touch()
    again = run_json(capsys, "--resume", found["run_id"])
    assert again["run_id"] == found["run_id"]
    assert (again["num_done_before"], again["num_done_now"]) == (3, 1)
    assert (workflow.parent / "log").read_text().split() == ["make", "count", "end"]


def test_a_task_whose_files_are_gone_runs_again(capsys: pytest.CaptureFixture[str], workflow: Path) -> None:
    found = run_json(capsys, workflow, "-c", "cpu:1")
    (workflow.parent / "numbers").unlink()
    again = run_json(capsys, "--resume", "latest")
    assert again["run_id"] == found["run_id"]
    assert again["attempts"] == [1, 0, 0, 0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_is_resumed_without_repeating_anything(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, number: signal.Signals
) -> None:
    # The later tasks wait for a file, so that the run cannot end before it is stopped.
    wait = "until [ -e go ]; do sleep 0.02; done"
    tasks = "".join(
        f'[[task]]\nname = "t{i}"\nrun = "echo t{i} >> log; {"sleep 0.02" if i < 12 else wait}"\n'
        + (f'after = ["t{i - 2}"]\n' * (i > 1))
        for i in range(40)
    )
    path = tmp_path / "many.toml"
    path.write_text(tasks)
    words = [sys.executable, "-m", "stretto.cli.main", "run", str(path), "-c", "cpu:2", "--output", "json"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    log_file = tmp_path / "home" / "runs.db"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if log_file.exists():
            with RunLog.open() as log:
                runs = log.runs()
                if runs and len(log.events(runs[0].id, kinds=["task-finished"])) >= 8:
                    break
        time.sleep(0.02)
    os.kill(child.pid, number)
    with contextlib.suppress(subprocess.TimeoutExpired):  # the signal must be heard before the tasks may go on
        child.wait(timeout=5)
    (tmp_path / "go").touch()
    out, _ = child.communicate(timeout=60)
    if number == signal.SIGINT:
        assert child.returncode == 130
        assert json.loads(out)["status"] == "interrupted"
    with RunLog.open() as log:
        info = log.runs()[0]
        assert info.status == "interrupted"
        before = {event.subject for event in log.events(info.id, kinds=["task-finished"])}
        book = completion_log_path(log, info.id)
        assert await_writers(book)  # of commands that ended while the run was killed
        before |= {end.task for end in read_completions(book)}
    assert 8 <= len(before) < 40
    found = run_json(capsys, "--resume", info.id)
    assert found["status"] == "done"
    assert found["num_done_before"] == len(before)
    times = Counter((tmp_path / "log").read_text().split())
    assert set(times) == {f"t{i}" for i in range(40)}
    assert all(times[name] == 1 for name in before)
    with RunLog.open() as log:
        ends = Counter(event.subject for event in log.events(info.id, kinds=["task-finished"]))
    assert set(ends.values()) == {1}
    assert len(ends) == 40


def test_a_run_can_be_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"
    run_json(capsys, "workload:fork-join?width=3", "-c", "cpu:2", "--scale", "0.0005", "--gantt", picture)
    assert "(timed)" in picture.read_text()


def test_timed_work_says_so_in_every_output(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("workload:fork-join", "-c", "cpu:2,gpu:1x3.0", "--scale", "0.0005")
    assert run_json(capsys, *words)["is_timed"] is True
    code, out, _ = run(capsys, "run", *words)
    assert code == 0
    assert "says nothing about real machines" in " ".join(out.split())
    code, out, _ = run(capsys, "run", *words, "--output", "quiet")
    assert float(out) > 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run",), "--resume"),
        (("run", "workload:fft", "-c", "cpu:2", "--engine", "locl"), "local"),
        (("run", "workload:fft", "-c", "cpu:2", "-e", "workerz=2"), "workerz"),
        (("run", "workload:fft", "-c", "cpu:2", "-e", "workers=fiber"), "fiber"),
        (("run", "workload:fft", "-c", "cpu:2", "--scale", "-1"), "--scale"),
        (("run", "workload:fft", "-c", "cpu:2", "--attempts", "0"), "--attempts"),
        (("run", "--resume", "never-was"), "never-was"),
        (("run", "kernels:tiled-matmul?tile=0", "-c", "cpu:2"), "tile"),
        (("run", "kernels:tiled-matmul?tyle=4", "-c", "cpu:2"), "tyle"),
        (("run", "kernels:tilted", "-c", "cpu:2"), "tiled-matmul"),
        (("train", "doppler", "workload:fft", "-c", "cpu:2", "--engine", "local"), "kernels:"),
    ],
)
def test_wrong_requests_are_refused_with_a_hint(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
) -> None:
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert hint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[[task]]\nname = 'a'\n", "run"),
        ("[[task]]\nname = 'a'\nrun = 'true'\nargv = ['true']\n", "either"),
        ("[[task]]\nname = 'a'\nrun = 'true'\nreeds = ['x']\n", "reeds"),
        ("[[task]]\nname = 'a'\nrun = 'true'\nafter = ['b']\n", "'b'"),
        ("[[task]]\nname = 'a'\nrun = 'true'\n[[task]]\nname = 'a'\nrun = 'true'\n", "same name"),
        ("[[task]]\nname = 'a'\nrun = 'true'\nseconds = -1\n", "seconds"),
        ("[[task]]\nname = 'a'\nargv = 'true'\n", "argv"),
        ("[[task]]\nname = 'a'\nrun = 'true'\nafter = ['a']\n", "itself"),
        ("[[task]]\nrun = 'true'\n", "name"),
        ("[[task]\n", "TOML"),
    ],
)
def test_wrong_workflows_are_refused_with_their_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, hint: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text + ("" if "[[task]]" in text else "# [[task]]"))
    code, _, err = run(capsys, "run", path, "-c", "cpu:1")
    assert code == 2
    assert hint in err
    assert "wrong.toml" in err


def test_engines_are_listed_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "engines", "--output", "json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["local"]["is_available"]
    assert all(row["is_available"] or len(row["reason"]) > 5 for row in rows.values())
    _, names, _ = run(capsys, "engines", "--output", "quiet")
    assert "local" in names.split()
    code, table, _ = run(capsys, "engines")
    assert code == 0
    assert "local" in table


def test_a_failed_run_has_no_makespan_and_its_summary_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    good, bad = '[[task]]\nname = "good"\nrun = "true"\n', '[[task]]\nname = "bad"\nrun = "echo no >&2; exit 4"\n'
    Path("flow.toml").write_text(good + bad)
    assert main(["run", "flow.toml", "-c", "cpu:1", "--attempts", "2", "--keep-going"]) == 3
    told = capsys.readouterr().out
    assert "1 of 2" in told
    assert "makespan" not in told
    with RunLog.open() as log:
        summary = log.run("latest").summary
    assert summary["failed"] == [{"task": "bad", "reason": "exit code 4: no"}]
    Path("flow.toml").write_text(good)
    assert main(["run", "flow.toml", "-c", "cpu:1"]) == 0
    assert "makespan" in capsys.readouterr().out
    with RunLog.open() as log:
        assert "failed" not in log.run("latest").summary
