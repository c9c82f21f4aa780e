"""The book of ends: what must be on disk before anybody is told that a task has ended.

The run log is written by a thread of its own, many events at a time. A process that is killed takes along what that
thread had not come to. So each end is first appended to a plain file beside the log, in one write, and the kernel keeps
it whatever becomes of the process. Who resumes the run enters into the log what stands only here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stretto.core.host.private_files import make_private_folder, open_private
from stretto.engines.end_record import HEAD_BYTES, MAGIC, checksum, pack_end
from stretto.runlog import RunLog
from stretto.runlog.record import Json

#: How long to wait for the commands of a killed run, which its process guard ends within moments.
_PATIENCE_S = 20.0


class End(NamedTuple):
    """The end of a task: its name, what the log is to say of it, and its output where that is data."""

    task: str
    fields: dict[str, Json]
    output: bytes | None


class EndTicket(NamedTuple):
    """What the process guard needs to write down the end of a command.

    Attributes
    ----------
    path
        Of the book.
    fields
        What the log is to say of it, but for when it ended and the digest of its output.
    zero_s
        When the run began, by ``time.perf_counter``.
    """

    path: str
    task: str
    fields: dict[str, Json]
    zero_s: float
    wants_digest: bool


class EndBook:
    """Appends ends; each is there once :meth:`add` has returned."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self.path = path
        self._handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, end: End) -> None:
        """Write an end down, where the disk has room for it."""
        with contextlib.suppress(OSError):  # the disk is full: there is still the log, a moment later
            os.write(self._handle, pack_end(*end))

    def close(self, *, is_entered: bool) -> None:
        """Let go of the file; remove it where all that it says has been entered into the log."""
        os.close(self._handle)
        if is_entered:
            self.path.unlink(missing_ok=True)


def book_path(log: RunLog, run_id: str) -> Path:
    """Return where the ends of a run are written down."""
    return log.path.with_name(f"{log.path.name}-ends") / f"{run_id}.ends"


def await_writers(path: Path) -> bool:
    """Wait until no process guard of an earlier part of the run writes any more; say whether it came to that."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                time.sleep(0.02)
        return False
    finally:
        os.close(handle)  # gives the lock back


def read_ends(path: Path) -> Iterator[End]:
    """Yield the ends of a book, but for those that a kill or a full disk cut short."""
    data = path.read_bytes() if path.exists() else b""
    at = data.find(MAGIC)
    while at >= 0:
        starts = range(at + len(MAGIC), at + HEAD_BYTES, 4)
        num_text, num_output, check = (int.from_bytes(data[i : i + 4], "little") for i in starts)
        middle = at + HEAD_BYTES + num_text
        text, output = data[at + HEAD_BYTES : middle], data[middle : middle + num_output]
        if len(text) == num_text and len(output) == num_output and check == checksum(text, output):
            task, fields, has_output = json.loads(text)
            yield End(task, fields, output if has_output else None)
            at = data.find(MAGIC, middle + num_output)
        else:
            at = data.find(MAGIC, at + 1)
