"""What only a process of its own shows: imports, pipes, terminals, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

from .conftest import CLUSTER, Run


def _loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_import_stretto_loads_nothing_heavy() -> None:
    loaded = _loaded_after("import stretto")
    assert not loaded & {"numba", "jax", "scipy", "ortools", "matplotlib", "rich", "typer", "dask", "onnx"}
    assert not [name for name in loaded if name.startswith("stretto.api.")]  # stretto.api itself is a table of names


def test_the_command_line_parses_before_it_loads_anything_heavy() -> None:
    loaded = _loaded_after("import stretto.cli.app")
    assert not loaded & {"numba", "jax", "scipy", "ortools", "matplotlib", "numpy", "rich"}


def test_planning_loads_neither_jax_nor_matplotlib(diamond: Path) -> None:
    words = ["plan", str(diamond), "-c", CLUSTER]
    loaded = _loaded_after(f"from stretto.cli.main import main; main({words!r})")
    assert not loaded & {"jax", "matplotlib", "dask", "onnx", "torch"}


def test_a_plan_from_the_shell(run_process: Run, diamond: Path) -> None:
    ran = run_process("plan", diamond, "-c", CLUSTER, "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert ran.json["policy"] == "heft"


def test_no_colours_into_a_pipe(run_process: Run) -> None:
    ran = run_process("show", "cpu:4")
    assert ran.code == 0
    assert "\x1b" not in ran.out


def test_an_error_from_the_shell(run_process: Run, tmp_path: Path) -> None:
    run_process("plan", tmp_path / "none.json", "-c", CLUSTER).assert_refused("none.json")


def test_a_reader_that_goes_away_is_no_error_message(command: list[str]) -> None:
    process = subprocess.Popen([*command, "list", "workloads"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141


def test_ctrl_c_during_a_search_prints_the_best_plan_so_far(command: list[str]) -> None:
    master, slave = pty.openpty()  # progress goes to a terminal only, and tells when the search runs
    process = subprocess.Popen(
        [
            *(*command, "plan", "workload:random-dag?num_tasks=60", "-c", "cpu:4x1.0,gpu:1x3.0"),
            *("--policy", "annealing", "--time-limit", "120", "--output", "json"),
        ],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | {"COLUMNS": "100", "TERM": "xterm"},
    )
    os.close(slave)
    _wait_for(master, b"evaluations", seconds=90)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    message = _drain(master)
    assert process.returncode == 130
    assert json.loads(out)["num_tasks"] == 60
    assert "stretto: interrupted: this is the best plan found until then" in message


def _wait_for(terminal: int, word: bytes, *, seconds: float) -> None:
    seen, begin = b"", time.monotonic()
    while word not in seen:
        assert time.monotonic() - begin < seconds, seen
        seen += os.read(terminal, 4096)


def _drain(terminal: int) -> str:
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:  # Linux says EIO when the other side is closed
        pass
    os.close(terminal)
    return seen.decode()
