"""Buffers in shared memory: each worker writes into chunks of its own, everybody can read them by reference.

A reference is ``[name of its chunk, offset, length]``, or base64 text for short buffers.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable
from multiprocessing.shared_memory import SharedMemory

import numpy as np

from stretto.engines.outputs import Buffer, Outline, Reference

_CHUNK_BYTES = 64 << 20  # pages that nobody touches cost nothing
_SMALLEST = 4096
#: Buffers up to this size travel inside the message itself.
_INLINE_BYTES = 1024

#: References to an object that one variable alone holds, while ``sys.getrefcount`` asks.
_UNSHARED = 2


class Arena:
    """Allocates blocks of shared memory, in sizes of powers of two, and takes them back for later use."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.used_bytes = 0
        self._chunks: dict[str, SharedMemory] = {}
        self._current: SharedMemory | None = None
        self._position = 0
        self._free: dict[int, list[tuple[str, int]]] = {}

    def prepare(self, size: int) -> None:
        """Have so many bytes at hand, at most a chunk of them, whose pages exist already."""
        if size > 0:
            chunk = self._grow(_SMALLEST)
            np.ndarray(min(size, _CHUNK_BYTES), dtype=np.uint8, buffer=_buffer(chunk))[::_SMALLEST] = 0

    def put(self, buffer: Buffer) -> Reference:
        """Copy a buffer into shared memory and return its reference."""
        size = len(buffer) if isinstance(buffer, bytes) else buffer.nbytes
        if size <= _INLINE_BYTES:
            return base64.b64encode(buffer if isinstance(buffer, bytes) else buffer.tobytes()).decode()
        block = _rounded(size)
        name, offset = self._block(block)
        target = np.ndarray(size, dtype=np.uint8, buffer=_buffer(self._chunks[name]), offset=offset)
        source = np.frombuffer(buffer, dtype=np.uint8) if isinstance(buffer, bytes) else buffer.reshape(-1).view("u1")
        target[:] = source
        self.used_bytes += block
        return [name, offset, size]

    def _block(self, size: int) -> tuple[str, int]:
        spare = self._free.get(size)
        if spare:
            return spare.pop()
        current = self._current
        if current is None or self._position + size > current.size:
            current = self._grow(size)
        self._position += size
        return current.name, self._position - size

    def _grow(self, size: int) -> SharedMemory:
        name = chunk_name(self.prefix, len(self._chunks))
        self._current = SharedMemory(name=name, create=True, size=max(size, _CHUNK_BYTES))
        self._chunks[name] = self._current
        self._position = 0
        return self._current

    def owns(self, ref: Reference) -> bool:
        return not isinstance(ref, str) and ref[0] in self._chunks

    def view(self, ref: Reference) -> memoryview:
        """Return a buffer of our own, as it lies in memory."""
        name, offset, size = ref
        return _buffer(self._chunks[name])[offset : offset + size].toreadonly()

    def free(self, refs: Iterable[Reference]) -> None:
        """Take back the blocks of our own among these references."""
        for ref in refs:
            if self.owns(ref):
                block = _rounded(ref[2])
                self._free.setdefault(block, []).append((ref[0], ref[1]))
                self.used_bytes -= block


class Attached:
    """Reads buffers of other processes, as copies; released copies are reused, since fresh pages are slow."""

    def __init__(self) -> None:
        self._chunks: dict[str, SharedMemory] = {}
        self._spare: dict[int, list[bytearray]] = {}

    def copy(self, ref: Reference) -> bytes | bytearray:
        """Return a copy of the buffer behind a reference."""
        if isinstance(ref, str):
            return base64.b64decode(ref)
        name, offset, size = ref
        if name not in self._chunks:
            self._chunks[name] = SharedMemory(name=name)
        source = _buffer(self._chunks[name])[offset : offset + size]
        spare = self._spare.get(size)
        if not spare:
            return bytearray(source)
        target = spare.pop()
        memoryview(target)[:] = source
        return target

    def release(self, copies: list[bytearray]) -> None:
        """Take copies for later use, unless somebody still looks at them."""
        while copies:
            copy = copies.pop()
            if sys.getrefcount(copy) == _UNSHARED:
                self._spare.setdefault(len(copy), []).append(copy)

    def close(self) -> None:
        for chunk in self._chunks.values():
            chunk.close()


def chunk_name(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


def unlink_chunks(prefix: str) -> None:
    """Remove all chunks of an arena; readers that still map them keep their view."""
    number = 0
    while True:
        try:
            chunk = SharedMemory(name=chunk_name(prefix, number))
        except FileNotFoundError:
            return
        chunk.close()
        chunk.unlink()
        number += 1


def refs_in(outline: Outline | list[Outline]) -> list[Reference]:
    """List the references in an outline (see outputs.py) that lie in shared memory."""
    if isinstance(outline, dict):
        if "v" in outline or "f" in outline:
            return []
        for key in ("a", "b", "j"):
            if key in outline:
                return [outline[key]] if isinstance(outline[key], list) else []
        return [ref for value in outline.values() for ref in refs_in(value)]
    if isinstance(outline, list):
        return [ref for value in outline for ref in refs_in(value)]
    return []


def _buffer(chunk: SharedMemory) -> memoryview:
    assert chunk.buf is not None, "chunks stay open as long as they are used"
    return chunk.buf


def _rounded(size: int) -> int:
    return max(_SMALLEST, 1 << (size - 1).bit_length())
