"""Do what one task does: call, run a command, or pass time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.child_python import outer_environment
from stretto.engines.events import Blame
from stretto.engines.local.gate import open_gate, start_gated
from stretto.engines.local.leash import Leash
from stretto.engines.work import Action, Call, Command, timed_output

#: Longer sleeps listen to whoever wants to stop the run; shorter ones are more exact without.
_EXACT_SLEEP_S = 0.05
_STDERR_TAIL = 400


class TaskError(Exception):
    """A task that came to nothing, and who is to blame."""

    def __init__(self, blame: Blame, reason: str) -> None:
        super().__init__(reason)
        self.blame: Blame = blame
        self.reason = reason


def patience_s(action: Action) -> float | None:
    """Return after how long the engine has to give a task up; commands are ended by :func:`run_command` itself."""
    return None if isinstance(action, Command) else action.timeout_s


def perform(action: Action, task: int, inputs: Sequence[Any], seconds: float, stop: threading.Event) -> Any:
    """Return the output of a task; raise TaskError when it fails or is stopped.

    Parameters
    ----------
    seconds
        What a timed task takes, scale included.
    stop
        Set by whoever wants commands and long sleeps to end now.
    """
    if isinstance(action, Call):
        return _call(action, inputs)
    if isinstance(action, Command):
        return run_command(action, stop)
    if seconds > 0:
        _pass_time(seconds, action.mode, stop)
    return timed_output(task, inputs)


def _call(action: Call, inputs: Sequence[Any]) -> Any:
    try:
        return action.function(*inputs, *action.args)
    except TaskError:
        raise
    except MemoryError as error:
        raise TaskError("memory", f"MemoryError: {error}") from error
    except Exception as error:  # a task may fail in any way; that is its own affair
        raise TaskError("task", f"{type(error).__name__}: {error}") from error


def _pass_time(seconds: float, mode: str, stop: threading.Event) -> None:
    end = time.perf_counter() + seconds
    if mode == "spin":
        while time.perf_counter() < end:
            pass
    elif seconds < _EXACT_SLEEP_S:
        time.sleep(seconds)
    elif stop.wait(seconds):
        raise TaskError("cancelled", "the run was stopped")


def run_command(command: Command, stop: threading.Event) -> bytes:
    """Return the stdout of a command; raise TaskError for a bad exit code, a timeout, a missing file."""
    _need_files(command, command.reads, "reads")
    Leash.ready()
    try:
        child = start_gated(command.argv, command.cwd, {**outer_environment(), **command.env})
    except OSError as error:
        raise TaskError("task", f"{command.argv[0]!r} cannot be started: {error}") from error
    with Leash(child.pid):
        open_gate(child)
        out, err = _communicate(child, command, stop)
    if child.returncode != 0:
        tail = err.decode(errors="replace").strip()[-_STDERR_TAIL:]
        how = f"ended by signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        raise TaskError("task", f"{how}: {tail}" if tail else how)
    _need_files(command, command.writes, "should have written")
    return out


def _communicate(child: subprocess.Popen[bytes], command: Command, stop: threading.Event) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + command.timeout_s if command.timeout_s is not None else None
    while True:
        try:
            return child.communicate(timeout=0.1)
        except subprocess.TimeoutExpired:
            is_late = deadline is not None and time.monotonic() >= deadline
            if not (is_late or stop.is_set()):
                continue
        _end_group(child)
        child.communicate()
        if is_late:
            raise TaskError("timeout", f"took longer than {command.timeout_s:g} s")
        raise TaskError("cancelled", "the run was stopped")


def _end_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)  # the session that we made for it
    except ProcessLookupError:
        child.kill()


def missing_files(command: Command, names: Sequence[str]) -> list[str]:
    """Return those of a command's files that do not exist."""
    return [name for name in names if not (Path(command.cwd or ".") / name).exists()]


def _need_files(command: Command, names: Sequence[str], what: str) -> None:
    missing = missing_files(command, names)
    if missing:
        raise TaskError("task", f"{what} {missing[0]!r}, which does not exist")
