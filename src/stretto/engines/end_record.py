"""One entry of the book of ends, as bytes.

This needs nothing but the standard library: the process guard, which starts quickly, writes entries, too.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

MAGIC = b"end1"
HEAD_BYTES = len(MAGIC) + 12  # magic, lengths of both parts, checksum
#: Outputs of tasks that are larger are not kept: their tasks run again when a run is resumed.
MAX_OUTPUT_BYTES = 1 << 20
#: How an output begins (``engines/outputs.py``).
OUTPUT_MAGIC = b"stretto-output-1\n"


def pack_end(task: str, fields: Mapping[str, Any], output: bytes | None) -> bytes:
    """Return the entry of a task's end: its name, what the log is to say of it, and its output where that is data."""
    text = json.dumps([task, dict(fields), output is not None], separators=(",", ":")).encode()
    data = output or b""
    numbers = b"".join(number.to_bytes(4, "little") for number in (len(text), len(data), checksum(text, data)))
    return b"".join((MAGIC, numbers, text, data))


def checksum(text: bytes, output: bytes) -> int:
    """Return the checksum of both parts of an entry."""
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
