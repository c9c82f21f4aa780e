"""Messages between the coordinator and its worker processes: small frames over pipes, no pickle.

A *descriptor* says what an output is and where its buffers lie: an outline as JSON, or nothing at all for None.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence

START, FREE, QUIT = 1, 2, 3
READY, STARTED, FINISHED, FAILED = 7, 4, 5, 6

_HEAD = struct.Struct("<BIIdddI")  # kind, task, attempt, three times, length of the payload
_INPUT = struct.Struct("<II")  # task, length of its descriptor

#: kind, task, attempt, three times, payload
Frame = tuple[int, int, int, float, float, float, bytes]


def pack(
    kind: int, task: int = 0, attempt: int = 0, a: float = 0.0, b: float = 0.0, c: float = 0.0, payload: bytes = b""
) -> bytes:
    """Return the bytes of a frame."""
    return _HEAD.pack(kind, task, attempt, a, b, c, len(payload)) + payload


def pack_inputs(inputs: Sequence[tuple[int, bytes]]) -> bytes:
    """Return tasks and the descriptors of their outputs as one payload."""
    return b"".join([part for task, text in inputs for part in (_INPUT.pack(task, len(text)), text)])


def unpack_inputs(payload: bytes) -> list[tuple[int, bytes]]:
    """Return what :func:`pack_inputs` was given."""
    found, at = [], 0
    while at < len(payload):
        task, length = _INPUT.unpack_from(payload, at)
        at += _INPUT.size + length
        found.append((task, payload[at - length : at]))
    return found


def send(fd: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(fd, data) :]


def is_small(descriptor: bytes) -> bool:
    """Say whether an output travels inside its descriptor: then nobody keeps it, and nobody need be told to let go.

    References to shared memory are lists, so a descriptor without any list has none.
    """
    return b"[" not in descriptor


class Inbox:
    """Cuts what comes out of a pipe into frames."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = b""

    def receive(self) -> bool:
        """Wait for more; return False when the other side is gone."""
        data = os.read(self.fd, 1 << 16)
        self._buffer += data
        return bool(data)

    def frames(self) -> Iterator[Frame]:
        """Take the complete frames out."""
        buffer, at = self._buffer, 0
        while len(buffer) - at >= _HEAD.size:
            kind, task, attempt, a, b, c, length = _HEAD.unpack_from(buffer, at)
            end = at + _HEAD.size + length
            if len(buffer) < end:
                break
            yield kind, task, attempt, a, b, c, buffer[end - length : end]
            at = end
        self._buffer = buffer[at:] if at else buffer
