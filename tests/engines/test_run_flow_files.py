"""Workflow files in use: every command reads them, plans are run as saved, outputs are skipped, output is shown."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.cli.main import main
from stretto.engines.engine import RunOptions
from stretto.engines.workflow_file import load_workflow
from stretto.errors import InvalidInput

FLOW = """
name = "letters"
container = "env -u NOTHING"

[[task]]
name = "make"
run = "echo made >> log; printf 'b\\na\\n' > letters"
writes = ["letters"]
cores = 1
memory = "100MB"

[[task]]
name = "sort"
run = "echo sorting >&2; sort letters > sorted; cat sorted; echo sorted >> log"
reads = ["letters"]
writes = ["sorted"]
timeout = "1min"

[[task]]
name = "count"
argv = ["sh", "-c", "wc -l < letters > count; echo counted >> log"]
container = []
reads = ["letters"]
writes = ["count"]
retries = 0
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    (tmp_path / "flow").mkdir()
    path = tmp_path / "flow" / "letters.toml"
    path.write_text(FLOW)
    return path


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    code, out, err = call(capsys, "run", *words, "--output", "json")
    assert code == 0, err
    return json.loads(out)


def ran(flow: Path) -> list[str]:
    log = flow.parent / "log"
    words = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return words


@pytest.mark.parametrize(
    "words",
    [
        ("show", "FLOW"),
        ("plan", "FLOW", "-c", "cpu:2"),
        ("plan", "FLOW", "-c", "node:1*2c1GB"),
        ("compare", "FLOW", "-c", "cpu:2", "--policies", "heft,etf"),
        ("gantt", "FLOW", "-c", "cpu:2", "-o", "OUT.svg"),
        ("convert", "FLOW", "OUT.json"),
        ("bound", "FLOW", "-c", "cpu:2"),
    ],
)
def test_every_command_reads_a_workflow_file(
    capsys: pytest.CaptureFixture[str], flow: Path, words: tuple[str, ...]
) -> None:
    given = [word.replace("FLOW", str(flow)).replace("OUT", str(flow.parent / "out")) for word in words]
    code, out, err = call(capsys, *given)
    assert code == 0, err
    assert out
    assert ran(flow) == []
    assert ("cannot hold the commands" in err) == (words[0] == "convert")


def test_needs_limits_and_containers_of_tasks(flow: Path) -> None:
    work = load_workflow(flow)
    make, sort, count = work.actions
    assert make.argv[:3] == ("env", "-u", "NOTHING")  # type: ignore[union-attr]
    assert count.argv[0] == "sh"  # type: ignore[union-attr]
    assert sort.timeout_s == 60.0
    assert work.task_attempts == {2: 1}
    assert work.graph.cores is not None
    assert work.graph.cores.tolist() == [1.0, 0.0, 0.0]
    assert work.graph.memory_bytes is not None
    assert work.graph.memory_bytes[0] == 100e6


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("retries = -1", "retries must be"),
        ("timeout = 60", "has no unit"),
        ('timeout = "soon"', "is not a time"),
        ('timeout = "1min"\ntimeout_s = 60', "both timeout and timeout_s"),
        ("container = 'docker \"run'", "cannot be split"),
        ('memory = "much"', "is not a size"),
        ("core = 2", "unknown key 'core'; did you mean cores?"),
        ('seconds = "ten"', "'ten' is not a number"),
    ],
)
def test_a_wrong_value_names_its_task(flow: Path, line: str, message: str) -> None:
    flow.write_text(f'[[task]]\nname = "zero"\nrun = "true"\n\n[[task]]\nname = "one"\nrun = "true"\n{line}\n')
    with pytest.raises(InvalidInput, match=message) as caught:
        load_workflow(flow)
    assert str(caught.value).startswith(f"{flow}:5 [task 'one'")


def test_retries_of_a_task_override_those_of_the_run(flow: Path) -> None:
    flow.write_text(
        '[[task]]\nname = "often"\nrun = "echo x >> often; false"\nretries = 3\n'
        '[[task]]\nname = "once"\nrun = "echo x >> once; false"\nretries = 0\n'
    )
    result = stretto.run(flow, "cpu:1", options=RunOptions(max_attempts=2, keep_going=True))
    assert result.status == "failed"
    assert (flow.parent / "often").read_text().count("x") == 4
    assert (flow.parent / "once").read_text().count("x") == 1


def test_up_to_date_outputs_are_skipped_by_content(capsys: pytest.CaptureFixture[str], flow: Path) -> None:
    assert run_json(capsys, flow, "-c", "cpu:2")["num_up_to_date"] == 0
    assert ran(flow) == ["counted", "made", "sorted"]
    again = run_json(capsys, flow, "-c", "cpu:2")
    assert (again["status"], again["num_up_to_date"], again["num_done_now"]) == ("done", 3, 0)
    assert ran(flow) == []
    (flow.parent / "letters").touch()  # another date, the same content
    assert run_json(capsys, flow, "-c", "cpu:2")["num_up_to_date"] == 3
    (flow.parent / "count").write_text("changed by hand\n")
    run_json(capsys, flow, "-c", "cpu:2")
    assert ran(flow) == ["counted"]
    flow.write_text(FLOW.replace("sort letters", "sort -r letters"))
    run_json(capsys, flow, "-c", "cpu:2")
    assert ran(flow) == ["sorted"]
    assert (flow.parent / "sorted").read_text() == "b\na\n"
    flow.write_text(FLOW.replace("b\\na", "c\\nb\\na"))
    run_json(capsys, flow, "-c", "cpu:2")
    assert ran(flow) == ["counted", "made", "sorted"]
    run_json(capsys, flow, "-c", "cpu:2", "--rerun")
    assert ran(flow) == ["counted", "made", "sorted"]
    code, out, _ = call(capsys, "run", flow, "-c", "cpu:2")
    assert code == 0
    assert "0 of 3, 3 up to date" in out


def test_outputs_of_a_failed_task_are_not_up_to_date(flow: Path) -> None:
    flow.write_text('[[task]]\nname = "one"\nrun = "touch out; test -e fixed"\nwrites = ["out"]\nretries = 0\n')
    assert stretto.run(flow, "cpu:1").status == "failed"
    (flow.parent / "fixed").touch()
    assert stretto.run(flow, "cpu:1").attempts.tolist() == [1]
    assert stretto.run(flow, "cpu:1").is_finished.tolist() == [False]  # it was up to date


def test_a_saved_plan_is_run_by_itself_or_on_a_workflow(capsys: pytest.CaptureFixture[str], flow: Path) -> None:
    plan = flow.parent / "plan.json"
    assert call(capsys, "plan", flow, "-c", "cpu:3", "--policy", "single-device", "--save", plan)[0] == 0
    alone = run_json(capsys, plan)
    assert (len(alone["devices"]), set(alone["device"])) == (3, {0})
    ran(flow)
    joined = run_json(capsys, flow, "--plan", plan, "--rerun")
    assert joined["planned_device"] == alone["planned_device"]
    assert len(joined["devices"]) == 3
    assert ran(flow) == ["counted", "made", "sorted"]
    code, _, err = call(capsys, "run", flow, "--plan", plan, "--policy", "heft")
    assert code == 2
    assert "--policy" in err
    code, _, err = call(capsys, "run", flow, "--plan", flow)
    assert code == 2
    assert "is not a saved plan" in err


def wfformat(folder: Path) -> Path:
    tasks = [
        {"id": "one", "name": "one", "parents": [], "children": ["two"], "inputFiles": [], "outputFiles": ["a.txt"]},
        {"id": "two", "name": "two", "parents": ["one"], "children": [], "inputFiles": ["a.txt"], "outputFiles": []},
    ]
    runs = [
        {"id": "one", "runtimeInSeconds": 0.1, "command": {"program": "sh", "arguments": ["-c", "echo hi > a.txt"]}},
        {"id": "two", "runtimeInSeconds": 0.1, "command": {"program": "cat a.txt > b.txt\necho done", "arguments": []}},
    ]
    files = [{"id": "a.txt", "sizeInBytes": 3}]
    workflow = {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": runs, "machines": []}}
    path = folder / "recorded.wf.json"
    path.write_text(json.dumps({"name": "recorded", "schemaVersion": "1.5", "workflow": workflow}))
    return path


def test_commands_of_a_wfformat_file_run_when_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = wfformat(tmp_path)
    code, _, err = call(capsys, "run", path, "-c", "cpu:1", "--scale", "0.01")
    assert code == 0
    assert "--commands" in err
    assert not (tmp_path / "b.txt").exists()
    found = run_json(capsys, path, "-c", "cpu:1", "--commands")
    assert not found["is_timed"]
    assert (tmp_path / "b.txt").read_text() == "hi\n"
    code, out, _ = call(capsys, "logs", "latest", "two")
    assert (code, out) == (0, "done\n")
    assert call(capsys, "run", path, "-c", "cpu:1", "--commands", "--scale", "0.1")[0] == 2
    assert call(capsys, "run", "workload:fft", "-c", "cpu:1", "--commands")[0] == 2
    assert call(capsys, "run", "workload:fft", "-c", "cpu:1", "--rerun")[0] == 2


def test_logs_after_a_run(capsys: pytest.CaptureFixture[str], flow: Path) -> None:
    run_json(capsys, flow, "-c", "cpu:2")
    code, out, err = call(capsys, "logs", "latest")
    assert code == 0
    assert "==> sort, stdout <==\na\nb\n" in out
    assert "==> sort, stderr <==\nsorting\n" in out
    code, out, err = call(capsys, "logs", "latest", "sort")
    assert (code, out, err) == (0, "a\nb\n", "sorting\n")
    code, out, err = call(capsys, "logs", "latest", "sotr")
    assert code == 2
    assert "did you mean sort" in err


def test_logs_of_every_attempt_and_of_other_engines(capsys: pytest.CaptureFixture[str], flow: Path) -> None:
    flow.write_text('[[task]]\nname = "one"\nrun = "echo try; test -e there || { touch there; exit 1; }"\n')
    run_json(capsys, flow, "-c", "cpu:1", "-e", "workers=process")
    pieces = list(stretto.logs("latest", "one"))
    assert [(piece.attempt, piece.stream, piece.text) for piece in pieces] == [
        (1, "stdout", "try\n"),
        (2, "stdout", "try\n"),
    ]


def test_logs_while_a_run_goes_on(flow: Path) -> None:
    flow.write_text('[[task]]\nname = "slow"\nrun = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"\n')
    command = [sys.executable, "-m", "stretto.cli.main", "run", str(flow), "-c", "cpu:1", "--output", "quiet"]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        seen = ""
        while "first" not in seen and time.monotonic() < deadline:
            time.sleep(0.1)
            try:
                seen = "".join(piece.text for piece in stretto.logs("latest"))
            except stretto.errors.StrettoError:
                continue  # the run has not begun
        assert seen == "first\n"
        (flow.parent / "go").touch()
        assert "".join(piece.text for piece in stretto.logs("latest", "slow", follow=True)) == "first\nlast\n"
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
