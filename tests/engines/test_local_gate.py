"""Commands behind a gate: they begin when told to, and not at all when their owner dies first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import is_running
from stretto.engines.local.gate import open_gate, start_gated

_OWNER = """
import os, sys, time
from stretto.engines.local.gate import start_gated
child = start_gated(("touch", sys.argv[1]), None, os.environ)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_command_whose_owner_is_killed_before_it_was_told_to_begin_never_does(tmp_path: Path) -> None:
    made = tmp_path / "made"
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, str(made)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    gate = int(owner.stdout.readline())
    assert Path(f"/proc/{gate}").exists()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    deadline = time.monotonic() + 60.0
    while is_running(gate):
        assert time.monotonic() < deadline, "the gate outlived its owner"
        time.sleep(0.01)
    assert not made.exists()


def test_a_command_has_its_words_its_variables_and_an_empty_input() -> None:
    words = ("/bin/sh", "-c", 'printf "%s|" "$@" "$WORD"; cat; exit 7', "name", "a b", "*", "")
    child = start_gated(words, None, {**os.environ, "WORD": "$HOME"})
    open_gate(child)
    out, _ = child.communicate(timeout=60)
    assert (out, child.returncode) == (b"a b|*||$HOME|", 7)


def test_variables_that_a_shell_would_drop_are_handed_on() -> None:
    child = start_gated(("env",), None, {**os.environ, "BASH_FUNC_hello%%": "() { echo 'a b'; }", "two-words": ""})
    open_gate(child)
    lines = child.communicate(timeout=60)[0].decode().splitlines()
    assert {"BASH_FUNC_hello%%=() { echo 'a b'; }", "two-words="} <= set(lines)


def test_a_command_may_be_ended_at_the_gate() -> None:
    child = start_gated(("true",), None, os.environ)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    open_gate(child)
    assert child.communicate() == (b"", b"")
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["no-such-program-here", "./no-such-file", "./plain"])
def test_a_program_that_is_not_there_or_not_executable_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").write_text("true\n")
    with pytest.raises(OSError, match="no such"):
        start_gated((name,), str(tmp_path), os.environ)


def test_programs_are_looked_for_where_the_command_will_run(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    on_path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name, env in (("./program", dict(os.environ)), ("program", on_path)):
        child = start_gated((name,), str(tmp_path), env)
        open_gate(child)
        assert child.communicate(timeout=60)[0].decode().strip() == str(tmp_path)
