"""Ctrl-C, typed into a real terminal: a clear line, exit code 130, and what was found until then."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.runlog import RunLog

#: For a machine that is busy with other things; nothing is judged by time here.
PATIENCE_S = 120.0


#: Makes standard input the terminal of a session of its own, then becomes the command. (To fork here is not
#: safe: other tests may have left threads behind.)
_IN_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, command: list[str], *words: str) -> None:
        self.seen = b""
        self.fd, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_TERMINAL, *command, *words],
            stdin=other,
            stdout=other,
            stderr=other,
            env=os.environ | {"COLUMNS": "100", "TERM": "xterm"},
        )
        os.close(other)

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
                self.process.kill()
        os.close(self.fd)
        return self.process.wait(), self.seen.decode()

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
        ("heft", "of 3 runs are in the result"),  # annealing's best plan, too, if it had begun
    ),
    "compare trace": (
        ("compare", LONG_TRACE, "--strategies", "fcfs,portfolio", "--windows", "4", "--window-size", "50000"),
        b"fcfs: bounded slowdown",
        ("fcfs", "stretto: interrupted: 1 of 8 replays are in the result"),
    ),
    "replay": (("replay", LONG_TRACE, "--strategy", "portfolio"), b"replaying", ("stretto: interrupted",)),
    "plan cp-sat": (
        (
            "plan",
            "workload:random-dag?num_tasks=120",
            "-c",
            "cpu:6,gpu:2x3.0",
            "--policy",
            "cp-sat",
            "--time-limit=600",
        ),
        b"planning",  # the solver has hardly begun, if at all
        ("makespan", "stretto: interrupted: this is the best plan found until then"),
    ),
    "rack": (
        ("rack", "two-nics", "--by", "mct-belief", "--pace", "0.01", "--no-log"),
        b"playing",
        ("two-nics by mct-belief", "decisions", "stretto: interrupted: these are the figures until then"),
    ),
    "train mars": (
        ("train", "mars", "trace:lublin?num_jobs=2000&num_procs=64", "--budget", "600s", "--no-log"),
        b"generations",  # the news of the first one
        ("mars on lublin", "generation", "stretto: interrupted: this is the best that was found until then"),
    ),
    "bound": (
        ("bound", "workload:fft", "-c", "cpu:3,gpu:1", "--exact", "--time-limit", "600"),
        b"asking the solver",
        ("critical-path", "stretto: interrupted: these are the quick bounds"),
    ),
    "demo": (
        ("demo", "--out", "OUT", "--time-limit", "600", "--train-seconds", "600"),
        b"of 15",
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
    try:
        terminal.wait_for(sign)
        terminal.press_ctrl_c()
        code, text = terminal.finish()
    except BaseException:
        terminal.process.kill()
        raise
    assert code == 130, text
    assert "Traceback" not in text
    for word in expected:
        assert word in text


def test_ctrl_c_keeps_the_choices_of_a_replay(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Choices and rewards are in the run log while mars plays, each once, and stay there."""
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    terminal = Terminal(command, "replay", LONG_TRACE, "--strategy", "mars", "--log")
    try:
        terminal.wait_for(b"replaying")
        end = time.monotonic() + PATIENCE_S
        with RunLog.open(tmp_path / "runs.db") as log:
            while not (seen := log.events(log.run("latest").id, kinds=["choice"])):
                assert time.monotonic() < end
                time.sleep(0.1)
            terminal.press_ctrl_c()
            code, text = terminal.finish()
            info = log.run("latest")
            told = log.events(info.id)
    except BaseException:
        terminal.process.kill()
        raise
    assert (code, info.status) == (130, "interrupted"), text
    assert "Traceback" not in text
    choices, rewards = ([event for event in told if event.kind == kind] for kind in ("choice", "reward"))
    assert choices[: len(seen)] == seen
    assert 0 <= len(rewards) - len(choices) <= 1  # what had arrived at the end is rewarded last
    jobs = [job for event in rewards for job in event.fields["job"]]
    assert len(set(jobs)) == len(jobs) > 0
