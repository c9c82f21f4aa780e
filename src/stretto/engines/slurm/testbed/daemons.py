"""Processes that put themselves in the background: known by pid files, ended by pid, never by name."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_PROC = Path("/proc")


def pid_in(path: Path, program: str) -> int | None:
    """Return the process of a pid file, or None where it has gone or its number belongs to another program."""
    try:
        pid = int(path.read_text().strip())
    except (OSError, ValueError):
        return None
    return pid if pid > 1 and is_program(pid, program) else None


def is_program(pid: int, program: str) -> bool:
    """Say whether a process is alive and runs this program."""
    try:
        name = (_PROC / str(pid) / "comm").read_text().strip()
        state = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return name == program[:15] and state != "Z"  # the kernel keeps 15 letters


def job_processes(conf: Path) -> Iterator[int]:
    """Find the job steps and jobs of one Slurm: their environment names its configuration and a job.

    A shell in which somebody merely exported ``SLURM_CONF`` is none of them.
    """
    ours = f"SLURM_CONF={conf}".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            settings = (entry / "environ").read_bytes().split(b"\0")
            is_job = any(setting.startswith(b"SLURM_JOB_ID=") for setting in settings)
            if ours in settings and (is_job or is_program(int(entry.name), "slurmstepd")):
                yield int(entry.name)


def end(pids: Iterable[int], *, patience_s: float) -> list[int]:
    """Ask processes to end, insist when they do not, and return those that are still there."""
    wanted = list(pids)
    _send(wanted, signal.SIGTERM)
    left = _wait(wanted, patience_s)
    _send(left, signal.SIGKILL)
    return _wait(left, 5.0)


def wait_until(is_true: Callable[[], bool], *, timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait for something to become true; say whether it did."""
    deadline = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _wait(pids: list[int], timeout_s: float) -> list[int]:
    wait_until(lambda: not any(_is_alive(pid) for pid in pids), timeout_s=timeout_s if pids else 0.0)
    return [pid for pid in pids if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError, PermissionError):
        os.waitpid(pid, os.WNOHANG)  # where it is a child of ours, let it be buried
    try:
        state = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"
