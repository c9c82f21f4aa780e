"""Commands under the process guard: what they are given, what is kept of them, and what a kill leaves of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from processes import is_running
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.engines.command_output import BoundedOutput, num_left_out, read_bounded
from stretto.engines.completion_log import digest_of_bytes, encoded_bytes
from stretto.engines.engine import RunOptions
from stretto.engines.local import processes
from stretto.engines.local.engine import LocalEngine
from stretto.engines.local.perform import TaskError, perform, run_command
from stretto.engines.local.process_guard import ProcessGuard
from stretto.engines.outputs import digest, encode
from stretto.engines.work import Call, Command, Work


def run(command: Command) -> bytes:
    return run_command(command, threading.Event())


def until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip() != "", f"nobody wrote {path.name}")
    return int(path.read_text())


def test_a_command_has_its_words_its_variables_and_an_empty_input() -> None:
    words = ("/bin/sh", "-c", 'printf "%s|" "$@" "$WORD"; cat', "name", "a b", "*", "")
    assert run(Command(words, env={"WORD": "$HOME"})) == b"a b|*||$HOME|"


def test_variables_that_a_shell_would_drop_are_handed_on() -> None:
    lines = run(Command(("env",), env={"BASH_FUNC_hello%%": "() { echo 'a b'; }", "two-words": ""}))
    assert {"BASH_FUNC_hello%%=() { echo 'a b'; }", "two-words="} <= set(lines.decode().splitlines())


def test_a_command_stays_on_the_cores_of_its_thread() -> None:
    core = min(os.sched_getaffinity(0))
    found: list[bytes] = []

    def pinned() -> None:
        os.sched_setaffinity(0, {core})
        found.append(run(Command(("grep", "Cpus_allowed_list", "/proc/self/status"))))

    thread = threading.Thread(target=pinned)
    thread.start()
    thread.join()
    assert found[0].split()[-1] == str(core).encode()


@pytest.mark.parametrize("name", ["no-such-program-here", "./no-such-file", "./plain"])
def test_a_program_that_is_not_there_or_not_executable_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").write_text("true\n")
    with pytest.raises(TaskError, match="cannot be started: no such"):
        run(Command((name,), cwd=str(tmp_path)))


def test_programs_are_looked_for_where_the_command_will_run(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    on_path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name, env in (("./program", {}), ("program", on_path)):
        assert run(Command((name,), cwd=str(tmp_path), env=env)).decode().strip() == str(tmp_path)


def test_a_guard_that_was_killed_is_replaced() -> None:
    assert run(Command(("echo", "one"))) == b"one\n"
    assert ProcessGuard._process is not None
    ProcessGuard._process.kill()
    ProcessGuard._process.wait()
    assert run(Command(("echo", "two"))) == b"two\n"


def test_a_time_limit_ends_all_that_a_command_has_started(tmp_path: Path) -> None:
    background = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' >/dev/null 2>&1 &"
    with pytest.raises(TaskError, match="took longer"):
        run(Command.shell(f"{background} sleep 600", timeout_s=1.0))
    pid = pid_in(tmp_path / "pid")
    until(lambda: not is_running(pid), "a background process outlived the time limit")


def test_of_much_output_the_beginning_and_the_end_are_kept_and_the_gap_is_told() -> None:
    text = run(Command.shell("echo first; yes | head -c 30000000; echo last"))
    assert len(text) <= 1 << 20
    assert text.startswith(b"first\n")
    assert text.endswith(b"last\n")
    missing = num_left_out(text)
    assert 28_000_000 < missing < 30_000_000
    assert f"[stretto: {missing} of 30000011 bytes".encode() in text
    with pytest.raises(TaskError, match=f"cut by {missing:,} bytes"):
        perform(Call(len), 0, [text], 0.0, threading.Event())


def test_more_is_kept_where_it_is_asked_for() -> None:
    command = Command.shell("yes | head -c 3000000", max_stdout_bytes=4_000_000)
    assert run(command) == b"y\n" * 1_500_000


@pytest.mark.parametrize("seed", range(20))
def test_kept_outputs_are_whole_or_say_exactly_what_they_lack(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, int(rng.integers(0, 5000)), dtype=np.uint8).tobytes()
    limit = int(rng.integers(200, 3000))
    kept, at = BoundedOutput(limit), 0
    while at < len(data):
        step = int(rng.integers(1, 700))
        kept.add(data[at : at + step])
        at += step
    value = kept.value()
    missing = num_left_out(value)
    assert (value == data) == (len(data) <= limit)
    assert len(value) <= limit
    if len(data) > limit:
        half = (limit - 128) // 2
        assert missing == len(data) - 2 * half
        assert (value[:half], value[-half:]) == (data[:half], data[-half:])
    assert num_left_out(b"x" + value) == 0
    (tmp_path / "file").write_bytes(data)
    assert read_bounded(tmp_path / "file", limit) == value, "a file of Slurm is kept alike"


@pytest.mark.parametrize("value", [b"", b"x", bytes(range(256)) * 100])
def test_the_guard_writes_outputs_as_everybody_else_does(value: bytes) -> None:
    assert encoded_bytes(value) == encode(value)
    assert digest_of_bytes(value) == digest(value)


_STDOUT = """
import resource, sys, threading
from stretto.engines.local.perform import run_command
from stretto.engines.work import Command
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run_command(Command.shell("head -c 200000000 /dev/zero"), threading.Event())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_much_output_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", _STDOUT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60_000, f"{done.stdout} KiB for 200 MB"


_OWNER = """
import sys, threading
from stretto.engines.local.perform import run_command
from stretto.engines.work import Command
run_command(Command.shell(sys.argv[1]), threading.Event())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_background_processes_of_a_killed_run_are_ended(tmp_path: Path, number: signal.Signals) -> None:
    """In the background, in sessions of their own, and without a parent."""
    note = "echo $$ > {0}/new-{1}; mv {0}/new-{1} {0}/{1}; exec sleep 600"
    plain = "sh -c '" + note.format(tmp_path, "background") + "' &"
    session = "setsid sh -c '" + note.format(tmp_path, "session") + "' >/dev/null 2>&1 &"
    orphan = "(setsid sh -c '" + note.format(tmp_path, "orphan") + "' >/dev/null 2>&1 &)"
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, f"{plain} {session} {orphan}; sleep 600"])
    try:
        pids = [pid_in(tmp_path / name) for name in ("background", "session", "orphan")]
    finally:
        os.kill(owner.pid, number)
        owner.wait()
    until(lambda: not any(is_running(pid) for pid in pids), "a background process outlived its run")


def test_what_a_command_leaves_behind_on_purpose_outlives_a_run_that_ends_well(tmp_path: Path) -> None:
    service = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' >/dev/null 2>&1 &"
    wait = f"until [ -s {tmp_path}/pid ]; do sleep 0.02; done"
    subprocess.run([sys.executable, "-c", _OWNER, f"{service} {wait}"], check=True)
    pid = pid_in(tmp_path / "pid")
    time.sleep(0.5)
    try:
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_worker_that_is_stopped_does_not_hold_a_run_with_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_SILENCE_S", 1.0)
    flag = tmp_path / "tried"
    stop = f"test -e {flag} || {{ touch {flag}; kill -STOP $(cat {tmp_path}/worker); sleep 600; }}; echo done"
    work = Work(
        TaskGraph.from_edges([1.0, 1.0], [0], [1]),
        (Call(lambda: (tmp_path / "worker").write_text(str(os.getpid()))), Command.shell(stop, timeout_s=0.5)),
    )
    plan = Plan(np.array([0, 0], dtype=np.int32), np.array([0, 1], dtype=np.int32))
    result = LocalEngine(workers="process").run(work, plan, Cluster.parse("cpu:1"), RunOptions(keep="all"))
    assert result.status == "done"
    assert [failure.blame for failure in result.failures] == ["timeout"]
    assert "it may have been stopped" in result.failures[0].reason
    assert result.outputs[1] == b"done\n"
