"""The processes that a process has started, and those that these have started, whatever they call themselves."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import defaultdict

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
    children: defaultdict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat", "rb") as stat:
                fields = stat.read().rsplit(b")", 1)[1].split()
                if fields[0] not in b"ZX":
                    children[int(fields[1])].append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        new = children.get(waiting.pop(), [])
        found += new
        waiting += new
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
