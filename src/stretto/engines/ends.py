"""The book of ends: what must be on disk before anybody is told that a task has ended.

The run log is written by a thread of its own, many events at a time. A process that is killed takes along what that
thread had not come to. So each end is first appended to a plain file beside the log, in one write, and the kernel keeps
it whatever becomes of the process. Who resumes the run enters into the log what stands only here.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stretto.private_files import make_private_folder, open_private
from stretto.runlog import RunLog
from stretto.runlog.record import Json

_MAGIC = b"end1"
_HEAD = len(_MAGIC) + 12  # magic, lengths of both parts, checksum


class End(NamedTuple):
    """The end of a task: its name, what the log is to say of it, and its output where that is data."""

    task: str
    fields: dict[str, Json]
    output: bytes | None


class EndBook:
    """Appends ends; each is there once :meth:`add` has returned."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self.path = path
        self._handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, end: End) -> None:
        """Write an end down, where the disk has room for it."""
        text = json.dumps([end.task, end.fields, end.output is not None], separators=(",", ":")).encode()
        output = end.output or b""
        check = _checksum(text, output)
        numbers = b"".join(number.to_bytes(4, "little") for number in (len(text), len(output), check))
        record = b"".join((_MAGIC, numbers, text, output))
        with contextlib.suppress(OSError):  # the disk is full: there is still the log, a moment later
            os.write(self._handle, record)

    def close(self, *, is_entered: bool) -> None:
        """Let go of the file; remove it where all that it says has been entered into the log."""
        os.close(self._handle)
        if is_entered:
            self.path.unlink(missing_ok=True)


def book_path(log: RunLog, run_id: str) -> Path:
    """Return where the ends of a run are written down."""
    return log.path.with_name(f"{log.path.name}-ends") / f"{run_id}.ends"


def read_ends(path: Path) -> Iterator[End]:
    """Yield the ends of a book, but for those that a kill or a full disk cut short."""
    data = path.read_bytes() if path.exists() else b""
    at = data.find(_MAGIC)
    while at >= 0:
        starts = range(at + len(_MAGIC), at + _HEAD, 4)
        num_text, num_output, check = (int.from_bytes(data[i : i + 4], "little") for i in starts)
        middle = at + _HEAD + num_text
        text, output = data[at + _HEAD : middle], data[middle : middle + num_output]
        if len(text) == num_text and len(output) == num_output and check == _checksum(text, output):
            task, fields, has_output = json.loads(text)
            yield End(task, fields, output if has_output else None)
            at = data.find(_MAGIC, middle + num_output)
        else:
            at = data.find(_MAGIC, at + 1)


def _checksum(text: bytes, output: bytes) -> int:
    return zlib.crc32(output, zlib.crc32(text, 1))  # not from zero, or nothing but zeros would be right
