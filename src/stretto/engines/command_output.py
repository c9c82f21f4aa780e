"""The output of a command within a bound: all of it, or its beginning and end with a note on what is missing."""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from pathlib import Path

_MARK = re.compile(rb"\n\[stretto: ([0-9]+) of ([0-9]+) bytes of standard output left out here\]\n")
_MARK_START = b"\n[stretto: "
_MARK_BYTES = 128  # at most
#: Of the output of one attempt no more is copied to a file.
MAX_COPY_BYTES = 64 << 20


class BoundedOutput:
    """Takes bytes as they come and holds at most so many of them, whatever comes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0  # of all that came
        self._all: list[bytes] = []
        self._head = b""
        self._tail: deque[bytes] = deque()
        self._num_tail = 0

    def add(self, data: bytes) -> None:
        """Take what came next."""
        was_whole = self.num_bytes <= self.max_bytes
        self.num_bytes += len(data)
        if self.num_bytes <= self.max_bytes:
            self._all.append(data)
            return
        if was_whole:
            data = b"".join((*self._all, data))
            self._all.clear()
            self._head, data = data[: self._half], data[self._half :]
        self._tail.append(data)
        self._num_tail += len(data)
        while self._num_tail - len(self._tail[0]) >= self._half:
            self._num_tail -= len(self._tail.popleft())

    def value(self) -> bytes:
        """Return everything, or what is left of it."""
        if self.num_bytes <= self.max_bytes:
            return b"".join(self._all)
        tail = b"".join(self._tail)[-self._half :]
        return _with_gap(self._head, tail, self.num_bytes)

    @property
    def _half(self) -> int:
        return max(self.max_bytes - _MARK_BYTES, 0) // 2


class CopiedOutput(BoundedOutput):
    """Bounded output that is also appended to a file as it comes, up to a limit, for whoever watches."""

    def __init__(self, max_bytes: int, path: str | None) -> None:
        super().__init__(max_bytes)
        self._copy: int | None = None
        if path is not None:
            with contextlib.suppress(OSError):  # the folder is gone: the output is still kept in memory
                self._copy = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def add(self, data: bytes) -> None:
        """Take what came next."""
        if self._copy is not None:
            room = MAX_COPY_BYTES - self.num_bytes
            with contextlib.suppress(OSError):  # the disk is full
                os.write(self._copy, data[: max(room, 0)])
                if 0 <= room < len(data):
                    os.write(self._copy, b"\n[stretto: the rest is not copied]\n")
        super().add(data)


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return what a file holds, within the same bound, without reading what is left out."""
    with open(path, "rb") as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes <= max_bytes:
            return file.read(max_bytes)
        half = max(max_bytes - _MARK_BYTES, 0) // 2
        head = file.read(half)
        file.seek(num_bytes - half)
        return _with_gap(head, file.read(half), num_bytes)


def _with_gap(head: bytes, tail: bytes, num_bytes: int) -> bytes:
    num_out = num_bytes - len(head) - len(tail)
    mark = f"[stretto: {num_out} of {num_bytes} bytes of standard output left out here]"
    return b"\n".join((head, mark.encode(), tail))


def num_left_out(value: object) -> int:
    """Return how many bytes a kept output lacks; 0 for anything else."""
    if not isinstance(value, bytes) or _MARK_START not in value:
        return 0
    for found in _MARK.finditer(value):
        num_out, num_all = int(found[1]), int(found[2])
        if len(value) - len(found[0]) + num_out == num_all:  # or the text merely looks like it
            return num_out
    return 0
