"""Graphs, traces, clusters and pools out of text that a program was sent: never from a file of this machine."""

from __future__ import annotations

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files import archive
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.pool_toml import parse_pools, read_pools
from stretto.files.document import Document, unpack
from stretto.files.load import detect, find_format
from stretto.files.traces.load import detect_trace
from stretto.files.traces.reader import ReadOptions

__all__ = ["cluster_in", "graph_in", "is_document", "pools_in", "trace_in", "unpack"]


def graph_in(data: bytes, name: str = "graph") -> TaskGraph | Workload:
    """Read a graph, or the graphs of an archive."""
    document = Document(name, data)
    try:
        if archive.is_archive(document):
            return archive.open_archive(document, find_format, None)
        return detect(document).read(document)
    except InvalidInput as error:
        raise error.at(name) from None


def trace_in(data: bytes, name: str = "trace") -> Trace:
    """Read a recorded queue of jobs."""
    document = Document(name, data)
    try:
        return detect_trace(document).read(document, ReadOptions())
    except InvalidInput as error:
        raise error.at(name) from None


def cluster_in(text: str) -> Cluster:
    """Read a cluster from shorthand, or from TOML."""
    if is_document(text):
        return read_cluster(Document("cluster", text.encode(errors="replace")))
    return Cluster.parse(text)


def pools_in(text: str) -> tuple[Pool, ...]:
    """Read pools from shorthand, or from TOML."""
    return read_pools(Document("pools", text.encode(errors="replace"))) if is_document(text) else parse_pools(text)


def is_document(text: str) -> bool:
    """Say whether a text is a document, which has several lines or a key, and not shorthand."""
    return "\n" in text.strip() or "[" in text or text.lstrip().startswith("{")
