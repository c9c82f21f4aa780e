"""Files in and out: find the format by content, read, write; and clusters."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path

from stretto.catalog import FORMATS
from stretto.core.cluster import Cluster
from stretto.core.cluster_shorthand import intended
from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files import archive
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.document import Document, read_document
from stretto.files.graphs.format import Format
from stretto.files.graphs.roofline import CostModel
from stretto.files.near_file import nearest_file
from stretto.registry import known, lookup, resolve

#: Larger files are refused: parsed JSON can take more than twenty times its text in memory.
MAX_GRAPH_BYTES = 512 * 2**20
_COMMON_ENDINGS = ("json", "jsonl", "txt", "xml", "csv")


def load(
    source: str | Path,
    *,
    format: str | None = None,
    dims: Mapping[str, int] | None = None,
    rooflines: Mapping[str, CostModel] | None = None,
) -> TaskGraph | Workload:
    """Read a graph, or a workload where the file or archive holds several.

    Parameters
    ----------
    source
        A path; ``path#name`` selects one graph of a workload, by name or by number. Gzip,
        tar and zip are unpacked. ``path?batch=8&seq=128`` sets dimensions as ``dims`` does.
    format
        A name of the catalog; by default the content decides.
    dims
        Sizes of dimensions that a model (ONNX) leaves open, by name.
    rooflines
        Cost models by kind of device, for formats that state no durations (ONNX).
    """
    text, written = split_dims(str(source))
    path, member = _locate(text)
    document = read_document(path, max_bytes=MAX_GRAPH_BYTES)
    try:
        work = _read(document, member, format, {**written, **(dims or {})}, rooflines)
        if member is None or isinstance(work, TaskGraph):
            return work
        return work.select(member)
    except InvalidInput as error:
        raise error.at(document.name) from None


def split_dims(source: str) -> tuple[str, dict[str, int]]:
    """Split ``path?batch=8`` into the path and the dimensions; a file whose name really has a ``?`` wins."""
    head, question, query = source.rpartition("?")
    if not question or _is_file(source) or not _is_file(_locate(head)[0]):
        return source, {}
    dims = {}
    for pair in query.split("&"):
        name, equals, size = pair.partition("=")
        if not (name and equals and size.isdecimal() and len(size) <= 10):
            raise InvalidInput(f"{pair!r} is not NAME=SIZE, such as batch=8", source=head, field="dim")
        dims[name] = int(size)
    return head, dims


def _configured(
    found: Format, dims: Mapping[str, int], rooflines: Mapping[str, CostModel] | None, document: Document
) -> Format:
    """Return the format with the sizes of open dimensions and cost models; formats that have no use refuse them."""
    given: dict[str, object] = {"dims": dict(dims)} if dims else {}
    if rooflines is not None:
        given["rooflines"] = rooflines
    if not given:
        return found
    if not is_dataclass(found) or not all(hasattr(found, name) for name in given):
        place = f"--dim {next(iter(dims))}" if dims else "devices"
        what = "have open dimensions" if dims else "take cost models"
        document.fail(f"only ONNX models {what}", field=place)
    made: Format = replace(found, **given)
    return made


def _read(
    document: Document,
    member: str | None,
    format: str | None,
    dims: Mapping[str, int],
    rooflines: Mapping[str, CostModel] | None = None,
) -> TaskGraph | Workload:
    forced: Format | None = lookup("format", format, FORMATS) if format is not None else None
    if archive.is_archive(document):

        def find(inner: Document) -> Format | None:
            found = find_format(inner) if forced is None else (forced if forced.matches(inner) else None)
            return found and _configured(found, dims, rooflines, inner)

        chosen = member if member is not None and archive.has_member(document, member) else None
        return archive.open_archive(document, find, chosen)
    work = _configured(forced or detect(document), dims, rooflines, document).read(document)
    if member is not None and isinstance(work, TaskGraph) and member not in (work.name, "0"):
        document.fail(f"the file holds one graph, {work.name!r}; there is no {member!r} in it", field="member")
    return work


def find_format(document: Document) -> Format | None:
    """Return the first format that the content looks like; the catalog's come before those of plugins."""
    for name in known("format", FORMATS):
        candidate: Format = lookup("format", name, FORMATS)
        if candidate.matches(document):
            return candidate
    return None


def detect(document: Document) -> Format:
    """Return the format of a document, or raise saying which formats there are."""
    if not document.data.strip():
        document.fail("the file is empty")
    found = find_format(document) or _by_ending(document)
    if found is not None:
        return found
    if document.head.lstrip().startswith((b"{", b"[")):
        _ = document.json  # raises with the line when the JSON itself is wrong
    names = ", ".join(known("format", FORMATS))
    document.fail(f"no known graph format matches the content{_trace_hint(document)}; known: {names}")


def _trace_hint(document: Document) -> str:
    """Say what to type when a trace was given in place of a graph."""
    from stretto.files.traces.load import find_trace_format

    name = find_trace_format(document)
    return f"; it looks like a trace ({name}): use stretto replay or stretto compare" if name is not None else ""


def _by_ending(document: Document) -> Format | None:
    """Take the name as a last hint, so that a damaged file gets its own format's message.

    Endings that everybody uses say nothing.
    """
    found = _longest_ending(document.name, writable=False)
    return None if found is None or found[1].rpartition(".")[2] in _COMMON_ENDINGS else found[0]


def _longest_ending(file_name: str, *, writable: bool) -> tuple[Format, str] | None:
    base = Path(file_name).name.lower().removesuffix(".gz")
    best: tuple[Format, str] | None = None
    for name in known("format", FORMATS):
        candidate: Format = lookup("format", name, FORMATS)
        if writable and not hasattr(candidate, "write"):
            continue
        for ending in candidate.endings:
            if base.endswith(f".{ending}") and (best is None or len(ending) > len(best[1])):
                best = candidate, ending
    return best


def _locate(source: str | Path) -> tuple[str, str | None]:
    """Split ``path#member``; a file whose name really has a ``#`` wins."""
    text = str(source)
    if "\0" in text:
        raise InvalidInput("a path cannot hold a null byte", source=repr(text))
    if not _is_file(text):
        at = text.find("#")
        while at > 0:
            if _is_file(text[:at]):
                return text[:at], text[at + 1 :]
            at = text.find("#", at + 1)
        if os.path.exists(text):  # a pipe or a terminal may never end
            raise InvalidInput("not a regular file", source=text)
    return text, None


def _is_file(text: str) -> bool:
    """Say whether there is such a file; never raises, not even for impossible names."""
    return os.path.isfile(text)


def save(work: TaskGraph | Workload, path: str | Path, *, format: str | None = None) -> tuple[str, ...]:
    """Write a graph or a workload, all or nothing, and return what the format could not hold.

    The format comes from the ending of the name; ``.gz`` after it packs the file.
    """
    name = str(path)
    writer = lookup("format", format, FORMATS) if format is not None else _writer_for(name)
    if not hasattr(writer, "write"):
        raise InvalidInput(f"format {format!r} can only be read; writable: {_writable()}", source=name)
    if isinstance(work, Workload) and writer is not resolve(FORMATS["native"]):
        raise InvalidInput("only Stretto's own format (native, .json) holds a workload of several graphs", source=name)
    data: bytes = writer.write(work)
    if name.lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_atomically(Path(path), data)
    loses = getattr(writer, "loses", None)
    return tuple(loses(work)) if loses is not None else ()


def format_for(path: str | Path, format: str | None = None) -> str | None:
    """Return the name of the format that a graph is written in; None where no ending is known."""
    if format is not None:
        return format
    found = _longest_ending(str(path), writable=True)
    return next((name for name, target in FORMATS.items() if found and resolve(target) is found[0]), None)


def _writer_for(name: str) -> Format:
    found = _longest_ending(name, writable=True)
    if found is None:
        raise InvalidInput(f"no writable format has this ending; use one of {_writable()}, or --format", source=name)
    return found[0]


def _writable() -> str:
    entries = []
    for name, target in FORMATS.items():
        candidate: Format = resolve(target)
        if hasattr(candidate, "write"):
            entries.append(f"{name} (.{', .'.join(candidate.endings)})")
    return ", ".join(entries)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part."""
    try:
        if path.exists() and not path.is_file():  # a terminal or a pipe cannot be replaced
            path.write_bytes(data)
            return
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(beside, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InvalidInput(f"cannot write: {reason or error}", source=str(path)) from None


def load_cluster(source: str | Path | Cluster) -> Cluster:
    """Read a cluster from a TOML or JSON file, or from the shorthand ``cpu:8x1.0,gpu:2x5.0@10GB/s``."""
    if isinstance(source, Cluster):
        return source
    text = str(source)
    if _is_file(text):
        return read_cluster(read_document(text))
    if isinstance(source, Path) or text.lower().endswith((".toml", ".json")):
        return read_cluster(read_document(_locate(source)[0]))
    try:
        return Cluster.parse(text)
    except InvalidInput as error:
        near = nearest_file(text) if ":" not in text else None
        if near is None:
            raise
        meant = " or ".join(offer for offer in (intended(text), near) if offer is not None)
        raise InvalidInput(
            f"{text!r} is neither a file nor KIND:COUNT; did you mean {meant}?", field="cluster"
        ) from error
