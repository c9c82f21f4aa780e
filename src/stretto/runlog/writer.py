"""Who writes a run, so that a dead writer's run is not taken for a live one."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal, NamedTuple

Verdict = Literal["alive", "dead", "unknown"]


class Writer(NamedTuple):
    """A process; its start tells it from a later one with the same id.

    Attributes
    ----------
    started
        In clock ticks since the machine was started, and behind them, unless an earlier version wrote this, the boot id
        of the machine and the namespace in which its process id counts.
    """

    host: str
    pid: int
    started: str

    @property
    def ticks(self) -> str:
        return (self.started.split() or [""])[0]

    @property
    def boot_id(self) -> str:
        return [*self.started.split(), "", ""][1]

    @property
    def pid_space(self) -> str:
        return [*self.started.split(), "", "", ""][2]


def this_process() -> Writer:
    """Return the process that asks."""
    pid = os.getpid()
    return Writer(socket.gethostname(), pid, f"{_started(pid)} {_boot_id()} {_pid_space()}".strip())


def is_alive(writer: Writer) -> bool:
    """Tell whether the writer still runs; one that cannot be seen from here gets the benefit of the doubt."""
    return verdict(writer) != "dead"


def verdict(writer: Writer) -> Verdict:
    """Say what is certain about a writer.

    Since the same start of the same machine the process is there or not, whatever the machine is called by now. Of an
    earlier start of the machine of this name nothing is left. All else cannot be seen from here.
    """
    here = this_process()
    is_same_name = writer.host == here.host
    if writer.boot_id and here.boot_id and writer.boot_id != here.boot_id:
        return "dead" if is_same_name else "unknown"
    is_same_space = bool(writer.boot_id) and writer.boot_id == here.boot_id and writer.pid_space == here.pid_space
    if not (is_same_name or is_same_space):
        return "unknown"
    return "alive" if _is_there(writer) else "dead"


def evidence(writer: Writer) -> str:
    """Say who the writer is and where we are, for somebody who has to judge whether it still runs."""
    here = this_process()
    known = f"process {writer.pid} on {writer.host}"
    if writer.boot_id:
        known += f" (boot id {writer.boot_id}, started at tick {writer.ticks})"
    return f"{known}; this is {here.host} (boot id {here.boot_id or 'unknown'})"


def _is_there(writer: Writer) -> bool:
    try:
        os.kill(writer.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(writer.pid) == writer.ticks


def _started(pid: int) -> str:
    """Return when a process started, nothing where there is none or only its remains."""
    # Field 22 of the line, counted after the program's name, which may hold spaces and brackets itself.
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rsplit(")", 1)[1].split()
        # A dead process stays until its parent has looked: where nobody does, as in many containers, for ever.
        return "" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_space() -> str:
    """Return the namespace in which process ids of this process count: a container has its own."""
    try:
        return os.readlink("/proc/self/ns/pid").replace(" ", "")
    except OSError:
        return ""
