"""Ctrl-C at any moment: exit code 130, or the signal itself before and after Python runs us; no traceback, no crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STRETTO = [sys.executable, "-m", "stretto.cli.main"]
#: A shell calls both 130: our own exit code, and the end by this signal while Python itself starts or ends.
INTERRUPTED = (130, -signal.SIGINT)
TRACE = "trace:lublin?num_jobs=30000&num_procs=256&load=1.0"
COMMANDS = {
    "plan lookahead": ("plan", "workload:fft", "-c", "cpu:4", "--policy", "lookahead"),
    "plan doppler": ("plan", "workload:fft", "-c", "cpu:4", "--policy", "doppler", "--time-limit", "30"),
    "plan annealing": ("plan", "workload:fft", "-c", "cpu:4", "--policy", "annealing", "--time-limit", "30"),
    "compare": ("compare", "workload:fft", "-c", "cpu:4", "--policies", "heft,tabu", "--time-limit", "30"),
    "train doppler": ("train", "doppler", "workload:fft", "-c", "gpu:4", "--budget", "30s", "--no-log"),
    "train symphony": ("train", "symphony", "two-nics", "--budget", "30s", "--no-log"),
    "train mars": ("train", "mars", "trace:lublin?num_jobs=2000&num_procs=64", "--budget", "30s", "--no-log"),
    "replay": ("replay", TRACE, "--strategy", "portfolio"),
    "rack": ("rack", "two-nics", "--pace", "0.01", "--no-log"),
    "run": ("run", "workload:montage", "-c", "cpu:2", "--scale", "1"),
    "serve": ("serve", "--port", "0", "--workers", "1"),
    "help": ("--help",),
    "list": ("list", "policies"),
    "doctor": ("doctor",),
}
#: Commands that are over before some of the moments, and the one for which Ctrl-C is the usual end.
SHORT = ("help", "list", "doctor", "plan lookahead", "serve")


def _interrupted_after(words: tuple[str, ...], moment_s: float, home: Path) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [*STRETTO, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"STRETTO_HOME": str(home)},
    )
    time.sleep(moment_s)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


def _check(name: str, moment_s: float, home: Path) -> None:
    code, _, err = _interrupted_after(COMMANDS[name], moment_s, home)
    told = f"{name} at {moment_s} s: exit code {code}\n{err}"
    if "Traceback" in err and "in main\n" not in err and "in <module>\n    sys.exit(main())" not in err:
        return  # Python itself was still starting: the first line of main had not run
    assert "Traceback" not in err, told
    if code == 0:
        assert name in SHORT or moment_s < 0.1, told  # over already, or lost while Python started
        return
    assert code in INTERRUPTED, told
    if code == 130:
        assert err.count("stretto: interrupted") == 1 or "stopped" in err or name == "serve", told


#: Presses Ctrl-C the moment that a module is looked for.
_WHILE_IMPORTING = """
import os, signal, sys, time
from stretto.cli.main import main

class Presser:
    @staticmethod
    def find_spec(name, *rest):
        if name == target:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

target = sys.argv[1]
assert "typer" not in sys.modules
sys.meta_path.insert(0, Presser)
sys.argv[:2] = ["stretto"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "stretto.cli.commands.plan", "numpy", "numba"])
def test_ctrl_c_during_an_import_is_one_line(module: str) -> None:
    words = [sys.executable, "-c", _WHILE_IMPORTING, module, "plan", "workload:fft", "-c", "cpu:2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (130, "stretto: interrupted\n")


@pytest.mark.parametrize(
    ("name", "moment_s"),
    [("help", 0.12), ("plan lookahead", 0.4), ("plan doppler", 1.0), ("train doppler", 0.25), ("compare", 0.7)],
)
def test_ctrl_c_early_ends_with_130_and_one_line(name: str, moment_s: float, tmp_path: Path) -> None:
    _check(name, moment_s, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("moment_s", [0.02, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 7.0])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_at_many_moments_ends_with_130_and_one_line(name: str, moment_s: float, tmp_path: Path) -> None:
    _check(name, moment_s, tmp_path)


def _wait_for_file(path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.01)


#: What the compilers of jax and numba do: they call Python from compiled code and do not expect an exception there.
_IN_A_COMPILER = """
import importlib, pathlib, sys, time, types
from stretto.cli import app, main
from stretto.cli.interrupt import Interrupt

fragile = types.ModuleType("numba.pretended")
exec('''
def work(path, seconds):
    path.touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)
''', fragile.__dict__ | {"time": time}, fragile.__dict__)
fragile.__dict__.update(time=time)

@app.app.command("compile")
def compile(path: pathlib.Path, seconds: float, keeps: bool = False) -> None:
    if not keeps:
        fragile.work(path, seconds)
        print("compiled", flush=True)
        time.sleep(60)
    else:
        with Interrupt() as interrupt:
            try:
                fragile.work(path, seconds)
                time.sleep(60)
            except KeyboardInterrupt:
                print("kept", flush=True)
        raise __import__("typer").Exit(130)

sys.exit(main.main())
"""


def _start_compiling(path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _IN_A_COMPILER, "compile", str(path), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_no_exception_is_raised_inside_a_compiler_and_the_result_is_kept(tmp_path: Path) -> None:
    process = _start_compiling(tmp_path / "begun", "2", "--keeps")
    _wait_for_file(tmp_path / "begun", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "kept\n"), err
    assert "press Ctrl-C again to leave at once" in err


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    process = _start_compiling(tmp_path / "begun", "600", "--keeps")
    _wait_for_file(tmp_path / "begun", process)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.endswith("stretto: interrupted\n")


def test_without_a_result_the_first_ctrl_c_does_not_wait_for_a_compiler(tmp_path: Path) -> None:
    process = _start_compiling(tmp_path / "begun", "600")
    _wait_for_file(tmp_path / "begun", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "stretto: interrupted\n")


@pytest.mark.long
def test_doppler_keeps_its_best_plan_while_it_compiles(tmp_path: Path) -> None:
    words = (*COMMANDS["plan doppler"], "--output", "json")
    for moment_s in (3.0, 5.0, 8.0, 12.0):
        code, out, err = _interrupted_after(words, moment_s, tmp_path)
        assert code == 130, err
        if out:
            assert json.loads(out)["num_tasks"] > 1
            assert "this is the best plan found until then" in err
