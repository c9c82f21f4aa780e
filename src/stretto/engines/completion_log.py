"""The completion log: the end of a task is on disk before anybody is told that it has ended.

The run log is written by a thread of its own, many events at a time, and a killed process takes along what that thread
had not written yet. So each end is first appended to a plain file beside the run log, in one write, which the kernel
keeps whatever becomes of the process. Whoever resumes the run copies into the run log what stands only here.

Only the standard library is needed: the process guard, which has to start quickly, appends entries, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stretto.core.host.private_files import make_private_folder, open_private, take_lock

if TYPE_CHECKING:
    from stretto.runlog import RunLog

#: Larger outputs are not kept: their tasks run again when a run is resumed.
MAX_OUTPUT_BYTES = 1 << 20
#: How an output begins (``engines/outputs.py``).
OUTPUT_MAGIC = b"stretto-output-1\n"
#: How long to wait for the commands of a killed run, which its process guard ends within moments.
_PATIENCE_S = 20.0
_MAGIC = b"end1"
_HEAD_BYTES = len(_MAGIC) + 12  # magic, lengths of both parts, checksum


class Completion(NamedTuple):
    """The end of a task: its name, the fields of its event in the run log, and its output where that is data."""

    task: str
    fields: Mapping[str, object]
    output: bytes | None


class CompletionTicket(NamedTuple):
    """What the process guard needs to log the end of a command.

    Attributes
    ----------
    path
        Of the completion log.
    fields
        Of the event in the run log, except when it ended and the digest of its output.
    zero_s
        When the run began, by ``time.perf_counter``.
    output
        Where stdout and stderr are copied as they come: a path without its ending, ``.out`` and ``.err``.
    """

    path: str
    task: str
    fields: Mapping[str, object]
    zero_s: float
    wants_digest: bool
    output: str | None = None


class CompletionLog:
    """Appends ends; each is on disk once :meth:`add` has returned."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self.path = path
        self._handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, end: Completion) -> None:
        """Append an end, if the disk has room for it."""
        with contextlib.suppress(OSError):  # the disk is full: the run log may still take it a moment later
            os.write(self._handle, pack_completion(*end))

    def close(self, *, is_entered: bool) -> None:
        """Close the file; remove it where all its entries are in the run log."""
        os.close(self._handle)
        if is_entered:
            self.path.unlink(missing_ok=True)


def completion_log_path(log: RunLog, run_id: str) -> Path:
    """Return the completion log of a run."""
    return log.path.with_name(f"{log.path.name}-ends") / f"{run_id}.ends"


def await_writers(path: Path) -> bool:
    """Wait until no process guard of an earlier part of the run writes any more; return False where one still does."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return take_lock(handle, fcntl.LOCK_EX, patience_s=_PATIENCE_S)
    finally:
        os.close(handle)  # releases the lock


def pack_completion(task: str, fields: Mapping[str, object], output: bytes | None) -> bytes:
    """Return the entry of a task's end as bytes."""
    text = json.dumps([task, dict(fields), output is not None], separators=(",", ":")).encode()
    data = output or b""
    numbers = b"".join(number.to_bytes(4, "little") for number in (len(text), len(data), _checksum(text, data)))
    return b"".join((_MAGIC, numbers, text, data))


def read_completions(path: Path) -> Iterator[Completion]:
    """Yield the entries of a completion log, except those that a kill or a full disk cut short."""
    data = path.read_bytes() if path.exists() else b""
    at = data.find(_MAGIC)
    while at >= 0:
        starts = range(at + len(_MAGIC), at + _HEAD_BYTES, 4)
        num_text, num_output, check = (int.from_bytes(data[i : i + 4], "little") for i in starts)
        middle = at + _HEAD_BYTES + num_text
        text, output = data[at + _HEAD_BYTES : middle], data[middle : middle + num_output]
        if len(text) == num_text and len(output) == num_output and check == _checksum(text, output):
            task, fields, has_output = json.loads(text)
            yield Completion(task, fields, output if has_output else None)
            at = data.find(_MAGIC, middle + num_output)
        else:
            at = data.find(_MAGIC, at + 1)


def _checksum(text: bytes, output: bytes) -> int:
    return zlib.crc32(output, zlib.crc32(text, 1))  # not from zero, or nothing but zeros would be right


def encoded_bytes(value: bytes) -> bytes:
    """Return what ``outputs.encode`` makes of bytes."""
    head = json.dumps({"b": [0, len(value)]}, separators=(",", ":")).encode()
    return b"".join((OUTPUT_MAGIC, len(head).to_bytes(8, "little"), head, value))


def digest_of_bytes(value: bytes) -> str:
    """Return what ``outputs.digest`` makes of bytes."""
    state = hashlib.sha256(value)
    state.update(json.dumps({"b": len(value)}, separators=(",", ":")).encode())
    return state.hexdigest()[:32]
