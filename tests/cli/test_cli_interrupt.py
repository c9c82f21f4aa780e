"""Ctrl-C, typed into a real terminal: a clear line, exit code 130, and what was found until then."""

from __future__ import annotations

import os
import pty
import select
import signal
import time

import pytest

#: For a machine that is busy with other things; nothing is judged by time here.
PATIENCE_S = 120.0


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, command: list[str], *words: str) -> None:
        environment = os.environ | {"COLUMNS": "100", "TERM": "xterm"}
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], [*command, *words], environment)

    def wait_for(self, word: bytes) -> None:
        """Read until a word appears."""
        end = time.monotonic() + PATIENCE_S
        while word not in self.seen:
            assert time.monotonic() < end, self.seen
            assert self._read(), f"ended before it said {word!r}: {self.seen!r}"

    def press_ctrl_c(self) -> None:
        """Type it; the terminal turns it into a signal."""
        self.seen = b""
        os.write(self.fd, b"\x03")

    def finish(self) -> tuple[int, str]:
        """Read to the end, and return the exit code and the text."""
        end = time.monotonic() + PATIENCE_S
        while self._read():
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self.seen.decode()

    def _read(self) -> bool:
        ready, _, _ = select.select([self.fd], [], [], 1.0)
        if not ready:
            return True
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            return False
        self.seen += chunk
        return bool(chunk)


LONG_TRACE = "trace:lublin?num_jobs=60000&num_procs=256&load=1.0"
CASES = {
    "compare": (
        ("compare", "workload:fft", "-c", "cpu:4", "--policies", "heft,annealing,tabu", "--time-limit", "600"),
        b"heft",  # the news of the first row
        ("heft", "annealing", "stretto: interrupted: 2 of 3 runs are in the result"),
    ),
    "compare trace": (
        ("compare", LONG_TRACE, "--strategies", "fcfs,portfolio", "--windows", "4", "--window-size", "50000"),
        b"fcfs: bounded slowdown",
        ("fcfs", "stretto: interrupted: 1 of 8 replays are in the result"),
    ),
    "replay": (("replay", LONG_TRACE, "--strategy", "portfolio"), b"replaying", ("stretto: interrupted",)),
    "bound": (
        ("bound", "workload:fft", "-c", "cpu:3,gpu:1", "--exact", "--time-limit", "600"),
        b"bounding",
        ("critical-path", "stretto: interrupted: these are the quick bounds"),
    ),
    "demo": (
        ("demo", "--out", "OUT", "--time-limit", "600", "--train-seconds", "600"),
        b"heft",
        ("Gap to the lower bound", "stretto: interrupted: the tables hold what was finished until then"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_keeps_what_was_found(
    case: str, command: list[str], tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, sign, expected = CASES[case]
    terminal = Terminal(command, *words)
    terminal.wait_for(sign)
    terminal.press_ctrl_c()
    code, text = terminal.finish()
    assert code == 130, text
    assert "Traceback" not in text
    for word in expected:
        assert word in text
