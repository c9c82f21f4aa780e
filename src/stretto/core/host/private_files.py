"""Files and folders that only their owner can read, such as the run log, and locks on them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: A folder with one of these was opened to others on purpose, such as /tmp.
_SHARED_ON_PURPOSE = stat.S_ISVTX | stat.S_ISGID


def make_private_folder(path: Path) -> None:
    """Make a folder with mode 0700; take the rights of others away where it exists and is ours."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    tighten(path)


def make_private_file(path: Path) -> None:
    """Make an empty file with mode 0600; take the rights of others away where it exists and is ours."""
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT))


def open_private(path: Path, flags: int) -> int:
    """Return a descriptor of a file that only its owner can read, whatever the umask says."""
    handle = os.open(path, flags | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without modes
        found = os.fstat(handle)
        if _is_too_open(found):
            os.fchmod(handle, stat.S_IMODE(found.st_mode) & ~_OTHERS)
    return handle


def write_private(path: Path, text: str) -> None:
    """Write a text to a file that only its owner can read."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)


def take_lock(handle: int, kind: int, *, patience_s: float = 0.0, pause_s: float = 0.02) -> bool:
    """Take a lock on an open file (``fcntl.LOCK_EX`` or ``LOCK_SH``); return False where others hold it for too long.

    Closing the file releases the lock, and so does the end of this process.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
        time.sleep(pause_s)


def tighten(path: Path) -> None:
    """Take the rights of others away from a file or a folder, where it exists and is ours."""
    with contextlib.suppress(OSError):
        found = path.stat()
        if _is_too_open(found):
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def _is_too_open(found: os.stat_result) -> bool:
    if stat.S_ISDIR(found.st_mode) and found.st_mode & _SHARED_ON_PURPOSE:
        return False
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return is_plain and found.st_uid == os.geteuid() and bool(found.st_mode & _OTHERS)
