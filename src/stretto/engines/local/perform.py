"""Do what one task does: call, run a command, or pass time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from stretto.core.host.child_python import outer_environment
from stretto.engines.command_output import num_left_out
from stretto.engines.completion_log import CompletionTicket
from stretto.engines.driver.events import Blame
from stretto.engines.local.guarded_command import END, CommandReport, CommandRequest, receive
from stretto.engines.local.process_guard import ProcessGuard
from stretto.engines.work import Action, Call, Command, timed_output

#: Longer sleeps can be interrupted; shorter ones are more exact without.
_EXACT_SLEEP_S = 0.05
_STDERR_TAIL = 400
#: How often a running command's thread looks whether the run is to stop.
_LOOK_MS = 100


class TaskError(Exception):
    """A task failed, with the blame and the reason."""

    def __init__(self, blame: Blame, reason: str) -> None:
        super().__init__(reason)
        self.blame: Blame = blame
        self.reason = reason


def patience_s(action: Action) -> float | None:
    """Return the time limit that the engine enforces; commands are ended by the process guard."""
    return None if isinstance(action, Command) else action.timeout_s


def perform(
    action: Action,
    task: int,
    inputs: Sequence[object],
    seconds: float,
    stop: threading.Event,
    end: CompletionTicket | None = None,
    memory_bytes: int | None = None,
) -> object:
    """Return the output of a task; raise TaskError when it fails or is stopped.

    Parameters
    ----------
    seconds
        What a timed task takes, scale included.
    stop
        Set by whoever wants commands and long sleeps to end now.
    end
        How the process guard logs the end of a command; None leaves that to the caller.
    memory_bytes
        What a command may take at most; None for no limit.
    """
    if isinstance(action, Call):
        return _call(action, inputs)
    if isinstance(action, Command):
        return run_command(action, stop, end, memory_bytes)
    if seconds > 0:
        _pass_time(seconds, action.mode, stop)
    return timed_output(task, inputs)


def _call(action: Call, inputs: Sequence[object]) -> object:
    num_missing = max(map(num_left_out, inputs), default=0)
    if num_missing:
        raise TaskError(
            "task",
            f"its input, the standard output of a command, was cut by {num_missing:,} bytes: raise the command's"
            " max_stdout_bytes, or let it write a file",
        )
    try:
        return action.function(*inputs, *action.args)
    except TaskError:
        raise
    except MemoryError as error:
        raise TaskError("memory", f"MemoryError: {error}") from error
    except Exception as error:  # a task may fail in any way
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


def run_command(
    command: Command, stop: threading.Event, end: CompletionTicket | None = None, memory_bytes: int | None = None
) -> bytes:
    """Return the stdout of a command; raise TaskError for a bad exit code, a timeout, a missing file."""
    _need_files(command, command.reads, "reads")
    env = {**outer_environment(), **command.env}
    try:
        _need_program(command.argv[0], command.cwd, env)
        control = ProcessGuard.begin(_request(command, env, end, memory_bytes))
    except OSError as error:
        raise TaskError("task", f"{command.argv[0]!r} cannot be started: {error}") from error
    with control:
        report, out, err = _await(control, stop)
    if "error" in report:
        raise TaskError("task", f"{command.argv[0]!r} cannot be started: {report['error']}")
    if report["why"] == "timeout":
        raise TaskError("timeout", f"took longer than {command.timeout_s:g} s")
    if report["why"]:
        raise TaskError("cancelled", "the run was stopped")
    code = report["code"]
    if code != 0:
        tail = err.decode(errors="replace").strip()[-_STDERR_TAIL:]
        how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        raise TaskError("task", f"{how}: {tail}" if tail else how)
    _need_files(command, command.writes, "should have written")
    return out


def _request(
    command: Command, env: dict[str, str], end: CompletionTicket | None, memory_bytes: int | None
) -> CommandRequest:
    """Return what the process guard is told of a command."""
    cwd = os.path.abspath(command.cwd or ".")
    return {
        "argv": list(command.argv),
        "cwd": cwd,
        "env": env,
        "writes": [os.path.join(cwd, name) for name in command.writes],
        "timeout_s": command.timeout_s,
        "max_stdout_bytes": command.max_stdout_bytes,
        "cores": sorted(os.sched_getaffinity(0)),  # of this thread, which may be pinned
        "memory_bytes": memory_bytes,
        "end": None
        if end is None
        else {
            "path": end.path,
            "task": end.task,
            "fields": dict(end.fields),
            "zero_s": end.zero_s,
            "wants_digest": end.wants_digest,
            "output": end.output,
        },
    }


def _await(control: socket.socket, stop: threading.Event) -> tuple[CommandReport, bytes, bytes]:
    """Return how a command ended, its stdout and its stderr; end it when the run stops."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    is_told = False
    while not poll.poll(_LOOK_MS):
        if stop.is_set() and not is_told:
            with contextlib.suppress(ConnectionError):
                control.send(END)
            is_told = True
    found = [receive(control) for _ in range(3)]
    if None in found:
        raise TaskError("worker", "the process guard of its command died")
    report, out, err = (message or b"" for message in found)
    return json.loads(report), out, err


def missing_files(command: Command, names: Sequence[str]) -> list[str]:
    """Return those of a command's files that do not exist."""
    return [name for name in names if not (Path(command.cwd or ".") / name).exists()]


def _need_files(command: Command, names: Sequence[str], what: str) -> None:
    missing = missing_files(command, names)
    if missing:
        raise TaskError("task", f"{what} {missing[0]!r}, which does not exist")


def _need_program(name: str, cwd: str | None, env: Mapping[str, str]) -> None:
    if os.path.dirname(name):
        found = shutil.which(os.path.join(os.path.abspath(cwd or "."), name))
        if found is None:
            raise FileNotFoundError("no such file, or it is not executable")
    elif shutil.which(name, path=env.get("PATH", os.defpath)) is None:
        raise FileNotFoundError("no such program on the PATH")
