"""Archives of many graphs: tar (also packed) and zip, read in memory, never extracted."""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from stretto.core.graph import TaskGraph
from stretto.core.workload import Job, Workload
from stretto.errors import InvalidInput
from stretto.files.document import FREE_BYTES, MAX_RATIO, Document, unpack
from stretto.files.graphs.format import Format
from stretto.files.sniff import graph_name

MAX_MEMBERS = 100_000
MAX_TOTAL_BYTES = 2**30
_CHUNK = 1 << 20
#: What the standard library raises on damaged archives.
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, OverflowError, RuntimeError, NotImplementedError, IndexError, KeyError),
)

Find = Callable[[Document], Format | None]


def is_archive(document: Document) -> bool:
    """Say whether the content is a tar or a zip file."""
    return _is_zip(document.data) or _is_tar(document.data)


def open_archive(document: Document, find: Find, member: str | None = None) -> TaskGraph | Workload:
    """Read all members that match a format as one workload, or one member.

    Parameters
    ----------
    find
        Returns the format of a document, or None when there is none; members without a
        format (tables of known optima, notes) are left out.
    member
        The full name of a member, its base name, or that without its ending.
    """
    wanted = _choose(document, member) if member is not None else None
    jobs: list[Job] = []
    num_members = 0
    for name, data in _members(document, wanted):
        num_members += 1
        inner = Document(f"{document.name}#{name}", data)
        reader = find(inner)
        if reader is None:
            continue
        try:
            work = reader.read(inner)
        except InvalidInput as error:
            raise error.at(inner.name) from None
        if wanted is not None:
            return _named(work, name) if isinstance(work, TaskGraph) else work
        jobs.extend(_jobs(work, name))
    if not jobs:
        which = f"member {wanted!r}" if wanted is not None else f"any of the {num_members} members"
        document.fail(f"no known graph format matches {which}")
    return Workload(graph_name(document), tuple(jobs))


def has_member(document: Document, member: str) -> bool:
    """Say whether ``open_archive`` would find this member."""
    return _choose(document, member) is not None


def _jobs(work: TaskGraph | Workload, member: str) -> Iterator[Job]:
    if isinstance(work, TaskGraph):
        yield Job(_named(work, member))
        return
    for job in work.jobs:
        yield Job(_named(job.graph, f"{member}#{job.graph.name}"), job.arrival_s)


def _named(graph: TaskGraph, name: str) -> TaskGraph:
    return replace(graph, name=name)


def _choose(document: Document, member: str) -> str | None:
    """Return the full name of the member that the user means."""
    names = _names(document)
    if member in names:
        return member
    looks: tuple[Callable[[str], str], ...] = (
        lambda name: PurePosixPath(name).name,
        lambda name: graph_name(Document(name, b"")),
    )
    for look in looks:
        found = [name for name in names if look(name) == member]
        if len(found) > 1:
            document.fail(f"{member!r} could be {' or '.join(found[:4])}", field="member")
        if found:
            return found[0]
    return None


def _is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar" or data.startswith((b"BZh", b"\xfd7zXZ\x00"))


def _names(document: Document) -> list[str]:
    return [name for name, _ in _entries(document)]


def _members(document: Document, wanted: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each member, unpacked, within limits."""
    limit = min(MAX_TOTAL_BYTES, FREE_BYTES + MAX_RATIO * len(document.data))
    left = limit
    for name, stream in _entries(document):
        if wanted is not None and name != wanted:
            continue
        data = _read(document, name, stream, left, limit)
        left -= len(data)
        data = unpack(data, f"{document.name}#{name}", max_bytes=max(left, 1))
        left -= len(data)
        yield name, data


def _read(document: Document, name: str, stream: Callable[[], io.BufferedIOBase], left: int, limit: int) -> bytes:
    parts: list[bytes] = []
    try:
        with stream() as source:
            while chunk := source.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    document.fail(f"unpacks to more than {limit:,} bytes; refused as a bomb", field=name)
                parts.append(chunk)
    except InvalidInput:
        raise
    except _DAMAGE as error:
        document.fail(f"damaged archive: {error}", field=name)
    return b"".join(parts)


def _entries(document: Document) -> Iterator[tuple[str, Callable[[], io.BufferedIOBase]]]:
    """Yield the files of the archive with a way to open each."""
    entries = _zip_entries(document) if _is_zip(document.data) else _tar_entries(document)
    number = 0
    while True:
        try:
            entry = next(entries)
        except StopIteration:
            return
        except InvalidInput:
            raise
        except _DAMAGE as error:
            document.fail(f"damaged archive: {error}")
        number += 1
        if number > MAX_MEMBERS:
            document.fail(f"more than {MAX_MEMBERS:,} members")
        yield entry


def _zip_entries(document: Document) -> Iterator[tuple[str, Callable[[], io.BufferedIOBase]]]:
    with zipfile.ZipFile(io.BytesIO(document.data)) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, lambda info=info: archive.open(info)  # type: ignore[misc]


def _tar_entries(document: Document) -> Iterator[tuple[str, Callable[[], io.BufferedIOBase]]]:
    with tarfile.open(fileobj=io.BytesIO(_tar_data(document)), mode="r:") as archive:
        for info in archive:
            if info.isreg():
                yield info.name, lambda info=info: archive.extractfile(info)  # type: ignore[misc]


def _tar_data(document: Document) -> bytes:
    """Unpack bzip2 or xz around a tar; gzip is already gone."""
    data = document.data
    if data[257:262] == b"ustar":
        return data
    limit = min(MAX_TOTAL_BYTES, FREE_BYTES + MAX_RATIO * len(data))
    unpacker: bz2.BZ2Decompressor | lzma.LZMADecompressor
    unpacker = bz2.BZ2Decompressor() if data.startswith(b"BZh") else lzma.LZMADecompressor(memlimit=2**30)
    unpacked = unpacker.decompress(data, max_length=limit + 1)
    if len(unpacked) > limit:
        document.fail(f"unpacks to more than {limit:,} bytes; refused as a bomb")
    return unpacked
