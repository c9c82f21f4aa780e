"""Small files to feed the command line with, and two ways to run it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main

CLUSTER = "cpu:2x1.0,gpu:1x4.0@1GB/s"
DIAMOND = {
    "format": "stretto-graph",
    "version": 1,
    "name": "diamond",
    "work_s": [1.0, 2.0, 3.0, 1.0],
    "object_task": [0, 0, 1, 2],
    "object_size": [1e8, 1e8, 2e8, 0.0],
    "read_task": [1, 2, 3, 3],
    "read_object": [0, 1, 2, 3],
    "task_names": ["split", "left", "right", "join"],
}


@dataclass(frozen=True)
class Ran:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; anything before or after it is an error."""
        return json.loads(self.out)

    def assert_refused(self, *words: str) -> None:
        """Check for exit code 2 and one line on stderr that holds the words, and nothing else."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert self.err.startswith("stretto: error: ")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line inside this process."""

    def call(*words: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def command() -> list[str]:
    """The start of a command line for a process of its own."""
    return [sys.executable, "-m", "stretto.cli.main"]


@pytest.fixture
def run_process(command: list[str]) -> Run:
    """Run the command line in a process of its own, as a user's shell would."""

    def call(*words: str | Path, **environment: str) -> Ran:
        done = subprocess.run(
            [*command, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"COLUMNS": "80"} | environment,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call


#: What rich draws with: colours, the cursor, and the way back to the start of a line.
DRAWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AGK]|2K)|\r")


def in_terminal(command: list[str], *, columns: int, **environment: str) -> str:
    """Run a command to its good end in a terminal, and return the text without what rich draws with."""
    master, slave = pty.openpty()
    told = os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color"} | environment
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=told)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 65536):
            seen += chunk
    except OSError:  # Linux says EIO when the other side is closed
        pass
    os.close(master)
    assert process.wait() == 0, seen
    return DRAWN.sub("", seen.decode())


@pytest.fixture
def diamond(tmp_path: Path) -> Path:
    """A graph of four tasks in a file."""
    path = tmp_path / "diamond.json"
    path.write_text(json.dumps(DIAMOND))
    return path


@pytest.fixture
def variant(tmp_path: Path) -> Callable[..., Path]:
    """Write the diamond with some keys replaced."""

    def write(**changes: Any) -> Path:
        path = tmp_path / "variant.json"
        path.write_text(json.dumps(DIAMOND | changes))
        return path

    return write
