"""Who writes a run, so that a dead writer's run is not taken for a live one."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple


class Writer(NamedTuple):
    """A process; its start tells it from a later one with the same id."""

    host: str
    pid: int
    started: str


def this_process() -> Writer:
    """Return the process that asks."""
    pid = os.getpid()
    return Writer(socket.gethostname(), pid, _started(pid))


def is_alive(writer: Writer) -> bool:
    """Tell whether the writer still runs; one on another host gets the benefit of the doubt."""
    if writer.host != socket.gethostname():
        return True
    try:
        os.kill(writer.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(writer.pid) == writer.started


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
