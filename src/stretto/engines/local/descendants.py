"""The processes that a process has started, and those that these have started, whatever they call themselves."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

_SET_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux
_PAUSE_S = 0.005


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parent dies; say whether this system can do that.

    A process that starts a session of its own, or that outlives its parent, then still is a descendant of this one.
    """
    try:
        return int(ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def can_adopt() -> bool:
    """Say whether :func:`adopt_orphans` works here, without doing it."""
    return hasattr(ctypes.CDLL(None), "prctl") and os.path.isdir("/proc/self")


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process."""
    import psutil  # only here: the process guard has to start quickly

    found = []
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(root).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                    found.append(process.pid)
    return found


def end_descendants(group: int | None = None, *, patience_s: float = 5.0) -> None:
    """Kill all descendants of this process, and those that come while it does so.

    Parameters
    ----------
    group
        A process group to kill first: all that can be done where the system cannot adopt orphans.
    patience_s
        How long to try: what changed its user cannot be killed.
    """
    if group is not None:
        _kill(-group)
    deadline = time.monotonic() + patience_s
    while (found := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in found:
            _kill(pid)
        time.sleep(_PAUSE_S)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
