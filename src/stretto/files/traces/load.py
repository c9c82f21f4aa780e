"""Traces in and out: find the format by content, read, write."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from stretto.catalog import TRACES
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.load import write_atomically
from stretto.files.traces.reader import ReadOptions, TraceFormat
from stretto.registry import known, lookup, resolve

#: Larger files are refused; it is some ten million jobs.
MAX_TRACE_BYTES = 2**30
_COMMON_ENDINGS = ("csv", "json", "txt")


def load_trace(
    source: str | Path, *, format: str | None = None, strict: bool = False, dependencies: bool = False
) -> Trace:
    """Read a recorded queue of jobs.

    Parameters
    ----------
    source
        A path; gzip is unpacked.
    format
        A name of the catalog's ``TRACES``; by default the content decides.
    strict
        Stop at the first row at fault. Otherwise such rows are left out and told in the trace's
        ``meta``: ``skipped`` (line and reason, the first thousand) and ``num_skipped``.
    dependencies
        Let jobs wait for the "preceding job" that an SWF file names.
    """
    text = str(source)
    if "\0" in text:
        raise InvalidInput("a path cannot hold a null byte", source=repr(text))
    if os.path.exists(text) and not os.path.isfile(text):  # a pipe or a terminal may never end
        raise InvalidInput("not a regular file", source=text)
    document = read_document(text, max_bytes=MAX_TRACE_BYTES)
    reader: TraceFormat = lookup("trace format", format, TRACES) if format is not None else detect_trace(document)
    try:
        return reader.read(document, ReadOptions(strict=strict, dependencies=dependencies))
    except InvalidInput as error:
        raise error.at(document.name) from None


def detect_trace(document: Document) -> TraceFormat:
    """Return the format of a document, or raise saying which formats there are."""
    if not document.data.strip():
        document.fail("the file is empty")
    name = find_trace_format(document)
    if name is not None:
        return lookup("trace format", name, TRACES)  # type: ignore[no-any-return]
    # The name is the last hint, so that a damaged file gets its own format's message.
    found = _by_ending(document.name, writable=False)
    if found is not None:
        return found
    document.fail(f"no known trace format matches the content{_graph_hint(document)}; known: {', '.join(TRACES)}")


def find_trace_format(document: Document) -> str | None:
    """Return the name of the first format whose content matches, or None."""
    for name in known("trace format", TRACES):
        candidate: TraceFormat = lookup("trace format", name, TRACES)
        if candidate.matches(document):
            return name
    return None


def _graph_hint(document: Document) -> str:
    """Say what to type when a task graph was given in place of a trace."""
    from stretto.files.load import find_format

    return "; it looks like a task graph: use stretto plan" if find_format(document) is not None else ""


def _by_ending(name: str, *, writable: bool) -> TraceFormat | None:
    base = Path(name).name.lower().removesuffix(".gz")
    for target in TRACES.values():
        candidate: TraceFormat = resolve(target)
        if writable and not hasattr(candidate, "write"):
            continue
        if any(base.endswith(f".{ending}") for ending in candidate.endings if ending not in _COMMON_ENDINGS):
            return candidate
    return None


def writes_traces(name: str) -> bool:
    """Say whether the ending of a file's name is that of a format in which traces are written."""
    return _by_ending(name, writable=True) is not None


def save_trace(trace: Trace, path: str | Path, *, format: str | None = None) -> tuple[str, ...]:
    """Write a trace, all or nothing, and return what the format could not hold.

    The format comes from the ending of the name; ``.gz`` after it packs the file.
    """
    name = str(path)
    if "\0" in name:
        raise InvalidInput("a path cannot hold a null byte", source=repr(name))
    writer = lookup("trace format", format, TRACES) if format is not None else _by_ending(name, writable=True)
    if writer is None or not hasattr(writer, "write"):
        writable = [key for key, target in TRACES.items() if hasattr(resolve(target), "write")]
        raise InvalidInput(f"no trace format to write here; writable: {', '.join(writable)}", source=name)
    data: bytes = writer.write(trace)
    if name.lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_atomically(Path(path), data)
    loses = getattr(writer, "loses", None)
    return tuple(loses(trace)) if loses is not None else ()
